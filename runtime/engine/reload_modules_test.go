package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
)

// Modules come and go: a new one is installed, one whose folder is gone is uninstalled
// with what was kept for it, one with another weight stays.
func TestModulesComeAndGo(t *testing.T) {
	web, shop := webAndShop()
	w := newWorld(t, web, shop)
	w.hooks["shop/a"] = func(RunHook) (effect.Effects, error) { return set("n", int64(1)), nil }
	w.start()
	if len(w.kept["shop"]) == 0 {
		t.Fatal("nothing is kept")
	}
	w.reload(web, mod("new", isOn(), code("1", hk("a", onWatch("nodes")))))
	w.wantRuns("new/a sync")
	w.wantWatched("-shop/a#nodes", "+new/a#nodes#")
	if !slices.Equal(w.gone, []string{"shop"}) || len(w.kept["shop"]) > 0 || !slices.Contains(w.left, "shop") {
		t.Errorf("gone %v, kept %v, left %v", w.gone, copyKept(w.kept), w.left)
	}
	w.state("new", status.ModuleReady, "")

	ten := 10
	decl := isOn()
	decl.Weight = &ten
	w.reload(mod("web", decl, code("1", hk("a", onWatch("nodes"))), code("1", hk("b", onStartup(0)))), w.gen.Modules["new"])
	w.wantRuns()
	w.wantWatched()
	w.wantReleased("web#1", "shop#1", "new#1")
}

// A module that comes back has what it had, and waits for nobody but itself.
func TestAModuleThatComesBack(t *testing.T) {
	web, shop := webAndShop()
	w := newWorld(t, web, shop)
	w.hooks["shop/a"] = func(RunHook) (effect.Effects, error) { return set("n", int64(1)), nil }
	w.start()

	// Helm is at work on it, so nothing can be taken away yet.
	w.holdHelm = "shop"
	w.in(Config{State: ConfigPresent, Data: map[string]string{"shop": "x: 1"}})
	w.reload(web)
	if len(w.gone) > 0 {
		t.Fatal("uninstalled while helm upgrades it")
	}
	edited := mod("web", isOn(), code("2", hk("a", onWatch("nodes"))))
	for range 2 { // gone again, and back
		w.reload(edited)
		w.reload(edited, shop)
		w.wantRuns("shop/a sync")
	}
	if w.gen.Modules["shop"] == nil || w.revision["web"] == 0 {
		t.Fatal("the tree is not in force")
	}
	w.holdHelm = ""
	held := w.heldHelm
	w.in(Released{Op: held.Op, Changed: true, Revision: 2})
	if len(w.gone) > 0 {
		t.Fatalf("gone %v", w.gone)
	}
	w.state("shop", status.ModuleReady, "")
	if got := w.e.Values("shop"); got["n"] != int64(1) || got["x"] != int64(1) {
		t.Errorf("values are %v", got)
	}
}

// A module that comes back while its release is being uninstalled begins once that is done; all
// others are as in the tree meanwhile.
func TestAModuleThatComesBackAsItIsUninstalled(t *testing.T) {
	web, shop := webAndShop()
	w := newWorld(t, web, shop)
	w.hooks["shop/a"] = func(RunHook) (effect.Effects, error) { return set("n", int64(1)), nil }
	w.start()
	w.holdUninstall = true
	w.reload(web)
	w.state("shop", status.ModuleUninstalling, "")
	edited := mod("web", isOn(), code("2", hk("a", onWatch("nodes"))))
	w.reload(edited, shop)
	w.wantRuns("web/a sync")
	w.state("shop", status.ModuleUninstalling, "")
	w.holdUninstall = false
	w.in(w.carryOut(w.heldUninstall))
	w.wantRuns("shop/a sync")
	w.state("shop", status.ModuleReady, "")
	if len(w.installed) != 2 || len(w.gone) != 1 || len(w.e.gone()) > 0 {
		t.Errorf("installed %v, gone %v, not in the tree %v", w.installed, w.gone, w.e.agenda.Others())
	}
}

// A run that is under way ends with the code that it began with: what it asks for counts,
// and the new code runs after it.
func TestARunUnderWayEndsOnItsGeneration(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), code("1", hk("a", onWatch("nodes"))), code("1", hk("b", onWatch("nodes")))))
	w.start()
	w.hold = "web/a"
	w.changed("web/a#nodes")
	run := w.held["web/a"][0].(RunHook)
	w.hold = ""
	w.reload(mod("web", isOn(), code("2", hk("a", onWatch("nodes"))), code("1", hk("b", onWatch("nodes")))))
	w.wantRuns()
	w.in(RunDone{Run: run.Run, Effects: set("n", int64(1))})
	w.wantRuns("web/a sync")
	if got := w.e.Values("web"); got["n"] != nil {
		t.Errorf("values are %v: the new code sets nothing", got)
	}

	// One of a hook that is gone counts for nothing.
	w.hold = "web/b"
	w.changed("web/b#nodes")
	run = w.held["web/b"][0].(RunHook)
	w.hold = ""
	w.reload(mod("web", isOn(), code("2", hk("a", onWatch("nodes")))))
	w.in(RunDone{Run: run.Run, Effects: set("n", int64(1))})
	if got := w.e.Values("web"); got["n"] != nil {
		t.Errorf("values are %v: the hook is gone", got)
	}
	w.state("web", status.ModuleReady, "")
}

