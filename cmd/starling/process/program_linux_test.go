package process

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Pages of the program that a process has used for its start alone do not stay resident.
func TestPagesOfTheProgramGoAfterTheStart(t *testing.T) {
	resident := func() int {
		t.Helper()
		data, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(data), "RssFile:")
		kilobytes, err := strconv.Atoi(strings.Fields(rest)[0])
		if err != nil {
			t.Fatal(err)
		}
		return kilobytes
	}
	program, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	const size = 16 << 20
	used, err := syscall.Mmap(int(program.Fd()), 0, size, syscall.PROT_READ, syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Munmap(used) }()
	read := 0
	for i := 0; i < size; i += os.Getpagesize() {
		read += int(used[i])
	}
	before := resident()
	unmapProgram()
	if after := resident(); after > before-size>>10 {
		t.Errorf("%d KiB of the program are resident, %d KiB before (%d)", after, before, read)
	}
	if used[1] != 'E' { // ELF: what is used again is there
		t.Errorf("the program begins with %q", used[:4])
	}
}

// A page of the program that is used costs no more memory than itself: the kernel marks such mappings "rr".
func TestPagesOfTheProgramAreReadSingly(t *testing.T) {
	readPagesSingly()
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	found := readOnly(strings.NewReader(string(smaps)))
	if len(found) == 0 {
		t.Fatal("the program has no mappings")
	}
	singly := 0
	for line := range strings.Lines(string(smaps)) {
		if flags, is := strings.CutPrefix(line, "VmFlags:"); is && slices.Contains(strings.Fields(flags), "rr") {
			singly++
		}
	}
	if singly < len(found) {
		t.Errorf("%d of %d mappings are read singly", singly, len(found))
	}
}

func TestMappingsThatWereWrittenToStay(t *testing.T) {
	const smaps = `00400000-02000000 r-xp 00000000 fe:00 77 /bin/starling
Rss:               27640 kB
Anonymous:             0 kB
02000000-03000000 r--p 01c00000 fe:00 77 /bin/starling (deleted)
Anonymous:             0 kB
03000000-04000000 r--p 02c00000 fe:00 77 /bin/starling
Anonymous:             4 kB
04000000-05000000 rw-p 03c00000 fe:00 77 /bin/starling
Anonymous:             0 kB
05000000-06000000 r--s 00000000 fe:00 78 /tmp/shared
Anonymous:             0 kB
7ffc0000-7ffd0000 r-xp 00000000 00:00 0 [vdso]
Anonymous:             0 kB
`
	got := readOnly(strings.NewReader(smaps))
	if len(got) != 2 || got[0] != (mapping{0x400000, 0x2000000}) || got[1] != (mapping{0x2000000, 0x3000000}) {
		t.Errorf("got %x", got)
	}
}
