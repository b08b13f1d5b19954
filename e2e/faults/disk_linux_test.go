package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// smallDisk is a file system of so many MiB; the test is skipped where it cannot be made. fill takes all that is left
// of it, and free gives that back.
func smallDisk(t *testing.T, size int) (dir string, fill, free func()) {
	t.Helper()
	dir, err := os.MkdirTemp("", "starling-") // short: a socket lies in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=700", size)); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	rest := filepath.Join(dir, "rest")
	fill = func() {
		f, err := os.OpenFile(rest, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for page := make([]byte, 4096); err == nil; {
			_, err = f.Write(page)
		}
		if !strings.Contains(err.Error(), "no space") {
			t.Fatal(err)
		}
	}
	return dir, fill, func() { _ = os.Remove(rest) }
}

// Row 11: the disk of --state-dir is full. Records, marks and recorded inputs stop with one line each, and the work
// goes on, also of a process that begins so; what was stopped goes on when there is room again.
func TestADiskThatIsFull(t *testing.T) {
	t.Parallel()
	dir, fill, free := smallDisk(t, 1)
	w := newWorld(t)
	r := w.replicas[0]
	r.folder, r.args = dir, []string{"--record-inputs", filepath.Join(dir, "inputs")}
	w.begin()
	fill()
	for i := range 3 {
		w.changes(10)
		w.write(map[string]string{fmt.Sprintf("more%d/module.star", i): "module(enabled = True)\n",
			fmt.Sprintf("more%d/hooks/a.star", i): "hook(lambda ctx: values.set(\"a\", 1), name = \"a\", on = [startup()])\n"})
		fill() // a file that has become shorter leaves room
		w.stamp()
		w.settle()
	}
	once := func(text string) {
		t.Helper()
		if n := strings.Count(r.Output(), text); n != 1 {
			t.Errorf("%q was said %d times", text, n)
		}
	}
	once("a run cannot be recorded")
	once("inputs are not written down any more")

	r.args = nil
	r.Kill()
	fill()
	w.settle()
	w.changes(10)
	w.stamp()
	w.settle()
	if r.starts != 2 {
		t.Errorf("there were %d starts", r.starts)
	}
	free()
	w.eventually("runs are recorded again", func() error {
		w.stamp()
		if !strings.Contains(r.Output(), "runs are recorded again") {
			return fmt.Errorf("nothing says so")
		}
		return nil
	})
	once("a run cannot be recorded")
	w.settle()
}
