package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine/finalizers"
	"github.com/starling-operator/starling/runtime/generation"
)

const eachID = "web/a#nodes"

// each is a hook with for_each; cleanup gives it a finalizer.
func eachHook(id string, cleanup bool) *generation.Hook {
	h := hk(id, onWatch("nodes"))
	h.ForEach, h.Parallel = "nodes", 4
	if cleanup {
		h.Cleanup = noFunction{}
	}
	return h
}

func (w *world) synced(a StartWatch) Input {
	in := WatchSynced{ID: a.ID, Served: !w.unserved}
	if a.Each && !w.unserved {
		for _, key := range slices.Sorted(maps.Keys(w.objects)) {
			in.Objects = append(in.Objects, w.objects[key])
		}
	}
	return in
}

// happens changes an object and has the watch say so. A name of "" is none; deleted takes
// it away, or with the finalizer on it only marks it.
func (w *world) happens(typ, name string) {
	w.t.Helper()
	o, there := w.objects[name]
	o.Name = name
	if typ == "deleted" {
		if o.Held && there {
			o.Deleting = true
			typ = "modified"
		} else {
			delete(w.objects, name)
		}
	}
	if typ != "deleted" {
		w.objects[name] = o
	}
	w.in(w.event(typ, o, false))
}

func (w *world) event(typ string, o Object, same bool) WatchChanged {
	id := eachID
	for known := range w.e.watches {
		if strings.HasPrefix(known, eachID) {
			id = known
		}
	}
	return WatchChanged{ID: id, Events: []builtins.Event{{Type: typ, Binding: "nodes", Name: o.Name,
		Deleting: o.Deleting, Held: o.Held, Same: same, Result: starlark.String(o.Name)}}}
}

// write does to objects what hold and release do.
func (w *world) write(writes []effect.Write) {
	for _, wr := range writes {
		o, there := w.objects[wr.Ref.Name]
		if !there {
			continue
		}
		switch wr.Kind {
		case effect.WriteAddFinalizer:
			o.Held = true
			w.objects[o.Name] = o
			w.queue = append(w.queue, w.e.Handle(w.now, w.event("modified", o, true))...)
		case effect.WriteRemoveFinalizer:
			o.Held = false
			w.objects[o.Name] = o
			typ := "modified"
			if o.Deleting {
				delete(w.objects, o.Name)
				typ = "deleted"
			}
			w.queue = append(w.queue, w.e.Handle(w.now, w.event(typ, o, true))...)
		}
	}
}

func (w *world) unhold(a Unhold) Input {
	for name, o := range w.objects {
		if a.Watch == "" {
			o.Held = false
			w.objects[name] = o
		}
	}
	w.unheld = append(w.unheld, a.Finalizer)
	if a.Watch == "" {
		w.swept = append(w.swept, a.APIVersion)
	}
	return Unheld{Op: a.Op}
}

func eachWorld(t *testing.T, cleanup bool, names ...string) *world {
	w := newWorld(t, mod("web", isOn(), eachHook("a", cleanup)))
	for _, name := range names {
		w.objects[name] = Object{Name: name}
	}
	return w
}

func sorted(runs []string) string {
	runs = slices.Clone(runs)
	slices.Sort(runs)
	return strings.Join(runs, "; ")
}

func (w *world) ran(want string) {
	w.t.Helper()
	if got := sorted(w.runs); got != want {
		w.t.Errorf("runs %s, want %s", got, want)
	}
	w.runs = nil
}

