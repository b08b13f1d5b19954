package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine/releases"
	"github.com/starling-operator/starling/runtime/generation"
)

func off(w *world, module string) {
	w.in(Config{State: ConfigPresent, Data: map[string]string{module + "Enabled": "false"}})
}

func TestDeleteHooksRunAroundTheUninstall(t *testing.T) {
	w := newWorld(t, mod("web", isOn(),
		hk("bye", onStage(builtins.StageBeforeDelete), onWatch("nodes")),
		hk("gone", onStage(builtins.StageAfterDelete)),
		hk("other", onWatch("nodes"))))
	uninstalled := func() int { return len(w.gone) }
	w.hooks["web/bye"] = func(r RunHook) (effect.Effects, error) {
		if r.Events[0].Type == "delete" && uninstalled() > 0 {
			t.Error("before_delete came after the uninstall")
		}
		return effect.Effects{}, nil
	}
	w.hooks["web/gone"] = func(RunHook) (effect.Effects, error) {
		if uninstalled() == 0 {
			t.Error("after_delete came before the uninstall")
		}
		return effect.Effects{}, nil
	}
	w.start()
	w.runs = nil
	off(w, "web")
	w.wantRuns("web/bye delete", "web/gone delete")
	if diff := cmp.Diff([]string{"web"}, w.gone); diff != "" {
		t.Error(diff)
	}
	w.state("web", status.ModuleOff, "webEnabled: false")
	w.changed("web/other#nodes")
	w.wantRuns() // nothing of it runs any more
	// On again, and nothing of its leaving is left.
	w.in(Config{State: ConfigPresent})
	w.state("web", status.ModuleReady, "")
	w.wantRuns("web/bye sync", "web/other sync")
}

func TestAnUninstallWaitsForItsHook(t *testing.T) {
	fails := true
	w := newWorld(t, mod("web", isOn(), hk("bye", onStage(builtins.StageBeforeDelete))))
	w.hooks["web/bye"] = func(RunHook) (effect.Effects, error) {
		if fails {
			return effect.Effects{}, errBoom
		}
		return effect.Effects{}, nil
	}
	w.start()
	off(w, "web")
	w.state("web", status.ModuleFailed, "before_delete hook bye: ")
	// A restart goes on where it was.
	w.start()
	off(w, "web")
	w.advance(time.Minute)
	if len(w.gone) > 0 {
		t.Fatal("uninstalled past a failing before_delete hook")
	}
	// A user who switches the module on again keeps the release.
	w.in(Config{State: ConfigPresent})
	w.state("web", status.ModuleReady, "")
	off(w, "web")
	fails = false
	w.advance(time.Minute)
	if diff := cmp.Diff([]string{"web"}, w.gone); diff != "" {
		t.Error(diff)
	}
	w.state("web", status.ModuleOff, "")
}

func TestBeforeAllComesBeforeModules(t *testing.T) {
	fails := true
	w := newWorld(t, mod(globalName, builtins.ModuleDecl{},
		hk("all", onStage(builtins.StageBeforeAll)), hk("first", onStartup(0))),
		mod("web", isOn(), hk("a", onStartup(0))))
	w.hooks["global/all"] = func(RunHook) (effect.Effects, error) {
		if fails {
			return effect.Effects{}, errBoom
		}
		return effect.Effects{}, nil
	}
	w.start()
	w.wantRuns("global/first startup", "global/all all")
	w.state("web", status.ModuleBlocked, "global hook global/all fails")
	fails = false
	w.advance(time.Second)
	w.wantRuns("global/all all", "web/a startup")
	w.advance(time.Hour)
	w.wantRuns()
}

// One that says so comes again when the user's config of global values changes.
func TestBeforeAllComesAgain(t *testing.T) {
	each := onStage(builtins.StageBeforeAll)
	each.Stage.Always = true
	w := newWorld(t, mod(globalName, builtins.ModuleDecl{}, hk("each", each), hk("once", onStage(builtins.StageBeforeAll))),
		mod("web", isOn()))
	w.start()
	w.wantRuns("global/each all", "global/once all")
	w.in(Config{State: ConfigPresent, Data: map[string]string{"web": "n: 1"}})
	w.wantRuns()
	w.hooks["global/each"] = func(RunHook) (effect.Effects, error) { return set("global.derived", int64(2)), nil }
	w.in(Config{State: ConfigPresent, Data: map[string]string{"web": "n: 1", "global": "n: 2"}})
	w.wantRuns("global/each all")
	if last := w.released[len(w.released)-1]; !strings.Contains(last, "derived:2") {
		t.Error(last)
	}
	w.in(Config{State: ConfigPresent, Data: map[string]string{"web": "n: 1", "global": "n: 2"}})
	w.advance(time.Hour)
	w.wantRuns()
}

