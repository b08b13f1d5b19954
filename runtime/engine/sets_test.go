package engine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
)

func chartless(name string, hooks ...*generation.Hook) *generation.Module {
	m := mod(name, isOn(), hooks...)
	m.Tree.Chart = nil
	return m
}

func applySet(keep bool) func(RunHook) (effect.Effects, error) {
	return func(RunHook) (effect.Effects, error) {
		return effect.Effects{Writes: []effect.Write{{Kind: effect.WriteSet, Set: &effect.Set{Name: "s", Keep: keep}}}}, nil
	}
}

// A module without a chart has stages as it goes, in another process too, and once.
func TestAModuleWithoutAChartTakesLeave(t *testing.T) {
	for _, way := range []string{"switched off", "after a restart", "not in the tree"} {
		t.Run(way, func(t *testing.T) {
			trees := func() (web, shop *generation.Module) {
				return chartless("web"), chartless("shop", code("1", hk("work", onWatch("nodes"))),
					code("1", hk("bye", onStage(builtins.StageBeforeDelete), onWatch("nodes"))), code("1", hk("last", onStage(builtins.StageAfterDelete))))
			}
			web, shop := trees()
			w := newWorld(t, web, shop)
			w.start()
			w.state("shop", status.ModuleReady, "")
			switch way {
			case "after a restart":
				w.start()
				w.runs = nil
				off(w, "shop")
			case "switched off":
				w.runs = nil
				off(w, "shop")
			default:
				w.runs = nil
				w.reload(web)
			}
			w.wantRuns("shop/bye delete", "shop/last delete")
			if len(w.kept["shop"]) > 0 {
				t.Errorf("kept %v", copyKept(w.kept))
			}
			w.advance(time.Hour)
			w.wantRuns()
		})
	}
}

// A crash between the uninstall and the after_delete hooks does not lose them.
func TestAfterDeleteComesAfterACrash(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("last", onStage(builtins.StageAfterDelete))))
	w.hooks["web/last"] = func(RunHook) (effect.Effects, error) { return effect.Effects{}, errBoom }
	w.start()
	off(w, "web")
	if !slices.Equal(w.gone, []string{"web"}) {
		t.Fatalf("gone %v", w.gone)
	}
	w.hooks["web/last"] = nil
	w.runs = nil
	w.start()
	off(w, "web")
	w.wantRuns("web/last delete")
}

// Between before_delete and the uninstall nothing but the stages has a hook run: its own
// watch would make anew what it has taken away.
func TestAModuleThatLeavesHearsOfNoChanges(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("bye", onStage(builtins.StageBeforeDelete), onWatch("nodes"))))
	w.start()
	w.uninstallErr, w.runs = errBoom, nil
	off(w, "web")
	w.changed("web/bye#nodes#1")
	w.wantRuns("web/bye delete")
	w.uninstallErr = nil
	w.advance(time.Minute)
	w.wantRuns()
	if !slices.Equal(w.gone, []string{"web"}) {
		t.Errorf("gone %v", w.gone)
	}
}

// Sets go with their module, after its release, whichever way it goes.
func TestSetsGoWithTheirModule(t *testing.T) {
	want := []string{"web", "starling/web/a"}
	for way, leave := range map[string]func(w *world){
		"switched off":    func(w *world) { off(w, "web") },
		"after a restart": func(w *world) { w.start(); off(w, "web") },
		"not in the tree": func(w *world) { w.reload(mod("shop", isOn())) },
		"not in the tree of another process": func(w *world) {
			w.gen = newWorld(t, mod("shop", isOn())).gen
			w.start()
		},
	} {
		t.Run(way, func(t *testing.T) {
			w := newWorld(t, mod("web", isOn(), code("1", hk("a", onStartup(0))), code("1", hk("b", onStartup(0)))), mod("shop", isOn()))
			w.hooks["web/a"], w.hooks["web/b"] = applySet(false), applySet(true)
			w.start()
			w.setsErr = errBoom
			leave(w)
			w.state("web", status.ModuleFailed, "uninstall: ")
			w.setsErr = nil
			w.advance(time.Hour)
			if !slices.Equal(w.gone, want) || len(w.sets) > 0 {
				t.Errorf("gone %v, want %v; sets %v", w.gone, want, w.sets)
			}
		})
	}
}

// The sets of a hook that is gone go, and those of the others stay.
func TestSetsGoWithTheirHook(t *testing.T) {
	for _, restart := range []bool{false, true} {
		a, b := code("1", hk("a", onStartup(0))), code("1", hk("b", onStartup(0)))
		w := newWorld(t, chartless("web", a, b))
		w.hooks["web/a"], w.hooks["web/b"] = applySet(false), applySet(false)
		w.start()
		w.setsErr = errBoom
		if next := chartless("web", b); restart {
			w.gen = newWorld(t, next).gen
			w.start()
		} else {
			w.reload(next)
		}
		w.state("web", status.ModuleReady, "")
		if problems := strings.Join(w.module("web").Problems, "\n"); !strings.Contains(problems, "sets of hooks that are gone: ") {
			t.Errorf("problems: %s", problems)
		}
		w.setsErr = nil
		w.advance(time.Hour)
		if !slices.Equal(w.gone, []string{"starling/web/a"}) || len(w.module("web").Problems) > 0 {
			t.Errorf("gone %v, problems %v", w.gone, w.module("web").Problems)
		}
	}
}

// A commit that is under way may apply a set: it is waited for.
func TestSetsThatAreBeingAppliedGo(t *testing.T) {
	w := newWorld(t, chartless("web", hk("a", onStartup(0), onWatch("nodes"))))
	w.hooks["web/a"] = applySet(false)
	w.start()
	w.hold = "web/a"
	w.changed("web/a#nodes")
	run := w.held["web/a"][0].(RunHook)
	w.hold = ""
	off(w, "web")
	if len(w.gone) > 0 {
		t.Errorf("gone %v while a run is under way", w.gone)
	}
	w.in(RunDone{Run: run.Run})
	if !slices.Equal(w.gone, []string{"starling/web/a"}) {
		t.Errorf("gone %v", w.gone)
	}
}

// Off for any reason but an explicit no, a module keeps its sets.
func TestSetsOfAModuleThatMayNotRunStay(t *testing.T) {
	app := isOn()
	app.Requires = []string{"db"}
	m := mod("app", app, hk("a", onStartup(0)))
	w := newWorld(t, m, mod("db", isOn()))
	w.hooks["app/a"] = applySet(false)
	w.start()
	off(w, "db")
	w.state("app", status.ModuleOff, "requires db")
	if !slices.Equal(w.gone, []string{"db"}) {
		t.Errorf("gone %v", w.gone)
	}
}
