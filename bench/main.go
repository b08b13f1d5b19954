// Command bench measures Starling beside what it is made of: a bare client-go loop
// and a plain loop over the Helm SDK, on the same control plane, in the same run.
//
//	go run ./bench                        everything, in a few minutes
//	go run ./bench -quick                 small sizes, to see that it works
//	go run ./bench -only=events,burst     some of its sections; -help lists them
//
// It is started in the top folder and needs bin/devcluster and bin/starling; the
// environment variables STARLING_DEVCLUSTER and STARLING_BIN name others. All that it
// starts it stops, and what it writes lies in temporary folders. The exit code
// says whether it could measure, never how fast it was. docs/benchmarks.md explains
// the rows.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// section is one part of the benchmark. Its rows go into the table.
type section struct {
	name string
	run  func(*bench)
	// offline sections need no control plane.
	offline bool
}

func sections() []section {
	return []section{
		{"events", (*bench).events, false},
		{"burst", (*bench).burst, false},
		{"memory", (*bench).snapshots, false},
		{"modules", (*bench).modules, false},
		{"heal", (*bench).heal, false},
		{"runs", (*bench).againAndAgain, false},
		{"start", (*bench).starts, false},
		{"rest", (*bench).atRest, false},
		{"reload", (*bench).reloads, false},
		{"each", (*bench).forEach, false},
		{"distance", (*bench).farAway, false},
		{"admission", (*bench).admission, false},
		{"replicas", (*bench).replicas, false},
		{"offline", (*bench).offline, true},
		{"guards", (*bench).guards, true},
		{"charts", (*bench).charts, true},
		{"thousand", (*bench).manyModules, false},
		{"global", (*bench).globalValue, false},
		{"scale", (*bench).scale, false},
		{"controllers", (*bench).controllers, false},
	}
}

func main() {
	// Watches that lose their API server at the end are no news.
	klog.SetLogger(logr.Discard())
	if is, err := runBare(os.Args[1:]); is {
		os.Exit(exitCode(err))
	}
	quick := flag.Bool("quick", false, "small sizes, to see that it works; such numbers mean little")
	names := strings.Join(sectionNames(sections()), ", ")
	only := flag.String("only", "", "comma-separated `sections` to run: "+names+"; all by default")
	parents := flag.Int("parents", 0,
		"how many parents the section controllers has; 0: as many as its aims are for, or few with -quick")
	flag.Parse()
	if flag.NArg() > 0 {
		os.Exit(exitCode(fmt.Errorf("bench takes no arguments, got %q", flag.Arg(0))))
	}
	chosen, err := choose(sections(), *only)
	if err != nil {
		os.Exit(exitCode(err))
	}
	os.Exit(exitCode(run(os.Stdout, chosen, *quick, *parents)))
}

func exitCode(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "error:", strings.ReplaceAll(err.Error(), "\n", "; "))
	return 1
}

// choose returns the sections that only names, in their own order; all for "".
func choose(all []section, only string) ([]section, error) {
	if only == "" {
		return all, nil
	}
	names := strings.Split(only, ",")
	known := sectionNames(all)
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("-only=%s: there is no section %q; use %s", only, name, strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(all, func(s section) bool { return !slices.Contains(names, s.name) }), nil
}

func sectionNames(all []section) []string {
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = s.name
	}
	return names
}

// run measures and prints the table, as far as it got.
func run(out io.Writer, chosen []section, quick bool, parents int) (err error) {
	signals, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	ctx, cancel := context.WithCancelCause(signals)
	defer cancel(nil)
	b := &bench{ctx: ctx, broken: cancel, quick: quick, parents: parents, began: time.Now()}
	defer func() {
		switch {
		case signals.Err() != nil:
			err = errors.New("interrupted")
		case ctx.Err() != nil: // what failed with it failed because of it
			err = context.Cause(ctx)
		}
		err = errors.Join(err, b.close())
	}()
	if err := b.setUp(); err != nil {
		return err
	}
	if slices.ContainsFunc(chosen, func(s section) bool { return !s.offline }) {
		if err := b.startCluster(); err != nil {
			return err
		}
	}
	defer b.table.print(out)
	for _, s := range chosen {
		b.say("%s …", s.name)
		if err := b.measure(s); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}
