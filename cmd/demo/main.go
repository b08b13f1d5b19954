// Command demo is what `make run` and `make smoke` start: a control plane, Starling
// on examples/quickstart, and a running commentary on what both do.
//
//	go run ./cmd/demo           goes on until q or Ctrl-C
//	go run ./cmd/demo --check   does the same alone, checks it, and exits
//
// It is started in the top folder and needs bin/devcluster and bin/starling, or what
// --starling names. All
// that it makes lies in one temporary folder, and it stops only what it started.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"github.com/starling-operator/starling/runtime/message"
)

// checkWithin bounds a whole --check, on a slow machine too: elsewhere it takes ten
// seconds.
const checkWithin = 10 * time.Minute

// errQuit ends the demo as asked.
var errQuit = errors.New("quit")

func main() {
	// The kernel ends our children when the thread that started them ends
	// (process_linux.go): that must be a thread that lives as long as we do.
	runtime.LockOSThread()
	check := flag.Bool("check", false, "run alone, check what happens, and exit")
	program := flag.String("starling", "bin/starling", "`file` of the starling to run")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "error: demo takes no arguments, got %q\n", flag.Arg(0))
		os.Exit(1)
	}
	// Our watches lose their API server at every stop; that is no news.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	os.Exit(start(*program, *check))
}

// start runs the demo or the check and returns the exit code.
func start(program string, check bool) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	begin := time.Now()
	if check {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, checkWithin)
		defer cancel()
	}
	d, err := newDemo(begin, program, newPrinter(os.Stdout))
	if err == nil {
		if check {
			err = d.check(ctx)
		} else {
			err = d.show(ctx, lines(os.Stdin))
		}
		// Our watches end, and from here on a signal means: faster.
		stop()
		err = d.stop(err)
	}
	took := time.Since(begin).Round(100 * time.Millisecond).Seconds()
	switch {
	case err == nil && check:
		fmt.Printf("smoke: ok (%.1f s)\n", took)
	case err != nil && check:
		fmt.Fprintf(os.Stderr, "smoke: failed after %.1f s: %s\n", took, message.List(err.Error()))
	case err != nil:
		fmt.Fprintf(os.Stderr, "error: %s\n", message.List(err.Error()))
	}
	if err == nil {
		return 0
	}
	if d != nil {
		d.explain(os.Stderr)
	}
	return 1
}

// check does what a newcomer does, without one: install, add a node, change the
// configuration, look at the status. The cluster must follow each change, with one
// revision and no more.
func (d *demo) check(ctx context.Context) error {
	steps := []struct {
		do       func(context.Context) error
		missing  func() string
		revision int
	}{
		{d.setUp, func() string { return d.story.missing(startNodes) }, 1},
		{d.addNode, func() string { return d.story.missing(startNodes + 1) }, 2},
		{d.changeGreeting, func() string { return d.story.missingGreeting(d.greeting()) }, 3},
		{d.askStatus, func() string { return "" }, 3},
	}
	for _, step := range steps {
		if err := step.do(ctx); err != nil {
			return err
		}
		goal := func() string {
			if missing := step.missing(); missing != "" {
				return missing
			}
			return d.story.missingRevision(step.revision)
		}
		if err := d.follow(ctx, nil, goal); err != nil {
			return err
		}
		if d.story.revision > step.revision {
			return fmt.Errorf("the release hello/hello has revision %d where %d changes were made", d.story.revision, step.revision)
		}
	}
	return nil
}

// show installs, says what to try, and tells what happens until q or a signal.
func (d *demo) show(ctx context.Context, keys <-chan string) error {
	if err := d.setUp(ctx); err != nil {
		return ignoreSignal(ctx, err)
	}
	if err := d.follow(ctx, nil, func() string { return d.story.missing(startNodes) }); err != nil {
		return ignoreSignal(ctx, err)
	}
	d.invite()
	err := d.follow(ctx, keys, func() string { return "you" })
	if errors.Is(err, errQuit) {
		return nil
	}
	return ignoreSignal(ctx, err)
}

// ignoreSignal makes Ctrl-C a good end.
func ignoreSignal(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil
	}
	return err
}

// lines sends what people type, a line at a time, and closes at the end of input.
func lines(r io.Reader) <-chan string {
	out := make(chan string)
	go func() {
		defer close(out)
		eachLine(r, func(line string) { out <- line })
	}()
	return out
}
