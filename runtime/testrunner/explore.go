package testrunner

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/script"
	"github.com/starling-operator/starling/runtime/sim"
)

// ExploreError says that another order of events ends in another state, that hooks fail once the test is over,
// or that controllers do not keep what they promise.
type ExploreError struct {
	// Seed gives the same order again; 0: it is the plain one.
	Seed uint64
	// Skipped says that parents of controllers went from their first state to their last one at once.
	Skipped bool
	// The differences, one per line, and the last of what the seed has done.
	Differences, Trace []string
	// Err is what the test failed with instead, or nil.
	Err error
	// Log is what was said in that order, and what the seed has done, as it went on.
	Log []string
}

// Error returns one line.
func (e *ExploreError) Error() string {
	if e.Err != nil {
		return e.With() + e.Err.Error()
	}
	text := "in the plain order, too, hooks fail once the test is over, or controllers do not keep what they promise"
	switch {
	case e.Skipped:
		text = "parents end in another state when they go from their first state to their last one at once: desired, or a child, goes by what was between"
	case e.Seed != 0:
		text = fmt.Sprintf("with -seed %d it ends in another state", e.Seed)
	}
	if len(e.Differences) == 1 { // more of them stand below
		text += ": " + e.Differences[0]
	}
	return text
}

// With is what errors of a seed begin with: how to have it again.
func (e *ExploreError) With() string {
	switch {
	case e.Skipped:
		return "without the states between: "
	case e.Seed == 0:
		return "in the plain order: "
	}
	return fmt.Sprintf("with -seed %d: ", e.Seed)
}

// Unwrap returns what the test failed with.
func (e *ExploreError) Unwrap() error { return e.Err }

// explore runs a test in the orders of many seeds: the end must be that of the plain
// order. An expectation on the way does not count, for trouble is on the way.
func explore(ctx context.Context, o Options, host *script.Host, file, name string, fn *starlark.Function) (err error) {
	want, err := end(ctx, o, host, file, name, fn, way{})
	if err != nil {
		// A test of failures does not hold where all of them are waited for.
		return nil
	}
	// The test has not seen these: they came in the hour after it, or with the other process.
	wrong := append(slices.Sorted(maps.Values(want.failures)), want.broken...)
	if len(wrong) > 0 {
		return &ExploreError{Differences: wrong, Log: want.log}
	}
	if err := skipped(ctx, o, host, file, name, fn, want); err != nil {
		return err
	}
	first, orders := max(o.Seed, 1), uint64(max(o.Explore, 1))
	for seed := first; seed-first < orders; seed++ {
		got, err := end(ctx, o, host, file, name, fn, way{seed: seed})
		failed := &ExploreError{Seed: seed, Err: err, Trace: got.trace, Log: got.log}
		if err == nil {
			failed.Differences = slices.Concat(differ(got, want), got.broken, got.late)
		}
		if err != nil || len(failed.Differences) > 0 {
			return failed
		}
	}
	return nil
}

// ending is what a test ended in.
type ending struct {
	state []sim.Held
	// failures are those that nobody expects, by what fails.
	failures map[string]string
	// broken is what controllers do not keep, kept are children that stay as they were made: see
	// [sim.World.Broken].
	broken []string
	kept   []effect.Ref
	// late is what waited too long for its next try: see [sim.World.Late].
	late []string
	// changes are those that the test makes to parents.
	changes changes
	trace   []string
	log     []string
}

// way is how a test is run: in the order of a seed, 0 for the plain one, or with the changes of parents
// left out that are neither their first nor their last one.
type way struct {
	seed uint64
	skip changes
}

// patience is how many times the time of a test one of its orders has: it waits for what
// the seed had fail, and of thousands one may meet a machine that has too much to do.
const patience = 5

