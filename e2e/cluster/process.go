package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// find returns the program that the environment variable names, or else the one
// that make has put into bin.
func find(variable, name string) (string, error) {
	if path := os.Getenv(variable); path != "" {
		return path, nil
	}
	root, err := repository()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, "bin", name)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		target := map[string]string{"devcluster": "devcluster", "starling": "build"}[name]
		return "", fmt.Errorf("%s is missing: run make %s first, or name another program in %s", path, target, variable)
	} else if err != nil {
		return "", err
	}
	return path, nil
}

// Program is bin/starling of the repository, or what STARLING_BIN names.
func Program() (string, error) { return find("STARLING_BIN", "starling") }

// repository is the folder of our go.mod; tests run in the folder of their package.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(data), "module github.com/starling-operator/starling\n") {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("the repository of starling is not above the working directory")
		}
	}
}

// Process is a program that was started. It dies with this process.
type Process struct {
	Began time.Time

	cmd    *exec.Cmd
	output syncBuffer    // stdout and stderr, as they came
	asked  atomic.Bool   // to end
	done   chan struct{} // closed when the process has ended
}

// StartProcess starts a program, with more variables in its environment.
func StartProcess(env []string, program string, args ...string) (*Process, error) {
	p := &Process{Began: time.Now(), cmd: exec.Command(program, args...), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	DieWithParent(p.cmd)
	started := make(chan error)
	go func() {
		defer close(p.done)
		// Linux kills the child when the thread that started it ends, so the
		// thread is held until the child has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // its exit code is in ProcessState
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// Name returns the name of the program's file.
func (p *Process) Name() string { return filepath.Base(p.cmd.Path) }

// PID returns the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Output returns what the process has printed so far, stdout and stderr.
func (p *Process) Output() string { return p.output.String() }

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Watch calls lost when the process ends although nobody has asked it to, with its last line.
func (p *Process) Watch(lost func(error)) {
	go func() {
		<-p.done
		if !p.asked.Load() {
			lines := strings.Split(strings.TrimSpace(p.Output()), "\n")
			lost(fmt.Errorf("%s has ended (%v): %s", p.Name(), p.cmd.ProcessState, lines[len(lines)-1]))
		}
	}()
}

// Signal sends s; a process that has ended is no error.
func (p *Process) Signal(s syscall.Signal) {
	if s == syscall.SIGTERM || s == syscall.SIGKILL {
		p.asked.Store(true)
	}
	_ = p.cmd.Process.Signal(s)
}

// Wait returns the exit code once the process has ended; -1 when a signal ended it.
func (p *Process) Wait(timeout time.Duration) (int, error) {
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode(), nil
	case <-time.After(timeout):
		return 0, fmt.Errorf("%s has not ended within %s", p.Name(), timeout)
	}
}

// Stop sends SIGTERM and returns the exit code. A process that hangs is made to
// print its goroutines and killed.
func (p *Process) Stop() (int, error) {
	p.Signal(syscall.SIGTERM)
	code, err := p.Wait(stopTimeout)
	if err == nil {
		return code, nil
	}
	p.Signal(syscall.SIGQUIT)
	if _, err := p.Wait(stopTimeout); err != nil {
		p.Signal(syscall.SIGKILL)
		<-p.done
	}
	return 0, fmt.Errorf("%w after SIGTERM; its output:\n%s", err, p.Output())
}

// syncBuffer is a bytes.Buffer that may be read while a process writes to it.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// String returns all that was written so far.
func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
