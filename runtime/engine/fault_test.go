package engine

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
)

func fails(RunHook) (effect.Effects, error) { return effect.Effects{}, errBoom }

// A panic in Handle bars the module that it is about, whichever input has met it: nothing of it goes on, is written or
// taken away, and all other modules go on. Mark and Jitter are what the engine calls of the outside, in the midst of
// its work: here they panic.
func TestAPanicBarsOneModule(t *testing.T) {
	for name, c := range map[string]struct {
		input string // that meets it
		panic func(w *world)
	}{
		"as its values are checked": {"engine.RunDone", func(w *world) {
			w.hooks["web/a"] = func(RunHook) (effect.Effects, error) {
				e := set("replicas", int64(2))
				e.Writes = []effect.Write{{Ref: effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Name: "out"}}}
				return e, nil
			}
			w.opts.Mark("", "web")
			w.changed("web/a#nodes")
		}},
		"as its run fails": {"engine.RunDone", func(w *world) { w.hooks["web/a"] = fails; w.opts.Mark("", "jitter"); w.changed("web/a#nodes") }},
		"as its release fails": {"engine.Released", func(w *world) {
			w.helmErr["web"] = errors.New("no")
			w.opts.Mark("", "jitter")
			w.in(Reconcile{Module: "web"})
		}},
		"at a tick": {"engine.Tick", func(w *world) {
			m := w.e.modules["web"]
			m.byKey["web/b"].schedules[0] = nil
			w.advance(time.Minute)
		}},
		"in its step": {"engine.WatchChanged", func(w *world) {
			w.e.modules["web"].repairs = nil
			w.changed("web/a#nodes")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			every := builtins.ScheduleBinding{Cron: "* * * * *", Timezone: "UTC"}
			web := mod("web", isOn(), hk("a", onWatch("nodes")), hk("b", onSchedule(every)), hk("c", onReceive("/x")))
			w := newWorld(t, web, mod("shop", isOn(), hk("a", onWatch("nodes")), hk("b", onSchedule(every))), mod("needs", builtins.ModuleDecl{Enabled: true, Requires: []string{"web"}}))
			on := ""
			w.opts.Mark = func(what, on2 string) (func(bool), error) {
				switch {
				case what == "":
					on = on2
				case on == "web" && strings.Contains(what, "web"):
					panic("a mark")
				}
				return func(bool) {}, nil
			}
			w.opts.Jitter = func() float64 {
				if on == "jitter" {
					panic("a jitter")
				}
				return 0
			}
			w.start()
			w.runs, w.watched, w.notes, w.released = nil, nil, nil, nil
			kept := copyKept(w.kept)
			c.panic(w)
			on = ""
			w.state("web", status.ModuleFailed, "a bug in starling: "+c.input)
			if n := len(slices.DeleteFunc(w.notes, func(text string) bool { return !strings.Contains(text, "a bug in starling") })); n != 1 {
				t.Errorf("it is told %d times", n)
			}
			if want := []string{"-web/a#nodes"}; !slices.Equal(w.watched, want) {
				t.Errorf("watches: %v, want %v", w.watched, want)
			}

			// Nothing of it goes on, whatever comes.
			w.runs = nil
			writes := w.writes
			w.in(WatchChanged{ID: "web/a#nodes", Events: []builtins.Event{{Type: "modified", Binding: "nodes", Name: "a"}}})
			w.in(Reconcile{Module: "web"})
			w.in(RunNow{Module: "web"})
			w.in(Drift{Module: "web"})
			w.in(Sent{Module: "web"})
			w.in(Requested{ID: 7, Hook: "web/c", Request: &builtins.Request{Binding: "receive"}})
			w.in(Config{State: ConfigPresent, Data: map[string]string{"webEnabled": "true", "web": "replicas: 5\n", "shop": "replicas: 5\n"}})
			w.advance(10 * time.Minute)
			w.in(Config{State: ConfigPresent, Data: map[string]string{"webEnabled": "false"}})
			w.advance(10 * time.Minute)
			if slices.ContainsFunc(w.runs, func(run string) bool { return strings.HasPrefix(run, "web/") }) || w.writes != writes {
				t.Errorf("ran %v, %d writes", w.runs, w.writes-writes)
			}
			for key, data := range copyKept(w.kept) {
				if strings.HasPrefix(key, "web ") && kept[key] != data {
					t.Errorf("%s is written: %s", key, data)
				}
			}
			if len(w.gone) > 0 || slices.ContainsFunc(w.released, func(text string) bool { return strings.HasPrefix(text, "web#") }) {
				t.Errorf("released %v, uninstalled %v", w.released, w.gone)
			}
			if want := "request 7: "; len(w.said) != 1 || !strings.HasPrefix(w.said[0], want) || strings.HasSuffix(w.said[0], "nil>") {
				t.Errorf("a request to it: %v", w.said)
			}

			// All others go on.
			w.changed("shop/a#nodes")
			if !slices.Contains(w.runs, "shop/a modified") || !slices.Contains(w.runs, "shop/b schedule") {
				t.Errorf("shop ran %v", w.runs)
			}
			w.state("shop", status.ModuleReady, "")
			w.state("needs", status.ModuleReady, "")

			// It leaves the tree, and stays as it is; a module that is new begins.
			w.reload(w.gen.Modules["shop"], mod("new", isOn(), hk("a", onStartup(0))))
			w.advance(time.Hour)
			if slices.Contains(w.gone, "web") || !slices.Contains(w.runs, "new/a startup") {
				t.Errorf("uninstalled %v, ran %v", w.gone, w.runs)
			}

			// The next process reads anew what is there.
			w.reload(web, w.gen.Modules["shop"], w.gen.Modules["new"])
			w.helmErr, w.hooks["web/a"] = map[string]error{}, nil
			w.start()
			w.advance(time.Minute)
			w.state("web", status.ModuleReady, "")
		})
	}
}