// end runs a test, then lets an hour pass in which what has failed may succeed, and has another process
// look at what is left.
func end(ctx context.Context, o Options, host *script.Host, file, name string, fn *starlark.Function, by way) (ending, error) {
	var out ending
	w, err := newWorld(o, file, &by, func(text string) { out.log = append(out.log, text) })
	if err != nil {
		return out, err
	}
	defer w.w.Stop()
	limits := testLimits
	limits.Wall *= patience
	ctx, cancel := context.WithTimeout(ctx, limits.Wall)
	defer cancel()
	_, _, err = host.Call(ctx, fn, starlark.Tuple{builtins.NewTest()}, script.CallOptions{
		Name: file + ":" + name, Limits: limits,
		Context: &builtins.Context{Phase: spec.InTest, Log: lines{w.say},
			Test: &builtins.Test{World: w, Ctx: ctx, Lenient: true}},
	})
	out.trace, out.late = w.w.Trace(), w.w.Late()
	if err == nil {
		err = w.catchUp(ctx)
	}
	if err == nil && w.started {
		err = w.w.Mend(ctx)
	}
	out.changes = w.changes
	out.state, out.failures = w.w.State(), map[string]string{}
	for i, held := range out.state {
		out.state[i].Name = w.nameOf(held)
		out.state[i].Fields = w.without(held)
	}
	number(out.state)
	for _, f := range w.look() {
		out.failures[f.Module+" "+f.Hook+" "+f.Key] = w.said(f)
	}
	if err == nil && w.started {
		out.broken, out.kept, err = w.w.Broken(ctx)
	}
	return out, err
}

// differ names what is in one ending and not in the other.
func differ(got, want ending) []string {
	var out []string
	a, b := byName(got.state), byName(want.state)
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if b[name] == nil {
			out = append(out, "there is "+name+", which the plain order does not leave")
		} else {
			for _, line := range object.Differences(object.FromPlain(a[name]), object.FromPlain(b[name])) {
				out = append(out, name+": "+line)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b)) {
		if a[name] == nil {
			out = append(out, "there is no "+name+", which the plain order leaves")
		}
	}
	for _, of := range slices.Sorted(maps.Keys(got.failures)) {
		out = append(out, got.failures[of])
	}
	return out
}

func byName(state []sim.Held) map[string]map[string]any {
	out := map[string]map[string]any{}
	for _, held := range state {
		out[held.Name] = held.Fields
	}
	return out
}

// varying is a field that differs from one order to the next, and may.
type varying struct {
	kind string
	path object.Path
}

// Vary has explorations leave out a field of all objects of a kind.
func (w *world) Vary(kind string, path object.Path) {
	w.varying = append(w.varying, varying{kind, path})
}

// without is what is held without the fields that may differ.
func (w *world) without(held sim.Held) map[string]any {
	for _, v := range w.varying {
		if v.kind == held.Kind {
			remove(held.Fields, v.path.Resolve(held.Fields))
		}
	}
	return held.Fields
}

// aName stands for names that differ from one order to the next, and may.
const aName = "(a name that varies)"

// nameOf is the name of what is held, without one that may differ.
func (w *world) nameOf(held sim.Held) string {
	for _, v := range w.varying {
		name, is := v.path.Get(held.Fields)
		if is && v.kind == held.Kind && slices.Equal(v.path.Resolve(held.Fields), []string{"metadata", "name"}) {
			return strings.TrimSuffix(held.Name, fmt.Sprint(name)) + aName
		}
	}
	return held.Name
}

// number tells those apart whose names may differ, by what they hold.
func number(state []sim.Held) {
	of := map[string][]*sim.Held{}
	for i, held := range state {
		if strings.HasSuffix(held.Name, aName) {
			of[held.Name] = append(of[held.Name], &state[i])
		}
	}
	for _, list := range of {
		slices.SortFunc(list, func(a, b *sim.Held) int { return bytes.Compare(asJSON(a.Fields), asJSON(b.Fields)) })
		for i, held := range list {
			held.Name += fmt.Sprint(" ", i+1)
		}
	}
}

func asJSON(fields map[string]any) []byte {
	data, _ := json.Marshal(fields) // they come from JSON
	return data
}

func remove(fields map[string]any, keys []string) {
	for i, key := range keys {
		if i == len(keys)-1 {
			delete(fields, key)
			return
		}
		fields, _ = fields[key].(map[string]any)
	}
}