func TestEachObjectHasRunsOfItsOwn(t *testing.T) {
	w := eachWorld(t, false, "x", "y")
	bad := ""
	w.hooks["web/a"] = func(r RunHook) (effect.Effects, error) {
		if r.Key == bad {
			return effect.Effects{}, errBoom
		}
		n, _ := r.State["n"].(int64)
		eff := set("seen."+r.Key, n)
		eff.State = map[string]any{"n": n + 1}
		return eff, nil
	}
	w.start()
	w.ran("web/a[x] sync; web/a[y] sync")
	w.state("web", status.ModuleReady, "")
	w.happens("modified", "x")
	w.ran("web/a[x] modified")
	bad = "z"
	w.happens("added", "z")
	w.happens("modified", "y")
	w.ran("web/a[y] modified; web/a[z] added")
	if h := w.e.Status().Hooks[0]; h.State != status.HookFailed || *h.Objects != 3 || *h.Failing != 1 || !strings.HasPrefix(h.LastError, "z: ") {
		t.Errorf("hook is %+v", h)
	}
	w.advance(time.Second)
	w.ran("web/a[z] added")
	bad = ""
	w.advance(time.Minute)
	w.ran("web/a[z] added")
	if h := w.e.Status().Hooks[0]; h.State != status.HookOK {
		t.Errorf("hook is %+v", h)
	}
	if got := fmt.Sprint(w.e.Values("web")["seen"]); got != "map[x:1 y:1 z:0]" {
		t.Errorf("values %s", got)
	}
	w.happens("deleted", "x")
	w.ran("")
	if got := fmt.Sprint(w.e.Values("web")["seen"]); got != "map[y:1 z:0]" {
		t.Errorf("values %s: what an object has set goes with it", got)
	}
	for key := range w.kept["web"] {
		if strings.Contains(key, "of-x") {
			t.Errorf("%s is kept", key)
		}
	}
	before := copyKept(w.kept)
	w.hooks["web/a"] = func(r RunHook) (effect.Effects, error) {
		return set("seen."+r.Key, r.State["n"].(int64)-1), nil
	}
	delete(w.objects, "y") // while nobody looked
	w.start()
	w.ran("web/a[z] sync")
	if got := fmt.Sprint(w.e.Values("web")["seen"]); got != "map[z:0]" {
		t.Errorf("values %s after a restart, kept %v", got, before)
	}
}

func TestOneMalformedObjectStopsNobodyElse(t *testing.T) {
	w := eachWorld(t, false, "bad", "good")
	w.hooks["web/a"] = func(r RunHook) (effect.Effects, error) {
		if r.Key == "bad" {
			return effect.Effects{}, &builtins.FailError{Msg: "malformed", Permanent: true}
		}
		return effect.Effects{Requeue: time.Hour}, nil
	}
	w.start()
	w.ran("web/a[bad] sync; web/a[good] sync")
	w.state("web", status.ModuleReady, "")
	w.wantReleased("web#1")
	w.advance(150 * time.Minute)
	w.ran("web/a[good] requeue; web/a[good] requeue")
	w.happens("modified", "bad")
	w.ran("web/a[bad] sync,modified")
	w.happens("deleted", "bad")
	w.happens("deleted", "good")
	w.advance(3 * time.Hour)
	w.ran("")
	if h := w.e.Status().Hooks[0]; *h.Objects != 0 || h.LastError != "" || len(w.e.requeues()) != 0 {
		t.Errorf("something is left: %+v", h)
	}
}

func TestTheChartWaitsForEachObjectsFirstRun(t *testing.T) {
	w := eachWorld(t, false, "x", "y")
	w.hold = "web/a"
	w.start()
	w.wantReleased()
	w.state("web", status.ModuleStarting, "waits for hook a")
	w = eachWorld(t, false)
	w.start()
	w.wantReleased("web#1") // nothing to wait for
}

func TestParallelRunsOfOneHookAlone(t *testing.T) {
	w := eachWorld(t, false)
	for i := range 10 {
		name := fmt.Sprint("n", i)
		w.objects[name] = Object{Name: name}
	}
	w.hold = "web/a"
	w.start()
	if len(w.runs) != 4 {
		t.Errorf("%d runs at once, want 4", len(w.runs))
	}
}

func TestEventsOfAnotherWatchAreOfEveryObject(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), eachHook("a", false)))
	h := w.gen.Modules["web"].Hooks[0]
	h.Bindings = append(h.Bindings, builtins.Binding{Name: "other", Watch: &builtins.WatchBinding{APIVersion: "v1", Kind: "Secret"}})
	w.objects = map[string]Object{"x": {Name: "x"}, "y": {Name: "y"}}
	w.start()
	w.ran("web/a[x] sync,sync; web/a[y] sync,sync")
	w.in(WatchChanged{ID: "web/a#other", Events: []builtins.Event{{Type: "added", Binding: "other", Name: "s"}}})
	w.ran("web/a[x] added; web/a[y] added")
}

// Work for all objects at once goes in the order of their names: the same inputs
// give the same runs, one after the other.
func TestObjectsGoInOrder(t *testing.T) {
	var names, want []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("n%02d", i))
		want = append(want, "web/a["+names[i]+"] sync")
	}
	w := eachWorld(t, false, names...)
	w.start()
	if !slices.Equal(w.runs, want) {
		t.Errorf("runs %s", w.runs)
	}
}

