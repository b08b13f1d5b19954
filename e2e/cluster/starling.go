package cluster

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Options say how [Cluster.Starling] runs a Starling.
type Options struct {
	// Modules is the module tree. Required.
	Modules string
	// Namespace is the operator's. Required.
	Namespace string
	// Name of the instance; "starling" when empty.
	Name string
	// Kubeconfig is the admin's when empty.
	Kubeconfig string
	// StateDir is a new temporary folder when empty. Give the one of an earlier
	// process ([Starling.StateDir]) to start it again. Keep it short: it holds a
	// socket, whose path may have 100 bytes.
	StateDir string
	// Args are more flags of run.
	Args []string
	// ModuleObjects keeps Module objects: one per name of a module in the whole cluster, which
	// tests that go on at the same time share.
	ModuleObjects bool
	// Env are more variables of its environment, as NAME=value.
	Env []string
	// Program is its binary; bin/starling of the repository, or what STARLING_BIN names, when empty.
	Program string
	// Memory is the cgroup that it runs in; nil: the one of the test.
	Memory *MemoryGroup
}

// Starling is a Starling process.
type Starling struct {
	// StateDir is the folder of its socket and of what outlives a crash. It is
	// removed when the test ends, if the test did not choose it.
	StateDir string

	t       testing.TB
	program string
	options Options
	process *Process
}

// Starling starts `starling run`. A test that ends stops it; what it printed goes to the log of
// a test that failed.
func (c *Cluster) Starling(t testing.TB, o Options) *Starling {
	t.Helper()
	program, err := o.Program, error(nil)
	if program == "" {
		program, err = Program()
	}
	if err != nil {
		t.Fatal(err)
	}
	o.Name = cmp.Or(o.Name, "starling")
	o.Kubeconfig = cmp.Or(o.Kubeconfig, c.Kubeconfig)
	s := &Starling{t: t, program: program, options: o, StateDir: o.StateDir}
	if s.StateDir == "" {
		// Not t.TempDir: with the test's name its path gets too long for a socket.
		if s.StateDir, err = os.MkdirTemp("", "starling-"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(s.StateDir) })
	}
	command, args := o.Memory.Command(program, append([]string{"run",
		"--modules", o.Modules, "--namespace", o.Namespace, "--name", o.Name,
		"--kubeconfig", o.Kubeconfig, "--listen", "127.0.0.1:0", "--state-dir", s.StateDir,
		fmt.Sprintf("--module-objects=%t", o.ModuleObjects),
	}, o.Args...)...)
	s.process, err = StartProcess(o.Env, command, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := s.process.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("starling %s/%s printed:\n%s", o.Namespace, o.Name, s.Output())
		}
	})
	return s
}

// Stop sends SIGTERM, waits for the end and returns the exit code.
func (s *Starling) Stop() int {
	s.t.Helper()
	code, err := s.process.Stop()
	if err != nil {
		s.t.Fatal(err)
	}
	return code
}

// Kill sends SIGKILL and waits for the end.
func (s *Starling) Kill() {
	s.process.Signal(syscall.SIGKILL)
	<-s.process.done
}

// Wait waits until the process ends by itself and returns its exit code; -1 when a
// signal ended it. Longer than timeout ends the test.
func (s *Starling) Wait(timeout time.Duration) int {
	s.t.Helper()
	code, err := s.process.Wait(timeout)
	if err != nil {
		s.t.Fatal(err)
	}
	return code
}

// Alive reports whether the process has not ended.
func (s *Starling) Alive() bool {
	select {
	case <-s.process.done:
		return false
	default:
		return true
	}
}

// Process returns the process itself.
func (s *Starling) Process() *Process { return s.process }

// PID returns the number of the process.
func (s *Starling) PID() int { return s.process.PID() }

// Output returns what the process has printed so far, stdout and stderr.
func (s *Starling) Output() string { return s.process.Output() }

// Address waits for the log line of the start and returns the host:port of the HTTP
// server: /metrics, /healthz, /readyz.
func (s *Starling) Address() string {
	s.t.Helper()
	line := regexp.MustCompile(`"listen":"([^"]+)"`)
	var found []string
	Eventually(s.t, settleTimeout, "the address of starling", func() error {
		if found = line.FindStringSubmatch(s.Output()); found == nil {
			return fmt.Errorf("printed %q", s.Output())
		}
		return nil
	})
	return found[1]
}

// Get asks the process with `starling get args… -o json` and returns the JSON. The
// error holds what the command printed to stderr.
func (s *Starling) Get(ctx context.Context, args ...string) ([]byte, error) {
	args = append(append([]string{"get"}, args...), "-o", "json",
		"--namespace", s.options.Namespace, "--name", s.options.Name, "--state-dir", s.StateDir)
	cmd := exec.CommandContext(ctx, s.program, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("starling %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return out, nil
}

// Command runs another command of the program for this instance and returns what it
// prints, on stderr too.
func (s *Starling) Command(ctx context.Context, args ...string) (string, error) {
	args = append(args, "--namespace", s.options.Namespace, "--name", s.options.Name, "--state-dir", s.StateDir)
	out, err := exec.CommandContext(ctx, s.program, args...).CombinedOutput()
	return string(out), err
}

// Command runs a command of the program for no process of this machine, as a person elsewhere does, and returns its
// exit code, and what it prints.
func Command(t testing.TB, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	program, err := Program()
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}
