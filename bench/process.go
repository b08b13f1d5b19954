package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// stopWithin is how long a process has to end after it was asked to.
const stopWithin = 20 * time.Second

// process is a program that the bench started. It is stopped by its pid, and no
// other process ever is.
type process struct {
	cmd    *exec.Cmd
	output lockedBuffer // stdout and stderr
	began  time.Time
	asked  atomic.Bool   // to end
	err    error         // of its end; read after ended is closed
	ended  chan struct{} // closed when it has ended
}

func startProcess(program string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(program, args...), began: time.Now(), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	p.cmd.SysProcAttr = childAttributes()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", program, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

func (p *process) name() string { return filepath.Base(p.cmd.Path) }

// died is the error of a process that ended unasked, with its last words.
func (p *process) died() error {
	lines := strings.Split(strings.TrimSpace(p.output.String()), "\n")
	return fmt.Errorf("%s ended (%v): %s", p.name(), p.err, lines[len(lines)-1])
}

// stop asks the process to end and waits. One that does not end in time is killed,
// which is an error.
func (p *process) stop() error {
	if p.asked.Swap(true) {
		return nil
	}
	select {
	case <-p.ended:
		return nil // died has told
	default:
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot stop %s: %w", p.name(), err)
	}
	late := time.NewTimer(stopWithin)
	defer late.Stop()
	select {
	case <-p.ended:
		if p.err != nil {
			return fmt.Errorf("%s did not stop cleanly: %w", p.name(), p.err)
		}
		return nil
	case <-late.C:
		_ = p.cmd.Process.Kill() // it may have ended this moment
		<-p.ended
		return fmt.Errorf("%s had to be killed", p.name())
	}
}

// memory is the resident memory of a process in bytes.
type memory struct {
	now, peak int64
	// file is the part of now that shows files, the program above all: the kernel
	// may take it back at any time, and counts it as it likes.
	file int64
}

// memory asks the kernel, which tells it on Linux alone.
func (p *process) memory() (memory, error) { return memoryOf(p.cmd.Process.Pid) }

func memoryOf(pid int) (memory, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return memory{}, fmt.Errorf("resident memory can be read on Linux only: %w", err)
	}
	return memory{now: kernelBytes(data, "VmRSS"), peak: kernelBytes(data, "VmHWM"), file: kernelBytes(data, "RssFile")}, nil
}

// cpuTick is the unit in which Linux tells of time: USER_HZ is 100 everywhere.
const cpuTick = 10 * time.Millisecond

// cpu is the processor time that a process has used, in user and in kernel mode.
func (p *process) cpu() (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("processor time can be read on Linux only: %w", err)
	}
	return kernelTime(data)
}

// kernelTime reads the sum of utime and stime, fields 14 and 15. Field 2, the name, may
// hold anything but ends with the last parenthesis.
func kernelTime(stat []byte) (time.Duration, error) {
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/<pid>/stat has an unexpected form")
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * cpuTick, errors.Join(err, err2)
}

// kernelBytes reads a line "VmRSS:   1234 kB".
func kernelBytes(status []byte, key string) int64 {
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, key+":"); ok {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err == nil {
				return n << 10
			}
		}
	}
	return 0
}

// lockedBuffer is a bytes.Buffer that may be read while a process writes to it.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// String returns all that was written so far.
func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
