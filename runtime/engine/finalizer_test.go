package engine

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine/finalizers"
	"github.com/starling-operator/starling/runtime/generation"
)

// committing has a run of the only hook begin and succeed; its commit does not end.
func (w *world) committing(hook string, key string, effects effect.Effects) (run uint64) {
	w.t.Helper()
	w.hold = hook
	w.in(WatchChanged{ID: hook + "#nodes", Events: []builtins.Event{{Type: "modified", Binding: "nodes", Name: key}}})
	run = w.held[hook][0].(RunHook).Run
	w.hold = ""
	for _, a := range w.e.Handle(w.now, RunDone{Run: run, Effects: effects}) {
		if _, is := a.(Commit); !is {
			w.carryOut(a)
		}
	}
	return run
}

// A commit that is under way may put the finalizer on an object after the sweep of a hook
// that has gone, and nobody would take it off any more.
func TestAFinalizerIsTakenOffAfterTheLastCommit(t *testing.T) {
	other := code("1", hk("other", onStartup(0)))
	w := newWorld(t, mod("web", isOn(), code("1", eachHook("each", true)), other))
	w.objects["a"] = Object{Name: "a"}
	w.start()
	run := w.committing("web/each", "a", effect.Effects{})
	w.unheld = nil
	w.reload(mod("web", isOn(), other))
	if len(w.unheld) > 0 {
		t.Error("it is swept while a commit is under way")
	}
	w.in(Committed{Run: run})
	if len(w.unheld) != 1 || !w.e.modules["web"].finalizers.Empty() {
		t.Errorf("swept %v, there are %v", w.unheld, w.e.modules["web"].finalizers)
	}
}

// So may one of a module that was switched off and on meanwhile, when its object has left the selection.
func TestObjectsThatLeftAreSweptAfterTheLastCommit(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), eachHook("a", true)))
	w.objects["a"] = Object{Name: "a"}
	w.start()
	run := w.committing("web/a", "a", effect.Effects{})
	w.in(Config{State: ConfigPresent, Data: map[string]string{"webEnabled": "false"}})
	delete(w.objects, "a")
	w.unheld = nil
	w.in(Config{State: ConfigPresent, Data: map[string]string{"webEnabled": "true"}})
	if len(w.unheld) > 0 {
		t.Error("it is swept while a commit is under way")
	}
	w.in(Committed{Run: run})
	if len(w.unheld) != 1 {
		t.Errorf("swept %v", w.unheld)
	}
}

// The objects of a kind are not those of a kind of the same name in another group.
func TestAFinalizerGoesFromTheKindOfAnotherGroup(t *testing.T) {
	things := func(apiVersion string) *generation.Module {
		h := code(apiVersion, eachHook("each", true))
		h.Bindings[0].Watch.APIVersion, h.Bindings[0].Watch.Kind = apiVersion, "Thing"
		return mod("web", isOn(), h)
	}
	for to, want := range map[string][]string{"b.io/v1": {"a.io/v1"}, "a.io/v2": nil} {
		w := newWorld(t, things("a.io/v1"))
		w.start()
		w.reload(things(to))
		if !slices.Equal(w.swept, want) {
			t.Errorf("%s: swept %v, want %v", to, w.swept, want)
		}
		if f := finalizers.Read(w.kept["web"]); len(f) != 1 || f[0].APIVersion != to {
			t.Errorf("%s: kept %v", to, f)
		}
	}
}

// The sets of an object go when it does, those too that are applied in that moment.
func TestSetsOfAnObjectThatGoesAreDroppedAfterTheLastCommit(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), eachHook("each", false)))
	w.objects["a"] = Object{Name: "a"}
	w.start()
	run := w.committing("web/each", "a", effect.Effects{Writes: []effect.Write{
		{Kind: effect.WriteSet, Set: &effect.Set{Name: "s"}, Owner: &effect.Owner{}},
	}})
	w.in(WatchChanged{ID: "web/each#nodes", Events: []builtins.Event{{Type: "deleted", Binding: "nodes", Name: "a"}}})
	dropped := 0
	for _, a := range w.e.Handle(w.now, Committed{Run: run}) {
		if a, is := a.(DropSets); is && a.Key == "a" {
			dropped++
		}
	}
	if dropped != 1 {
		t.Errorf("dropped %d times", dropped)
	}
}

// While the kind of the objects is not served nobody knows whether they are there: nothing is cleaned up, and what was
// set for them stays, also over a start and a change of the code, which wait for none of them. Once it is served those
// that have gone are forgotten, and those that the watch does not select any more are looked for.
func TestObjectsOfAKindThatIsNotServed(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), code("1", eachHook("a", true))))
	var cleaned []string
	fails := false
	w.hooks["web/a"] = func(r RunHook) (effect.Effects, error) {
		if r.Cleanup {
			cleaned = append(cleaned, r.Key)
		}
		if fails {
			return effect.Effects{}, errBoom
		}
		return set("seen."+r.Key, true), nil
	}
	w.objects["a"], w.objects["b"] = Object{Name: "a"}, Object{Name: "b"}
	w.start()
	w.unserved = true
	for _, what := range []string{"it goes away", "a start", "other code"} {
		switch what {
		case "it goes away":
			w.in(WatchSynced{ID: eachID})
			w.in(WatchChanged{ID: eachID, Events: []builtins.Event{{Type: "modified", Binding: "nodes", Name: "a"}}})
		case "a start":
			w.start()
		case "other code":
			h := eachHook("a", true)
			h.Bindings[0].Watch.Events = []string{"modified"} // nothing runs as the kind comes back
			w.reload(mod("web", isOn(), code("2", h)))
		}
		w.advance(time.Hour)
		if got := fmt.Sprint(w.e.Values("web")["seen"]); got != "map[a:true b:true]" {
			t.Errorf("%s: values %s", what, got)
		}
		w.state("web", status.ModuleReady, "")
	}

	w.unserved = false
	delete(w.objects, "b")
	w.unheld = nil
	for id := range w.e.watches {
		w.in(WatchSynced{ID: id, Served: true, Objects: []Object{w.objects["a"]}})
	}
	w.advance(time.Hour)
	if len(cleaned) > 0 {
		t.Errorf("cleaned up %v", cleaned)
	}
	if len(w.unheld) != 1 {
		t.Errorf("looked for those that have the finalizer %d times", len(w.unheld))
	}
	h := w.e.modules["web"].byKey["web/a"]
	if h.subjects.At("a") == nil || h.subjects.At("b") != nil {
		t.Errorf("there are %v", h.subjects.All())
	}

	// A cleanup that fails, and cannot be tried again meanwhile, is tried once the kind is served.
	fails = true
	w.happens("deleted", "a")
	id := slices.Collect(maps.Keys(w.e.watches))[0]
	w.unserved = true
	w.in(WatchSynced{ID: id})
	w.advance(time.Hour)
	fails, w.unserved = false, false
	w.in(WatchSynced{ID: id, Served: true, Objects: []Object{w.objects["a"]}})
	w.advance(time.Hour)
	if !slices.Equal(cleaned, []string{"a", "a"}) || len(w.objects) > 0 {
		t.Errorf("cleaned up %v, there are %v", cleaned, w.objects)
	}
}
