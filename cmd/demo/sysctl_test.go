package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The script of the sysctl-tuner on folders that stand in for the kernel's.
type tuner struct {
	t                     *testing.T
	proc, notes, listFile string
}

func newTuner(t *testing.T) *tuner {
	dir := t.TempDir()
	k := &tuner{t, filepath.Join(dir, "proc"), filepath.Join(dir, "notes"), filepath.Join(dir, "params")}
	for name, value := range map[string]string{
		"vm/swappiness": "60", "net/core/somaxconn": "128", "net/ipv4/tcp_rmem": "4096\t131072\t6291456",
	} {
		path := filepath.Join(k.proc, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(value+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return k
}

func (k *tuner) want(lines ...string) {
	if err := os.WriteFile(k.listFile, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		k.t.Fatal(err)
	}
}

func (k *tuner) values() map[string]string {
	out := map[string]string{}
	for _, name := range []string{"vm/swappiness", "net/core/somaxconn", "net/ipv4/tcp_rmem"} {
		b, err := os.ReadFile(filepath.Join(k.proc, name))
		if err != nil {
			k.t.Fatal(err)
		}
		out[name] = strings.Join(strings.Fields(string(b)), " ")
	}
	return out
}

// start runs the script, whose sleep is a program of ours: it reports the end of
// each round and waits for the next line of rounds.
func (k *tuner) start() (lines <-chan string, next func(), stop func(syscall.Signal)) {
	k.t.Helper()
	bin := k.t.TempDir()
	pipe := filepath.Join(bin, "next")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		k.t.Fatal(err)
	}
	sleep := "#!/bin/sh\necho round\nexec cat " + pipe + "\n" // until someone has written to it
	if err := os.WriteFile(filepath.Join(bin, "sleep"), []byte(sleep), 0o700); err != nil {
		k.t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", examples+"sysctl-tuner/sysctl-tuner/files/tune.sh")
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "PROC="+k.proc, "NOTES="+k.notes, "WANTED="+k.listFile, "SLEEP=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		k.t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	ch := make(chan string, 100)
	go func() {
		defer close(ch)
		for s := bufio.NewScanner(out); s.Scan(); {
			_, text, _ := strings.Cut(s.Text(), "Z ")
			if s.Text() == "round" {
				text = "round"
			}
			ch <- text
		}
	}()
	next = func() {
		f, err := os.OpenFile(pipe, os.O_WRONLY, 0)
		if err != nil {
			k.t.Fatal(err)
		}
		f.Close() // end of input: the round's wait is over
	}
	stop = func(s syscall.Signal) {
		if err := cmd.Process.Signal(s); err != nil {
			k.t.Fatal(err)
		}
		_, _ = cmd.Process.Wait()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // its sleep, in the group that this test made
	}
	k.t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	return ch, next, stop
}

// round returns what the script said until the end of its round.
func round(lines <-chan string) (said []string) {
	for l := range lines {
		if l == "round" {
			return said
		}
		said = append(said, l)
	}
	return said
}

func TestTuneScript(t *testing.T) {
	k := newTuner(t)
	k.want("vm.swappiness=1", "net.core.somaxconn=4096", "net.ipv4.tcp_rmem=4096 131072 6291456",
		"kernel.numa_balancing=0", "../../etc/passwd=1")
	lines, next, stop := k.start()
	check := func(what string, want []string, swappiness, somaxconn string) {
		t.Helper()
		if diff := cmp.Diff(want, round(lines)); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
		values := map[string]string{"vm/swappiness": swappiness, "net/core/somaxconn": somaxconn, "net/ipv4/tcp_rmem": "4096 131072 6291456"}
		if diff := cmp.Diff(values, k.values()); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	check("first round", []string{
		"vm.swappiness = 1 (was 60)", "net.core.somaxconn = 4096 (was 128)",
		"kernel.numa_balancing: this kernel has no such parameter; skipped",
		"../../etc/passwd: not a parameter's name; skipped",
	}, "1", "4096")
	next()
	check("quiet", nil, "1", "4096")

	if err := os.WriteFile(filepath.Join(k.proc, "vm/swappiness"), []byte("30\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	next()
	check("someone else changed one", []string{"vm.swappiness = 1 (was 30)"}, "1", "4096")

	k.want("vm.swappiness=1")
	next()
	check("one is no longer listed", []string{"net.core.somaxconn = 128 (put back)"}, "1", "128")

	stop(syscall.SIGKILL)
	lines, _, stop = k.start()
	check("killed and started again", nil, "1", "128")
	stop(syscall.SIGTERM)
	if got := k.values()["vm/swappiness"]; got != "60" {
		t.Errorf("after the end vm.swappiness is %s, not the 60 it was", got)
	}
	if left, err := os.ReadDir(k.notes); err != nil || len(left) > 0 {
		t.Errorf("notes left: %v, %v", left, err)
	}
}