func TestAfterAllComesWhenAllIsAtRest(t *testing.T) {
	n := int64(0)
	settles := true
	w := newWorld(t, mod(globalName, builtins.ModuleDecl{}, hk("all", onStage(builtins.StageAfterAll))),
		mod("db", isOn()), mod("web", isOn(), hk("a", onWatch("nodes"))))
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) { return set("n", n), nil }
	w.hooks["global/all"] = func(RunHook) (effect.Effects, error) {
		if len(w.released) < 2 {
			t.Error("after_all came before all had been released")
		}
		if !settles {
			n++
			return set("global.n", n), nil
		}
		return effect.Effects{}, nil
	}
	w.start()
	w.wantRuns("web/a sync", "global/all all")
	w.advance(time.Hour)
	w.wantRuns() // quiet
	n = 1
	w.changed("web/a#nodes")
	w.wantRuns("web/a modified", "global/all all")
	// One that always sets all to work is stopped.
	settles = false
	n++
	w.changed("web/a#nodes")
	if got := strings.Count(strings.Join(w.runs, "\n"), "global/all"); got != releases.MaxRounds {
		t.Errorf("after_all ran %d times", got)
	}
}

// underWay hands an input over, and returns the uninstall that follows without an answer.
func (w *world) underWay(in Input) Uninstall {
	w.t.Helper()
	for queue := w.e.Handle(w.now, in); len(queue) > 0; queue = queue[1:] {
		if a, is := queue[0].(Uninstall); is {
			w.queue = append(w.queue, queue[1:]...)
			return a
		}
		if in := w.carryOut(queue[0]); in != nil {
			queue = append(queue, w.e.Handle(w.now, in)...)
		}
	}
	w.t.Fatal("nothing is uninstalled")
	return Uninstall{}
}

// after_delete hooks run before the next install, also of a module that is switched on while
// it is uninstalled.
func TestAfterDeleteComesBeforeTheNextInstall(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("last", onStage(builtins.StageAfterDelete))))
	w.start()
	a := w.underWay(Config{State: ConfigPresent, Data: map[string]string{"webEnabled": "false"}})
	w.in(Config{State: ConfigPresent})
	w.hooks["web/last"] = func(RunHook) (effect.Effects, error) {
		if len(w.released) > 1 {
			t.Error("after_delete came after the next install")
		}
		return effect.Effects{}, nil
	}
	w.runs, w.last = nil, map[string]string{}
	w.in(w.carryOut(a))
	w.wantRuns("web/last delete")
	w.wantReleased("web#1", "web#2")
	w.state("web", status.ModuleReady, "")
}

// Kept state of an earlier version says nothing of the delete hooks.
func TestDeleteHooksRunWithoutAnythingKept(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("last", onStage(builtins.StageAfterDelete))))
	w.installed = []ReleaseRef{{Module: "web", Name: "web", Namespace: "ops"}}
	w.start()
	w.in(Config{State: ConfigPresent})
	w.kept, w.runs = map[string]map[string][]byte{}, nil
	w.e = New(w.opts)
	w.in(Config{State: ConfigPresent, Data: map[string]string{"webEnabled": "false"}})
	w.in(Start{Generation: w.gen, Installed: w.installed})
	w.wantRuns("web/last delete")
	w.state("web", status.ModuleOff, "webEnabled: false")
}

// A hook that must not run holds its release, with its reason, where the release needs what it
// sets, and nothing where it comes after.
func TestAQuarantinedHookOfAStage(t *testing.T) {
	start := func(h *generation.Hook) *world {
		w := newWorld(t, mod("web", isOn(), h, hk("n", onWatch("nodes"))))
		n := int64(0)
		w.hooks["web/n"] = func(RunHook) (effect.Effects, error) { n++; return set("n", n), nil }
		w.e = New(w.opts)
		w.in(Config{State: ConfigPresent})
		w.in(Start{Generation: w.gen, Barred: map[string]string{h.ID: "quarantined"}})
		w.changed("web/n#nodes")
		if ready, why := w.e.Ready(); !ready {
			t.Error(why)
		}
		return w
	}
	w := start(hk("b", onBefore()))
	w.wantReleased()
	w.state("web", status.ModuleFailed, "hook b: quarantined")
	w = start(hk("a", onAfter()))
	w.wantReleased("web#1", "web#2")
	w.state("web", status.ModuleReady, "")
}