// A hook that moves to another line of work, or is about objects from now on, begins
// once its runs of before have ended.
func TestAHookThatIsAnotherOneWaitsForTheOneBefore(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), code("1", hk("a", onWatch("nodes")))))
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) { return set("n", int64(1)), nil }
	w.start()
	w.hold = "web/a"
	w.changed("web/a#nodes")
	run := w.held["web/a"][0].(RunHook)
	w.hold = ""
	elsewhere := code("2", hk("a", onWatch("nodes")))
	elsewhere.Queue = "slow"
	w.reload(mod("web", isOn(), elsewhere))
	w.wantRuns()
	if got := w.e.Values("web"); got["n"] != int64(1) {
		t.Errorf("values are %v", got)
	}
	w.in(RunDone{Run: run.Run})
	w.wantRuns("web/a sync")
	w.state("web", status.ModuleReady, "")
	for _, l := range w.e.Load().Lanes {
		if len(l.Waiting) > 0 {
			t.Errorf("something waits for ever: %+v", l)
		}
	}
}

// The tree's values.yaml concerns those whose sections it moves, and runs no hook.
func TestAReloadWithOtherValues(t *testing.T) {
	web, shop := webAndShop()
	w := newWorld(t, web, shop)
	w.start()
	w.values = map[string]any{"web": map[string]any{"replicas": int64(5)}, "shopEnabled": false}
	w.reload(web, shop)
	w.wantRuns()
	w.wantReleased("shop#1", "web#1", "web#2")
	w.state("shop", status.ModuleOff, "shopEnabled: false")
	if !slices.Equal(w.gone, []string{"shop"}) {
		t.Errorf("gone %v", w.gone)
	}
}

// enabled() is asked again when its code may have changed, and its old answer stays in
// force meanwhile.
func TestAReloadAsksEnabledAgain(t *testing.T) {
	web := mod("web", isOn(), code("1", hk("a", onWatch("nodes"))))
	w := newWorld(t, web)
	w.start()
	asked := 0
	answer := builtins.AnswerOn
	w.enabled["web"] = func(map[string]any) (builtins.Decision, error) {
		asked++
		return builtins.Decision{Answer: answer, Reason: "so"}, nil
	}
	next := mod("web", isOn(), code("1", hk("a", onWatch("nodes"))))
	next.Enabled = noFunction{}
	w.reload(next)
	w.wantWatched() // it went on
	w.state("web", status.ModuleReady, "")
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	answer = builtins.AnswerDisabled
	again := *next
	w.reload(&again)
	w.state("web", status.ModuleOff, "so")
	if w.module("web").Enabled {
		t.Error("enabled() says no, and the module is told to be enabled")
	}
	if !slices.Equal(w.gone, []string{"web"}) {
		t.Errorf("gone %v", w.gone)
	}
}

// The hooks that take requests are told anew, and those of a module without any no more.
func TestAReloadServesOtherHooks(t *testing.T) {
	answers := builtins.Binding{Name: "hook", Receive: &builtins.ReceiveBinding{Path: "/a"}}
	w := newWorld(t, mod("web", isOn(), code("1", hk("a", answers))), mod("shop", isOn()))
	w.start()
	w.served = nil
	w.reload(mod("web", isOn(), code("2", hk("a", answers)), code("1", hk("b", answers))), w.gen.Modules["shop"])
	w.reload(mod("web", isOn()), w.gen.Modules["shop"])
	w.reload(w.gen.Modules["shop"])
	if diff := cmp.Diff([]string{"web: web/a web/b", "web:"}, w.served); diff != "" {
		t.Error(diff)
	}
}

// A module that comes back answers requests and reviews again.
func TestAModuleThatComesBackServes(t *testing.T) {
	web, shop := webAndShop()
	web.Hooks[0].Bindings = append(web.Hooks[0].Bindings, builtins.Binding{Name: "hook", Receive: &builtins.ReceiveBinding{Path: "/a"}}, builtins.Binding{Name: "v", Admission: &builtins.AdmissionBinding{}})
	w := newWorld(t, web, shop)
	w.opts.Grace = time.Minute
	w.start()
	w.served = nil
	w.reload(shop)
	w.reviews = nil
	w.reload(web, shop)
	if diff := cmp.Diff([]string{"web:", "web: web/a"}, w.served); diff != "" {
		t.Error(diff)
	}
	if n := len(w.reviews); n == 0 || w.reviews[n-1].Refused != "" {
		t.Errorf("reviews are %+v", w.reviews)
	}
}

// Other CRDs are applied, before the chart that comes with them, and no hook runs for it.
func TestAReloadWithOtherCRDs(t *testing.T) {
	web := func(crd string, replicas int64) *generation.Module {
		m := mod("web", isOn(), code("1", hk("a", onWatch("nodes"))))
		m.Tree.CRDs = []tree.File{{Path: "web/crds/a.yaml", Data: []byte(crd)}}
		m.Tree.Values = map[string]any{"replicas": replicas}
		return m
	}
	w := newWorld(t, web("one", 1))
	w.start()
	w.reload(web("one", 2))
	w.wantReleased("web#1", "web#2")
	if !slices.Equal(w.crds, []string{"web"}) {
		t.Errorf("CRDs were applied of %v", w.crds)
	}
	w.reload(web("two", 3))
	w.wantRuns()
	w.wantWatched()
	w.wantReleased("web#1", "web#2", "web#3")
	if !slices.Equal(w.crds, []string{"web", "web"}) {
		t.Errorf("CRDs were applied of %v", w.crds)
	}
	w.state("web", status.ModuleReady, "")
}
