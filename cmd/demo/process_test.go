package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func startShell(t *testing.T, script string, line func(string)) *process {
	t.Helper()
	p, err := startProcess(processOptions{
		Name: "a test", Args: []string{"/bin/sh", "-c", script},
		Log: filepath.Join(t.TempDir(), "log"), Stdout: line,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
	})
	return p
}

func TestProcessStopsWhenAsked(t *testing.T) {
	ready := make(chan string, 10)
	p := startShell(t, `sleep 60 & trap 'echo bye; kill $!; exit 0' TERM; echo up; wait`, func(l string) { ready <- l })
	if l := <-ready; l != "up" {
		t.Fatalf("first line %q", l)
	}
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"bye"}, p.tail(1)); diff != "" {
		t.Error(diff)
	}
	if err := syscall.Kill(p.pid(), 0); err == nil {
		t.Error("the process is still there")
	}
}

func TestProcessThatDies(t *testing.T) {
	p := startShell(t, `echo; echo "error: no cluster" >&2; exit 3`, func(string) {})
	<-p.ended
	want := "a test ended: exit status 3: error: no cluster"
	if got := p.died().Error(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := p.stop(); err != nil {
		t.Errorf("stop of a dead process: %v", err)
	}
}

// On a busy machine the last lines are read some time after the process has ended.
func TestLinesThatComeLate(t *testing.T) {
	p := startShell(t, `(sleep 1.2; echo bye) & exit 0`, func(string) {})
	<-p.ended
	if diff := cmp.Diff([]string{"bye"}, p.tail(1)); diff != "" || p.err != nil {
		t.Error(p.err, diff)
	}
}

func TestStartOfWhatIsNotThere(t *testing.T) {
	_, err := startProcess(processOptions{Name: "x", Args: []string{"/nowhere/x"}, Log: filepath.Join(t.TempDir(), "log")})
	if err == nil || !strings.HasPrefix(err.Error(), "cannot start /nowhere/x: ") {
		t.Errorf("got %v", err)
	}
}

func TestEachLine(t *testing.T) {
	var got []int
	eachLine(strings.NewReader("a\n\n"+strings.Repeat("x", 3<<20)+"\r\nlast"), func(l string) { got = append(got, len(l)) })
	if diff := cmp.Diff([]int{1, 1 << 20, 4}, got); diff != "" {
		t.Error(diff)
	}
}

func TestDemoWantsItsPrograms(t *testing.T) {
	t.Chdir(t.TempDir())
	_, err := newDemo(time.Now(), "bin/starling", newPrinter(os.Stdout))
	if err == nil || !strings.HasPrefix(err.Error(), "bin/devcluster is missing; ") {
		t.Errorf("got %v", err)
	}
}
