package suite

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/script"
)

// ExploreError says that another order of events ends in another state.
type ExploreError struct {
	// Seed gives the same order again.
	Seed uint64
	// What differs, a line each, and the last of what the seed has done.
	Differences, Trace []string
	// Err is what the test failed with instead, or nil.
	Err error
}

// Error returns one line.
func (e *ExploreError) Error() string {
	if e.Err != nil {
		return e.With() + e.Err.Error()
	}
	return fmt.Sprintf("with -seed %d it ends in another state: %s", e.Seed, e.Differences[0])
}

// With is what errors of a seed begin with: how to have it again.
func (e *ExploreError) With() string { return fmt.Sprintf("with -seed %d: ", e.Seed) }

// Unwrap returns what the test failed with.
func (e *ExploreError) Unwrap() error { return e.Err }

// explore runs a test in the orders of many seeds: the end must be that of the plain
// order. What is expected on the way does not count, for trouble is on the way.
func explore(ctx context.Context, o Options, host *script.Host, file, name string, fn *starlark.Function) (err error) {
	want, err := end(ctx, o, host, file, name, fn, 0)
	if err != nil {
		// A test of failures does not hold where all of them are waited for.
		return nil
	}
	first, last := uint64(1), uint64(o.Explore)
	if o.Seed != 0 {
		first, last = o.Seed, o.Seed
	}
	for seed := first; seed <= last; seed++ {
		got, err := end(ctx, o, host, file, name, fn, seed)
		if err != nil {
			return &ExploreError{Seed: seed, Err: err, Trace: got.trace}
		}
		if lines := differ(got.state, want.state); len(lines) > 0 {
			return &ExploreError{Seed: seed, Differences: lines, Trace: got.trace}
		}
	}
	return nil
}

// ending is what a test ended in.
type ending struct{ state, trace []string }

// end runs a test in the order of a seed, 0 for the plain one, then lets an hour pass
// in which what has failed may succeed, and has another process look at what is left.
func end(ctx context.Context, o Options, host *script.Host, file, name string, fn *starlark.Function, seed uint64) (ending, error) {
	w, err := newWorld(o, file, func(string) {})
	if err != nil {
		return ending{}, err
	}
	if err := w.useSeed(seed); err != nil {
		return ending{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, testLimits.Wall)
	defer cancel()
	_, _, err = host.Call(ctx, fn, starlark.Tuple{builtins.NewTest()}, script.CallOptions{
		Name: file + ":" + name, Limits: testLimits,
		Context: &builtins.Context{Phase: builtins.PhaseTest, Log: discard{}, Test: &builtins.Test{World: w, Ctx: ctx, Lenient: true}},
	})
	trace := w.w.Trace()
	if err == nil && w.started {
		err = w.w.Mend(ctx)
	}
	return ending{w.w.State(), trace}, err
}

// differ names what is in one state and not in the other.
func differ(got, want []string) []string {
	var out []string
	for _, line := range got {
		if !slices.Contains(want, line) {
			out = append(out, "there is    "+cut(line))
		}
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			out = append(out, "there is no "+cut(line))
		}
	}
	return out
}

func cut(line string) string {
	const most = 300
	if len(line) > most {
		return strings.ToValidUTF8(line[:most], "") + "…"
	}
	return line
}
