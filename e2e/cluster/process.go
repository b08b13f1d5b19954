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

// process is a program that was started. It dies with this process.
type process struct {
	cmd    *exec.Cmd
	output syncBuffer    // stdout and stderr, as they came
	done   chan struct{} // closed when the process has ended
}

// startProcess starts a program, with more variables in its environment.
func startProcess(env []string, program string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(program, args...), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	dieWithParent(p.cmd)
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

// signal sends s; a process that has ended is no error.
func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// wait returns the exit code once the process has ended; -1 when a signal ended it.
func (p *process) wait(timeout time.Duration) (int, error) {
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode(), nil
	case <-time.After(timeout):
		return 0, fmt.Errorf("%s has not ended within %s", filepath.Base(p.cmd.Path), timeout)
	}
}

// stop sends SIGTERM and returns the exit code. A process that hangs is made to
// print its goroutines and killed.
func (p *process) stop() (int, error) {
	p.signal(syscall.SIGTERM)
	code, err := p.wait(stopTimeout)
	if err == nil {
		return code, nil
	}
	p.signal(syscall.SIGQUIT)
	if _, err := p.wait(stopTimeout); err != nil {
		p.signal(syscall.SIGKILL)
		<-p.done
	}
	return 0, fmt.Errorf("%w after SIGTERM; its output:\n%s", err, p.output.String())
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