// A panic that is about no single module ends the process, as ever.
func TestAPanicAboutAllModulesEndsTheProcess(t *testing.T) {
	w := newWorld(t, mod("web", isOn()))
	w.start()
	defer func() {
		if recover() == nil {
			t.Error("it goes on")
		}
	}()
	w.e.modules["web"].values = nil
	w.in(Reload{Generation: &generation.Generation{Number: 2, Names: []string{"web"}, Modules: map[string]*generation.Module{"web": nil}}})
}

// A panic about the global hooks, at a start, too: nothing is installed without what they would set, or uninstalled
// because they do not set it. Installed modules go on.
func TestAPanicAboutTheGlobalHooks(t *testing.T) {
	w := newWorld(t, mod(globalName, isOn(), hk("g", onStartup(0))), mod("web", isOn()), mod("shop", builtins.ModuleDecl{}))
	w.hooks["global/g"] = func(RunHook) (effect.Effects, error) { return set("shopEnabled", true), nil }
	w.start()
	w.state("shop", status.ModuleReady, "")
	w.gen.Tree.Values = map[string]any{"shopEnabled": false}
	w.gen.Modules["new"] = mod("new", isOn())
	w.gen.Names = []string{"new", "shop", "web"}
	delete(w.kept, globalName) // somebody has deleted what is kept
	w.told = func(a Action) {
		if a, is := a.(RunHook); is && a.Hook.ID == "global/g" {
			w.e.global.sets = nil
		}
	}
	w.start()
	w.advance(time.Hour)
	if !w.e.global.barred() {
		t.Fatal("no panic")
	}
	w.state("web", status.ModuleReady, "")
	w.state("new", status.ModuleBlocked, "a bug in starling")
	w.state("shop", status.ModuleOff, "its release stays as it is")
	if len(w.gone) > 0 {
		t.Errorf("gone %v", w.gone)
	}
}

// A panic over hooks of after_all bars the global hooks, and all modules know that after the same input.
func TestAPanicOverHooksOfAfterAll(t *testing.T) {
	w := newWorld(t, mod(globalName, isOn(), hk("all", onStage(builtins.StageAfterAll))), mod("web", isOn(), hk("a", onWatch("nodes"))))
	w.start()
	if w.e.common != w.e.last {
		t.Error("modules have not looked at what they share")
	}
	w.e.global.pass = nil
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) { return set("replicas", int64(2)), nil }
	w.changed("web/a#nodes")
	if !w.e.global.barred() || w.e.common != w.e.last {
		t.Errorf("barred %t; modules go by %+v, and it is %+v", w.e.global.barred(), w.e.last, w.e.common)
	}
}
