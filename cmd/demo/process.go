package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

// stopWithin is how long a process has to end after it was asked to.
const stopWithin = 2 * time.Minute

// processOptions describe a program to start.
type processOptions struct {
	Name string   // for people
	Args []string // the program and its arguments
	Log  string   // file that gets all it prints
	// Stdout and Stderr get each line it prints there; nil for nobody.
	Stdout, Stderr func(string)
}

// process is a program that this demo started. It is stopped by its pid, and no
// other process ever is.
type process struct {
	processOptions
	cmd   *exec.Cmd
	err   error         // of its end; read after ended is closed
	ended chan struct{} // closed when it has ended and all its output is read
}

// startProcess starts the program in its own process group: Ctrl-C in the
// terminal then reaches the demo alone, which stops the two in the right order.
func startProcess(o processOptions) (*process, error) {
	log, err := os.Create(o.Log)
	if err != nil {
		return nil, err
	}
	p := &process{processOptions: o, cmd: exec.Command(o.Args[0], o.Args[1:]...), ended: make(chan struct{})}
	var reading sync.WaitGroup
	var writers []*io.PipeWriter
	tee := func(f func(string)) io.Writer {
		if f == nil {
			return log
		}
		out, in := io.Pipe()
		writers = append(writers, in)
		reading.Go(func() { eachLine(out, f) })
		return io.MultiWriter(log, in)
	}
	p.cmd.Stdout, p.cmd.Stderr = tee(o.Stdout), tee(o.Stderr)
	p.cmd.SysProcAttr = childAttributes()
	p.cmd.WaitDelay = stopWithin // it ends a hang alone: on a busy machine the last lines are read late
	finish := func() {
		for _, w := range writers {
			w.Close()
		}
		reading.Wait()
		log.Close()
		close(p.ended)
	}
	if err := p.cmd.Start(); err != nil {
		finish()
		return nil, fmt.Errorf("cannot start %s: %w", o.Args[0], err)
	}
	go func() {
		p.err = p.cmd.Wait()
		finish()
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// died is the error of a process that ended unasked.
func (p *process) died() error {
	how := "ended without an error"
	if p.err != nil {
		how = "ended: " + p.err.Error()
	}
	if tail := p.tail(1); len(tail) > 0 {
		how += ": " + tail[0]
	}
	return fmt.Errorf("%s %s", p.Name, how)
}

// stop asks the process to end and waits. One that does not end in time, or when
// a second signal says that it is urgent, is killed, which is an error.
func (p *process) stop() error {
	select {
	case <-p.ended:
		return nil // the caller has been told why
	default:
	}
	urgent := make(chan os.Signal, 1)
	signal.Notify(urgent, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(urgent)
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot stop %s (pid %d): %w", p.Name, p.pid(), err)
	}
	late := time.NewTimer(stopWithin)
	defer late.Stop()
	select {
	case <-p.ended:
		if p.err != nil {
			return fmt.Errorf("%s did not stop cleanly: %w", p.Name, p.err)
		}
		return nil
	case <-late.C:
	case <-urgent:
	}
	_ = p.cmd.Process.Kill() // it may have ended this moment
	<-p.ended
	return fmt.Errorf("%s (pid %d) had to be killed", p.Name, p.pid())
}

// tail returns the last n lines of what the process printed.
func (p *process) tail(n int) []string {
	f, err := os.Open(p.Log)
	if err != nil {
		return nil
	}
	defer f.Close()
	var last []string
	eachLine(f, func(line string) {
		last = append(last, line)
		if len(last) > n {
			last = last[1:]
		}
	})
	return last
}

// eachLine calls f with each line of r, blank ones aside, until its end. A line of
// over 1 MiB is cut, and never stops the reading: a full pipe would hang its writer.
func eachLine(r io.Reader, f func(string)) {
	const most = 1 << 20
	br := bufio.NewReader(r)
	var line []byte
	for {
		part, more, err := br.ReadLine()
		if err != nil {
			return
		}
		line = append(line, part[:min(len(part), most-len(line))]...)
		if more {
			continue
		}
		if text := strings.TrimSpace(string(line)); text != "" {
			f(text)
		}
		line = line[:0]
	}
}
