package live

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/generation"
)

// toldRuns is a teller, and runs of a hook that it is told of.
type toldRuns struct {
	*testing.T
	told *teller
	out  bytes.Buffer
	runs uint64
}

func newToldRuns(t *testing.T) *toldRuns {
	r := &toldRuns{T: t}
	log := zerolog.New(zerolog.ConsoleWriter{Out: &r.out, NoColor: true, PartsExclude: []string{zerolog.TimestampFieldName}})
	r.told = newTeller(&log)
	return r
}

// run is a run from which these effects come; each object is as the API server shows it after the write.
func (r *toldRuns) run(key string, effects effect.Effects, written ...map[string]any) {
	r.Helper()
	r.runs++
	a := engine.RunHook{Run: r.runs, Key: key, Module: &generation.Module{Name: "web"}, Hook: &generation.Hook{ID: "web/a.star:f", Module: "web"},
		Events: []builtins.Event{{Type: "added", Binding: "nodes"}, {Type: "added", Binding: "nodes"}}}
	for _, obj := range written {
		effects.Writes = append(effects.Writes, effect.Write{Kind: effect.WriteApply, Ref: effect.RefOf(obj)})
	}
	r.told.ran(a, engine.RunDone{Run: a.Run, Effects: effects, Took: 3 * time.Millisecond})
	subject := a.Hook.ID
	if key != "" {
		subject += " of " + key
	}
	cause := (*effect.Cause)(nil).Then(subject, true, "")
	if len(written) > 0 {
		_ = r.told.commit(engine.Commit{Run: a.Run, Module: "web", Hook: a.Hook, Writes: effects.Writes, Cause: cause}, func() error {
			for _, obj := range written {
				r.told.wrote(effect.RefOf(obj), obj, cause)
			}
			return nil
		})
	}
	if len(effects.Values) > 0 {
		r.told.saved(engine.Save{Module: "web", Runs: []uint64{a.Run}}, nil)
	}
}

// says fails the test unless these lines have come since the last call.
func (r *toldRuns) says(want ...string) {
	r.Helper()
	got := slices.Collect(strings.Lines(r.out.String()))
	r.out.Reset()
	for i := range got {
		got[i] = strings.TrimSuffix(got[i], "\n")
	}
	if !slices.Equal(got, want) {
		r.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// settings is a ConfigMap as the API server shows it.
func settings(name, data, version, at string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": data}, "status": version,
		"metadata": map[string]any{"name": name, "namespace": "web", "resourceVersion": version,
			"managedFields": []any{map[string]any{"manager": effect.Manager("web/a.star:f"), "time": at}, map[string]any{"manager": "kubelet", "time": version}}},
	}
}

// A run has a line when something comes of it, and a value or an object when it is another one than before.
func TestRunsAreTold(t *testing.T) {
	r := newToldRuns(t)
	set := func(v any) effect.Effects {
		return effect.Effects{Values: []effect.ValueOp{{Op: effect.OpSet, Path: []string{"internal", "b"}, Value: v}, {Op: effect.OpSet, Path: []string{"a"}, Value: "secret"}}}
	}
	const ran = `INF ran for="nodes: 2 added" hook=web/a.star:f took=3ms`
	r.run("", effect.Effects{})
	r.says(ran) // the first one
	r.run("", effect.Effects{})
	r.says()
	r.run("", set(1))
	r.says(ran, "INF set a, internal.b hook=web/a.star:f")
	r.run("", set(1))
	r.says()
	r.run("", set(2), settings("n", "1", "7", "noon"))
	r.says(ran, "INF wrote ConfigMap web/n hook=web/a.star:f", "INF set a, internal.b hook=web/a.star:f")
	r.run("", effect.Effects{}, settings("n", "1", "8", "noon")) // others have written its status
	r.says()
	r.run("", effect.Effects{}, settings("n", "1", "9", "one")) // somebody has changed it meanwhile
	r.says(ran, "INF wrote ConfigMap web/n hook=web/a.star:f")
	r.run("", effect.Effects{}, settings("n", "2", "10", "one"))
	r.says(ran, "INF wrote ConfigMap web/n hook=web/a.star:f")
	r.run("ns/pod", set(1))
	r.says(`INF ran for="nodes: 2 added" hook=web/a.star:f object=ns/pod took=3ms`, "INF set a, internal.b hook=web/a.star:f object=ns/pod")
}

// A run that writes many objects has few lines.
func TestManyObjectsOfARunAreCounted(t *testing.T) {
	r := newToldRuns(t)
	var many []map[string]any
	for i := range maxTold + 5 {
		many = append(many, settings(fmt.Sprint(i), "1", "1", "noon"))
	}
	r.run("", effect.Effects{}, many...)
	lines := strings.Split(strings.TrimSpace(r.out.String()), "\n")
	if len(lines) != maxTold+2 || lines[len(lines)-1] != "INF wrote more objects hook=web/a.star:f more=5" {
		t.Errorf("%d lines\n%s", len(lines), r.out.String())
	}
}

// Runs and commits that fail are in the log, and have no second line.
func TestFailuresAreLeftToTheLog(t *testing.T) {
	r := newToldRuns(t)
	a := engine.RunHook{Run: 1, Module: &generation.Module{Name: "web"}, Hook: &generation.Hook{ID: "web/a.star:f"}}
	no := errors.New("no")
	r.told.ran(a, engine.RunDone{Err: no})
	r.says()
	r.told.ran(a, engine.RunDone{Effects: effect.Effects{Values: []effect.ValueOp{{Op: effect.OpSet, Path: []string{"a"}, Value: 1}}}})
	r.says("INF ran hook=web/a.star:f took=0s")
	if err := r.told.commit(engine.Commit{Run: 1}, func() error { return no }); !errors.Is(err, no) {
		t.Errorf("the error became %v", err)
	}
	r.told.saved(engine.Save{Runs: []uint64{1}}, nil)
	r.says()
}

// A release that waits, for its objects and for a Job after that, has one line; a process that nobody reads
// along with has none.
func TestAReleaseThatWaitsIsToldOnce(t *testing.T) {
	r := newToldRuns(t)
	tell := r.told.waits(engine.ReleaseRef{Module: "web", Name: "web", Namespace: "ns"}, "waits until its objects are ready")
	tell()
	tell()
	r.says("INF waits until its objects are ready module=web release=ns/web")

	quiet := newTeller(nil)
	quiet.waits(engine.ReleaseRef{}, "waits")()
	quiet.ran(engine.RunHook{}, engine.RunDone{})
	quiet.wrote(effect.Ref{}, nil, &effect.Cause{})
	quiet.saved(engine.Save{}, nil)
	if err := quiet.commit(engine.Commit{}, func() error { return nil }); err != nil {
		t.Error(err)
	}
}