func TestCleanup(t *testing.T) {
	w := eachWorld(t, true, "x")
	fails := true
	w.hooks["web/a"] = func(r RunHook) (effect.Effects, error) {
		if r.Cleanup && fails {
			return effect.Effects{}, errBoom
		}
		return set("seen."+r.Key, true), nil
	}
	w.start()
	w.ran("web/a[x] sync")
	if !w.objects["x"].Held {
		t.Fatal("no finalizer")
	}
	w.happens("added", "y")
	w.ran("web/a[y] added")
	w.happens("modified", "y")
	w.ran("web/a[y] modified") // has the finalizer already
	w.happens("deleted", "x")
	w.ran("web/a[x] cleanup")
	if _, there := w.objects["x"]; !there {
		t.Error("gone before its cleanup has succeeded")
	}
	w.happens("modified", "y")
	w.ran("web/a[y] modified")
	fails = false
	w.advance(time.Minute)
	w.ran("web/a[x] cleanup")
	if _, there := w.objects["x"]; there {
		t.Error("still held")
	}
	if got := fmt.Sprint(w.e.Values("web")["seen"]); got != "map[y:true]" {
		t.Errorf("values %s", got)
	}
	// Deleted while nobody looked.
	w.objects["y"] = Object{Name: "y", Deleting: true, Held: true}
	w.objects["z"] = Object{Name: "z", Deleting: true} // no business of ours
	w.start()
	w.ran("web/a[y] cleanup")
	if len(w.objects) != 1 {
		t.Errorf("left: %v", w.objects)
	}
}

func TestCleanupOfWhatIsNoLongerWatched(t *testing.T) {
	w := eachWorld(t, true, "x")
	w.start()
	w.runs = nil
	o := w.objects["x"]
	w.in(w.event("deleted", o, false)) // its labels do not match any more
	w.ran("web/a[x] cleanup")
	if w.objects["x"].Held {
		t.Error("the finalizer stays")
	}
}

func TestFinalizersGoWithTheModule(t *testing.T) {
	w := eachWorld(t, true, "x")
	w.start()
	if n := len(finalizers.Read(w.kept["web"])); n != 1 || len(w.unheld) != 1 {
		t.Fatalf("%d finalizers are kept, looked for strays %v", n, w.unheld)
	}
	off(w, "web")
	if w.objects["x"].Held || len(w.kept["web"]) > 0 {
		t.Errorf("left: %v, kept %v", w.objects, w.kept["web"])
	}
	// A hook that is gone.
	w = eachWorld(t, true, "x")
	w.start()
	w.gen.Modules["web"].Hooks = nil
	w.start()
	if w.objects["x"].Held || len(w.kept["web"]) > 0 {
		t.Errorf("left: %v, kept %v", w.objects, w.kept["web"])
	}
	// A module that is gone.
	w = eachWorld(t, true, "x")
	w.gen.Modules["other"], w.gen.Names = mod("other", isOn()), []string{"other", "web"}
	w.start()
	delete(w.gen.Modules, "web")
	w.gen.Names = []string{"other"}
	w.start()
	if w.objects["x"].Held || len(w.kept["web"]) > 0 {
		t.Errorf("left: %v, kept %v", w.objects, w.kept["web"])
	}
}

func TestNothingIsHeldBeforeThatIsKept(t *testing.T) {
	w := eachWorld(t, true, "x")
	w.saveErr = errBoom
	w.start()
	w.ran("")
	w.saveErr = nil
	w.advance(time.Minute)
	w.ran("web/a[x] sync")
}

func TestStatesAreSavedTogether(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), eachHook("a", false)))
	for i := range 100 {
		name := fmt.Sprint("n", i)
		w.objects[name] = Object{Name: name}
	}
	w.gen.Modules["web"].Hooks[0].Parallel = 100
	w.hooks["web/a"] = func(r RunHook) (effect.Effects, error) {
		return effect.Effects{Memory: effect.Memory{State: map[string]any{"n": int64(1)}}}, nil
	}
	w.start()
	if w.saves > 3 || len(w.kept["web"]) != 100 {
		t.Errorf("%d saves, %d states are kept", w.saves, len(w.kept["web"]))
	}
}

// Actions for objects that went while no process ran come in the order of the objects, each time.
func TestObjectsThatAreGoneAreForgottenInOrder(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), eachHook("a", false)))
	w.hooks["web/a"] = func(a RunHook) (effect.Effects, error) {
		return effect.Effects{Metrics: []effect.Metric{{Kind: effect.MetricSet, Name: "n", Value: 1}}}, nil
	}
	w.start()
	var want []string
	for i := range 10 {
		name := fmt.Sprint("n", i)
		w.happens("added", name)
		want = append(want, name)
	}
	var got []string
	for _, a := range w.e.Handle(w.now, WatchSynced{ID: eachID, Served: true}) {
		if u, ok := a.(Unpublish); ok {
			got = append(got, u.Key)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("forgotten are %q, want %q", got, want)
	}
}