// A module that is off runs nothing but hooks of startup(when_off=True), once until it comes up.
func TestHooksOfAModuleThatIsOff(t *testing.T) {
	migrates := func(order int) builtins.Binding {
		b := onStartup(order)
		b.Startup.WhenOff = true
		return b
	}
	fails := true
	w := newWorld(t, mod("web", builtins.ModuleDecl{}, hk("migrate", migrates(2)), hk("early", migrates(1)), hk("first", onStartup(0)), hk("nodes", onWatch("nodes"))))
	w.hooks["web/migrate"] = func(RunHook) (effect.Effects, error) {
		if fails {
			return effect.Effects{}, errBoom
		}
		return set("n", int64(1)), nil
	}
	w.start()
	w.wantRuns("web/early startup", "web/migrate startup")
	if got := w.e.Failures(); len(got) != 1 || got[0].Hook != "web/migrate" {
		t.Errorf("fails: %+v", got)
	}
	fails = false
	w.advance(2 * time.Second)
	w.wantRuns("web/migrate startup")
	w.in(Config{State: ConfigPresent, Data: map[string]string{"web": "{a: 1}"}})
	w.advance(time.Hour)
	w.wantRuns()
	w.wantReleased()
	w.state("web", status.ModuleOff, "add `webEnabled: true` to values.yaml or module(enabled=True)")

	// It comes up: they run again, and the first render waits for them.
	fails = true
	w.in(Config{State: ConfigPresent, Data: map[string]string{"webEnabled": "true"}})
	w.wantReleased()
	w.runs = nil
	fails = false
	w.advance(2 * time.Second)
	w.wantRuns("web/migrate startup")
	w.wantReleased("web#1")

	// And again when it was switched off, after its uninstall.
	w.hooks["web/migrate"] = func(RunHook) (effect.Effects, error) {
		if len(w.gone) == 0 {
			t.Error("it runs before the uninstall")
		}
		return effect.Effects{}, nil
	}
	off(w, "web")
	w.wantRuns("web/early startup", "web/migrate startup")
	w.advance(time.Hour)
	w.wantRuns()
}

// A run that is under way as its module comes up counts for nothing.
func TestAModuleComesUpDuringARunOfBefore(t *testing.T) {
	b := onStartup(0)
	b.Startup.WhenOff = true
	w := newWorld(t, mod("web", builtins.ModuleDecl{}, hk("migrate", b)))
	n := int64(0)
	w.hooks["web/migrate"] = func(RunHook) (effect.Effects, error) {
		if n++; n == 1 {
			w.queue = append(w.queue, w.e.Handle(w.now, Config{State: ConfigPresent, Data: map[string]string{"webEnabled": "true"}})...)
		}
		return set("n", n), nil
	}
	w.start()
	w.wantRuns("web/migrate startup", "web/migrate startup")
	w.wantReleased("web#1")
	if got := w.e.Values("web")["n"]; got != int64(2) {
		t.Errorf("n is %v", got)
	}
}

// A hook of after_all that has modules work each time runs three times in a row, though timers and watches tell of
// something while Helm works, or the hook: they are not why. The next of them that comes at rest lets it run again.
func TestRoundsOfAfterAllBesideTimers(t *testing.T) {
	for name, comes := range map[string]Input{"a timer": Tick{}, "a watch": WatchChanged{ID: "web/a#nodes", Events: []builtins.Event{{Type: "modified", Binding: "nodes", Name: "a"}}}} {
		w := newWorld(t, mod(globalName, isOn(), hk("all", onStage(builtins.StageAfterAll))), mod("web", isOn(), hk("a", onWatch("nodes"))))
		var under []Action // of Helm, and of the hook
		w.stop = func(a Action) bool {
			_, helm := a.(Release)
			run, is := a.(RunHook)
			if helm || is && run.Hook.ID == "global/all" {
				under = append(under, a)
				return true
			}
			return false
		}
		rounds, phase := 0, "first"
		w.hooks["web/a"] = func(RunHook) (effect.Effects, error) { return set("phase", phase), nil }
		work := func() {
			for range 100 {
				if len(under) == 0 {
					return
				}
				a := under[0]
				under = under[1:]
				w.now = w.now.Add(time.Second)
				w.in(comes)
				if run, is := a.(RunHook); is {
					rounds++
					w.in(RunDone{Run: run.Run, Effects: set("global.n", int64(rounds))})
				} else {
					w.in(Released{Op: a.(Release).Op, Changed: true, Revision: rounds + 1})
				}
			}
		}
		w.start()
		work()
		if rounds != 3 {
			t.Errorf("%s: %d rounds, want 3", name, rounds)
		}
		phase = "later"
		w.changed("web/a#nodes")
		work()
		if rounds != 6 {
			t.Errorf("%s: %d rounds after the next change, want 6", name, rounds)
		}
	}
}
