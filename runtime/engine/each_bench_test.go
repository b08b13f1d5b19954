package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
)

// BenchmarkEach is the engine's part of for_each: the first run of every object, then
// the run that one changed object has. The cost of a run must not grow with the number
// of objects.
func BenchmarkEach(b *testing.B) {
	for _, kind := range eachKinds {
		for _, objects := range []int{100, 1000, 5000} {
			name := fmt.Sprintf("%s-%d", kind.name, objects)
			b.Run("first-"+name, func(b *testing.B) {
				for b.Loop() {
					newEachBench(b, objects, kind)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*objects), "ns/run")
			})
			b.Run("change-"+name, func(b *testing.B) {
				x := newEachBench(b, objects, kind)
				for i := 0; b.Loop(); i++ {
					x.change(i)
				}
			})
		}
	}
}

// eachKind is a kind of hook with for_each.
type eachKind struct {
	name    string
	effects func(RunHook) effect.Effects
	global  bool // the hook is a global one, with other modules below it
	schema  string
	// child: changes are those of a child of the object, in another watch.
	child bool
}

var eachKinds = []eachKind{
	{name: "empty", effects: noEffects},
	{name: "child", effects: noEffects, child: true},
	{name: "write", effects: func(RunHook) effect.Effects {
		return effect.Effects{Writes: []effect.Write{{Kind: effect.WriteApply}}}
	}},
	{name: "state", effects: func(a RunHook) effect.Effects {
		return effect.Effects{Memory: effect.Memory{State: map[string]any{"seen": a.Run}}}
	}},
	{name: "values", effects: eachSite("internal.sites.")},
	{name: "schema", effects: eachSite("internal.sites."), schema: `
type: object
properties:
  replicas: {type: integer}
  internal:
    type: object
    default: {}
    properties:
      sites:
        type: object
        additionalProperties: {type: object, properties: {run: {type: integer}, port: {type: integer, default: 80}}}
`},
	{name: "global", effects: eachSite("global.sites."), global: true},
}

func noEffects(RunHook) effect.Effects { return effect.Effects{} }

// eachSite sets a value below path for each object.
func eachSite(path string) func(RunHook) effect.Effects {
	return func(a RunHook) effect.Effects { return set(path+a.Key, map[string]any{"run": int64(a.Run)}) }
}

// BenchmarkEachFails is the run of one changed object while every object fails.
func BenchmarkEachFails(b *testing.B) {
	for _, objects := range []int{100, 500, 8000} {
		b.Run(fmt.Sprint(objects), func(b *testing.B) {
			x := allFail(b, objects)
			for i := 0; b.Loop(); i++ {
				x.change(i)
			}
		})
	}
}

// eachBench carries actions out at once, and notes nothing: the time is the engine's.
type eachBench struct {
	e       *Engine
	now     time.Time
	names   []string
	effects func(RunHook) effect.Effects
	watch   string
	child   bool  // that watch is of children
	err     error // of every run
	runs    int
}

// newEachBench returns an engine in which every object has had its first run.
func newEachBench(b testing.TB, objects int, kind eachKind) *eachBench {
	b.Helper()
	mods := []*generation.Module{mod("web", isOn(), eachHook("a", false))}
	x := &eachBench{effects: kind.effects, watch: eachID}
	if kind.schema != "" {
		mods[0].Tree.ValuesSchema = &tree.File{Path: "web/openapi/values.yaml", Data: []byte(kind.schema)}
	}
	if x.child = kind.child; x.child {
		h := mods[0].Hooks[0]
		h.Bindings, x.watch = append(h.Bindings, onWatch("children")), childrenID
	}
	if kind.global {
		x.watch = "global/a#nodes"
		mods = []*generation.Module{mod(globalName, isOn(), eachHook("a", false))}
		for i := range 20 {
			mods = append(mods, mod(fmt.Sprintf("m%d", i), isOn()))
		}
	}
	w := newWorld(nil, mods...)
	x.e, x.now = New(w.opts), w.now
	for i := range objects {
		x.names = append(x.names, fmt.Sprintf("object-%d", i))
	}
	x.in(Config{State: ConfigPresent})
	x.in(Start{Generation: w.gen})
	if x.runs != objects {
		b.Fatalf("%d objects had %d runs", objects, x.runs)
	}
	if m := x.e.Status().Modules[0]; m.Name != globalName && !strings.HasPrefix(string(m.State), "ready") {
		b.Fatalf("the module is %s: %s", m.State, m.Reason)
	}
	return x
}

// allFail returns an engine in which every object has failed.
func allFail(b testing.TB, objects int) *eachBench {
	b.Helper()
	x := newEachBench(b, objects, eachKind{effects: noEffects})
	x.err = &builtins.FailError{Msg: "boom", Permanent: true} // tried again as its object changes
	for i := range objects {
		x.change(i)
	}
	if h := x.e.Status().Hooks[0]; *h.Failing != objects || !strings.Contains(h.LastError, fmt.Sprintf("and %d other objects fail", objects-1)) {
		b.Fatalf("%d of %d objects fail: %s", *h.Failing, objects, h.LastError)
	}
	return x
}

// change has one object changed, and its run is due at once.
func (x *eachBench) change(i int) {
	x.now = x.now.Add(builtins.DefaultRetry.Min)
	name := x.names[i%len(x.names)]
	ev := builtins.Event{Type: "modified", Binding: "nodes", Name: name}
	if x.child {
		ev = child("of-"+name, effect.WakesKeys(name))
	}
	x.in(WatchChanged{ID: x.watch, Events: []builtins.Event{ev}})
}

func (x *eachBench) in(in Input) {
	queue := x.e.Handle(x.now, in)
	for len(queue) > 0 {
		a := queue[0]
		queue = queue[1:]
		var answer Input
		switch a := a.(type) {
		case StartWatch:
			synced := WatchSynced{ID: a.ID, Served: true}
			if a.Each {
				for _, name := range x.names {
					synced.Objects = append(synced.Objects, Object{Name: name})
				}
			}
			answer = synced
		case RunHook:
			x.runs++
			answer = RunDone{Run: a.Run, Effects: x.effects(a), Err: x.err}
		case Commit:
			answer = Committed{Run: a.Run}
		case Save:
			answer = Saved{Op: a.Op}
		case Release:
			answer = Released{Op: a.Op, Revision: 1}
		default:
			continue
		}
		queue = append(queue, x.e.Handle(x.now, answer)...)
	}
}
