package process

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// unmapProgram has the kernel forget which pages of the program this process has used so far:
// most of them were for its start alone. They stay in the page cache, and those that are used
// again come back without a read. A mapping that was written to stays as it is.
func unmapProgram() { adviseProgram(syscall.MADV_DONTNEED) }

// readPagesSingly has the kernel read a page of the program alone when that page is used. Some machines read 8 MiB
// around it: in a small cgroup these push out the pages that are used, and the process waits for the disk alone.
func readPagesSingly() { adviseProgram(syscall.MADV_RANDOM) }

func adviseProgram(advice uintptr) {
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return // nothing is lost: the kernel takes pages back when it needs memory
	}
	defer f.Close()
	for _, m := range readOnly(f) {
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, m.start, m.end-m.start, advice)
	}
}

type mapping struct{ start, end uintptr }

// readOnly finds the mappings of files in /proc/<pid>/smaps that hold nothing but what the
// file has.
func readOnly(smaps io.Reader) (found []mapping) {
	var at mapping
	var candidate bool
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) >= 5 && strings.Contains(fields[0], "-") {
			candidate = len(fields[1]) == 4 && fields[1][1] == '-' && fields[1][3] == 'p' && fields[4] != "0"
			from, to, _ := strings.Cut(fields[0], "-")
			start, err := strconv.ParseUint(from, 16, 64)
			end, err2 := strconv.ParseUint(to, 16, 64)
			at = mapping{uintptr(start), uintptr(end)}
			candidate = candidate && err == nil && err2 == nil
		}
		if candidate && len(fields) == 3 && fields[0] == "Anonymous:" && fields[1] == "0" {
			found = append(found, at)
		}
	}
	return found
}
