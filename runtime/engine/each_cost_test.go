package engine

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
)

// The run of one object costs next to the same among 100 objects and among 1,000. Time
// says little on a busy machine, so steps that allocate are counted, and bytes: the maps
// that hold all objects are copied, what is in them is left alone.
func TestEachRunCostsTheSameAmongMany(t *testing.T) {
	for _, kind := range eachKinds {
		cost := func(objects int) (steps, bytes float64) {
			x := newEachBench(t, objects, kind)
			i := 0
			change := func() {
				i++
				x.change(i)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			steps = testing.AllocsPerRun(20, change)
			runtime.ReadMemStats(&after)
			return steps, float64(after.TotalAlloc-before.TotalAlloc) / 21
		}
		few, fewBytes := cost(100)
		many, manyBytes := cost(1000)
		if perObject := (manyBytes - fewBytes) / 900; many > 1.2*few || perObject > 500 {
			t.Errorf("%s: a run takes %v steps among 1,000 objects, %v among 100; %.0f bytes for each other object", kind.name, many, few, perObject)
		}
	}
}

// The failure that is shown is found without a look at all objects that fail. Here it is
// bytes that count: keys put side by side are one step.
func TestEachFailureCostsTheSameAmongMany(t *testing.T) {
	bytes := func(objects int) uint64 {
		x := allFail(t, objects)
		const runs = 50
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range runs {
			x.change(i)
			x.e.Status()
		}
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) / runs
	}
	if few, many := bytes(100), bytes(5000); many > 2*few {
		t.Errorf("a run that fails takes %d bytes among 5,000 objects, %d among 100", many, few)
	}
}

// The same inputs give the same actions: no map's order is seen in the actions.
func TestEachActionsComeInOneOrder(t *testing.T) {
	var first []string
	for try := range 20 {
		w := newWorld(t, mod("web", isOn(), eachHook("a", false)))
		w.hooks["web/a"] = func(a RunHook) (effect.Effects, error) {
			out := set("internal."+a.Key, true)
			out.Metrics = []effect.Metric{{Name: a.Key, Value: 1}}
			out.Requeue = builtins.DefaultRetry.Max
			return out, nil
		}
		for i := range 8 {
			name := fmt.Sprintf("o%d", i)
			w.objects[name] = Object{Name: name}
		}
		w.start()
		w.advance(builtins.DefaultRetry.Max) // all of them ask for another run at one time
		var got []string
		got, w.runs = append(got, w.runs...), nil
		// A new list from which they are gone.
		for _, a := range w.e.Handle(w.now, WatchSynced{ID: eachID, Served: true}) {
			if gone, ok := a.(Unpublish); ok {
				got = append(got, "unpublish "+gone.Key)
			}
		}
		if len(got) != 24 {
			t.Fatalf("%d actions, want 24:\n%q", len(got), got)
		}
		if try == 0 {
			first = got
		}
		if !slices.Equal(got, first) {
			t.Fatalf("try %d:\n%q, before:\n%q", try, got, first)
		}
	}
}
