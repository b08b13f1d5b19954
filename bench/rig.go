package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"

	"github.com/starling-operator/starling/e2e/cluster"
)

// bench is what sections measure with: a control plane, and the table. It stands on the rig of e2e/, and so
// it is a test: Fatal ends a section, in whose goroutine it must be called, and what a section has started
// ends with it.
type bench struct {
	testing.TB // nil: the methods below are all that the rig calls

	ctx        context.Context
	broken     context.CancelCauseFunc // ends the run, as when a child has died
	quick      bool
	far        bool // the API server is far away
	parents    int  // of the section controllers; 0: as many as usual
	began      time.Time
	dir        string
	program    string // bin/starling
	cluster    *cluster.Cluster
	kubeconfig string
	client     kubernetes.Interface
	installed  bool // the modules of thousand
	table      table

	cleanups []func()
	failure  error
}

func (b *bench) Helper() {}

func (b *bench) Context() context.Context { return b.ctx }

func (b *bench) Cleanup(f func()) { b.cleanups = append(b.cleanups, f) }

// Failed has the logs of processes printed. Those of a run that was interrupted say nothing.
func (b *bench) Failed() bool { return b.failure != nil && b.ctx.Err() == nil }

func (b *bench) Error(args ...any) {
	b.failure = errors.Join(b.failure, errors.New(strings.TrimSpace(fmt.Sprintln(args...))))
}

func (b *bench) Errorf(format string, args ...any) { b.Error(fmt.Sprintf(format, args...)) }

func (b *bench) Fatal(args ...any) {
	b.Error(args...)
	runtime.Goexit()
}

func (b *bench) Fatalf(format string, args ...any) { b.Fatal(fmt.Sprintf(format, args...)) }

func (b *bench) Logf(format string, args ...any) { b.say(format, args...) }

func (b *bench) TempDir() string {
	dir, err := os.MkdirTemp(b.dir, "")
	b.check(err)
	return dir
}

// check ends the section at an error.
func (b *bench) check(errs ...error) {
	if err := errors.Join(errs...); err != nil {
		b.Fatal(err)
	}
}

// measure runs a section, and then what it has left to clean up.
func (b *bench) measure(s section) error {
	b.failure = nil
	apart(func() { s.run(b) })
	b.cleanUp(0)
	return b.failure
}

// cleanUp does what is left to clean up, last first, but for the first few.
func (b *bench) cleanUp(but int) {
	for len(b.cleanups) > but {
		last := b.cleanups[len(b.cleanups)-1]
		b.cleanups = b.cleanups[:len(b.cleanups)-1]
		apart(last)
	}
}

// scope calls f, and cleans up what f has left.
func (b *bench) scope(f func()) {
	before := len(b.cleanups)
	f()
	b.cleanUp(before)
}

// apart calls f in a goroutine that Fatal may end.
func apart(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

// setUp finds the program and makes the folder.
func (b *bench) setUp() (err error) {
	if b.program, err = cluster.Program(); err != nil {
		return err
	}
	b.dir, err = os.MkdirTemp("", "starling-bench-")
	return err
}

// startCluster starts the control plane.
func (b *bench) startCluster() error {
	b.say("control plane …")
	var err error
	if b.cluster, err = cluster.Start(); err != nil {
		return err
	}
	b.cluster.Process().Watch(b.broken)
	b.kubeconfig = b.cluster.Kubeconfig
	if b.client, err = newClient(b.kubeconfig); err != nil {
		return err
	}
	return b.createNamespace(operatorNamespace)
}

// close stops the control plane, and removes the folder.
func (b *bench) close() error {
	var errs []error
	if b.cluster != nil {
		errs = append(errs, b.cluster.Stop())
	}
	if b.dir != "" {
		errs = append(errs, os.RemoveAll(b.dir))
	}
	return errors.Join(errs...)
}

// say tells on stderr what goes on.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%6.1f s  %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}

// size returns how many there are of something, on a whole run and with -quick.
func (b *bench) size(whole, quick int) int {
	if b.quick {
		return quick
	}
	return whole
}

// sizeFar returns size, or fewer far away, where everything takes longer.
func (b *bench) sizeFar(whole, far, quick int) int {
	if b.far {
		whole = far
	}
	return b.size(whole, quick)
}

// lasts returns size as seconds.
func (b *bench) lasts(whole, quick int) time.Duration {
	return time.Duration(b.size(whole, quick)) * time.Second
}

// patience is how long anything here may take before the bench gives up.
const patience = 10 * time.Minute

// wait calls done every few milliseconds until it holds.
func (b *bench) wait(what string, done func() bool) {
	b.waitEvery(5*time.Millisecond, what, done)
}

// waitEvery calls done until it holds, with a pause after each call: an answer may cost what is measured.
func (b *bench) waitEvery(rest time.Duration, what string, done func() bool) {
	for late := time.Now().Add(patience); !done(); b.pause(rest) {
		if time.Now().After(late) {
			b.Fatalf("%s: not within %s", what, patience)
		}
	}
}

// waitSteady calls read until it returns the same number twice, with a pause before each call.
func (b *bench) waitSteady(what string, pause func(), read func() int) {
	before := -1
	b.waitEvery(0, what, func() bool {
		pause()
		now := read()
		defer func() { before = now }()
		return now == before
	})
}

// pause lets everything settle: what was started goes idle, freed memory goes back.
func (b *bench) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-b.ctx.Done():
		b.Fatal(b.ctx.Err())
	}
}

// settle rests before memory or processor time is read.
func (b *bench) settle() { b.pause(b.lasts(10, 1)) }

// each calls do for 0 to n-1 with several workers, which must not call Fatal.
func (b *bench) each(workers, n int, do func(i int) error) {
	group, ctx := errgroup.WithContext(b.ctx)
	group.SetLimit(workers)
	for i := range n {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error { return do(i) })
	}
	b.check(group.Wait())
}

// stop stops a process, which must end well. One that has ended was asked to, or has ended the run.
func (b *bench) stop(p *cluster.Process) {
	select {
	case <-p.Done():
		return
	default:
	}
	code, err := p.Stop()
	b.check(err)
	if code != 0 {
		b.Fatalf("%s ended with exit code %d: %s", p.Name(), code, p.Output())
	}
}

// cpu returns the processor time that processes have used together; 0 where the system does not tell.
func (b *bench) cpu(processes ...*cluster.Process) (sum time.Duration) {
	for _, p := range processes {
		if runtime.GOOS == "linux" {
			used, err := p.CPU()
			b.check(err)
			sum += used
		}
	}
	return sum
}

// cpuOf returns the processor time that processes use together while do works.
func (b *bench) cpuOf(do func(), processes ...*cluster.Process) time.Duration {
	before := b.cpu(processes...)
	do()
	return b.cpu(processes...) - before
}

// memory reads the resident memory of a process; nothing where the system does not tell.
func (b *bench) memory(pid int) cluster.Memory {
	if runtime.GOOS != "linux" {
		return cluster.Memory{}
	}
	m, err := cluster.MemoryOf(pid)
	b.check(err)
	return m
}

// needsLinux adds a row that says so where memory and processor time cannot be read.
func (b *bench) needsLinux(what string) bool {
	if runtime.GOOS == "linux" {
		return false
	}
	b.add(what, "read on Linux only", "")
	return true
}

// writeTree writes files by path into a folder of the run, and returns it.
func (b *bench) writeTree(name string, tree map[string]string) string {
	root := filepath.Join(b.dir, name)
	for path, text := range tree {
		path = filepath.Join(root, filepath.FromSlash(path))
		b.check(os.MkdirAll(filepath.Dir(path), 0o755))
		b.check(os.WriteFile(path, []byte(text), 0o644))
	}
	return root
}
