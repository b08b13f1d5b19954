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

// leaves is a module whose hooks see to it that it leaves well.
func leaves(name string) *generation.Module {
	return mod(name, isOn(), code("1", hk("bye", onWatch("nodes"), onStage(builtins.StageBeforeDelete))),
		code("1", hk("last", onStage(builtins.StageAfterDelete))), code("1", hk("work", onWatch("nodes"))))
}

// A module whose folder is gone is uninstalled between its before_delete and after_delete
// hooks, which see a whole snapshot; its other hooks do not run.
func TestAModuleThatIsGoneTakesLeave(t *testing.T) {
	web, _ := webAndShop()
	w := newWorld(t, web, leaves("shop"))
	var order []string
	was := w.gen
	w.hooks["shop/bye"] = func(a RunHook) (effect.Effects, error) {
		order = append(order, "bye")
		if a.Generation != was {
			t.Error("the run is not of the generation that its code is in")
		}
		return set("n", int64(1)), nil
	}
	w.hooks["shop/last"] = func(a RunHook) (effect.Effects, error) {
		order = append(order, "last", strings.Join(w.gone, ","))
		return effect.Effects{}, nil
	}
	w.start()
	w.runs, order = nil, nil
	w.reload(web)
	w.wantRuns("shop/bye delete", "shop/last delete")
	if want := []string{"bye", "last", "shop"}; !slices.Equal(order, want) {
		t.Errorf("got %v, want %v", order, want)
	}
	if len(w.kept["shop"]) > 0 || len(w.installed) != 1 || !w.wakeAt.IsZero() {
		t.Errorf("kept %v, installed %v, wakes at %s", copyKept(w.kept), w.installed, w.wakeAt)
	}
	if n := len(w.e.Status().Modules); n != 1 || len(w.e.leavers) > 0 || len(w.e.watches) != 1 {
		t.Errorf("%d modules, %d leave, watches %v", n, len(w.e.leavers), w.e.watches)
	}
}

// A before_delete hook that fails holds the release, and the status says so, until it
// succeeds; or the module comes back and has all that it had.
func TestAModuleThatIsGoneWaitsForItsHooks(t *testing.T) {
	for _, back := range []bool{false, true} {
		web, _ := webAndShop()
		shop := leaves("shop")
		w := newWorld(t, web, shop)
		w.hooks["shop/work"] = func(RunHook) (effect.Effects, error) { return set("n", int64(1)), nil }
		w.start()
		fails := true
		w.hooks["shop/bye"] = func(RunHook) (effect.Effects, error) {
			if fails {
				return effect.Effects{}, errBoom
			}
			return effect.Effects{}, nil
		}
		w.reload(web)
		w.advance(time.Hour)
		if len(w.gone) > 0 {
			t.Fatal("it is uninstalled")
		}
		w.state("shop", status.ModuleFailed, "uninstall: before_delete hook bye: web/hooks/a.star:3:5: boom; its folder is gone")
		if at := w.e.NextRetry(); at.IsZero() || w.wakeAt.IsZero() {
			t.Error("it is not tried again")
		}
		if !back {
			fails = false
			w.advance(time.Hour)
			if !slices.Equal(w.gone, []string{"shop"}) {
				t.Errorf("gone %v", w.gone)
			}
			continue
		}
		w.runs = nil
		w.reload(web, shop)
		w.state("shop", status.ModuleFailed, "bye: ")
		fails = false
		w.advance(time.Hour)
		w.state("shop", status.ModuleReady, "")
		if got := w.e.Values("shop"); got["n"] != int64(1) || len(w.gone) > 0 || len(w.e.leavers) > 0 {
			t.Errorf("values are %v, gone %v", got, w.gone)
		}
	}
}

// One that comes back while its hook is at work waits for that.
func TestAModuleThatComesBackAsItTakesLeave(t *testing.T) {
	web, _ := webAndShop()
	shop := leaves("shop")
	w := newWorld(t, web, shop)
	w.start()
	w.hold = "shop/bye"
	w.reload(web)
	run := w.held["shop/bye"][0].(RunHook)
	w.hold = ""
	w.reload(web, shop)
	if !slices.ContainsFunc(w.notes, func(n string) bool { return strings.Contains(n, "once what is under way of its end is over") }) {
		t.Errorf("nobody is told why the tree is not in force: %q", w.notes)
	}
	if w.gen.Modules["shop"] != nil {
		t.Fatal("two of it are at work")
	}
	w.in(RunDone{Run: run.Run})
	w.state("shop", status.ModuleReady, "")
	if len(w.gone) > 0 {
		t.Errorf("gone %v", w.gone)
	}
}

// What is gone from the tree for a moment only is not uninstalled, nor what is paused, or
// whose folder is being written anew.
func TestAModuleIsGoneForSomeTimeFirst(t *testing.T) {
	for name, withHooks := range map[string]bool{"plain": false, "with hooks": true} {
		t.Run(name, func(t *testing.T) {
			web, shop := webAndShop()
			if withHooks {
				shop = leaves("shop")
			}
			w := newWorld(t, web, shop)
			w.opts.Grace = 10 * time.Second
			w.start()
			w.reload(web)
			w.state("shop", status.ModuleUninstalling, "no longer in the module tree")
			w.advance(9 * time.Second)
			w.reload(web, shop)
			w.advance(time.Hour)
			w.state("shop", status.ModuleReady, "")
			if len(w.gone) > 0 {
				t.Fatalf("gone %v", w.gone)
			}

			w.reload(web)
			w.advance(9 * time.Second)
			w.hollow = []string{"shop"}
			w.reload(web)
			w.advance(time.Hour)
			if len(w.gone) > 0 {
				t.Fatalf("gone %v", w.gone)
			}
			w.hollow = nil
			w.reload(web) // a while ago its folder was there
			w.state("shop", status.ModuleUninstalling, "in a moment")
			w.advance(10 * time.Second)
			if !slices.Equal(w.gone, []string{"shop"}) {
				t.Errorf("gone %v", w.gone)
			}
		})
	}
}

// A release that cannot be taken away is in the status, with the reason.
func TestAPurgeThatFailsIsShown(t *testing.T) {
	web, shop := webAndShop()
	w := newWorld(t, web, shop)
	w.start()
	w.uninstallErr = errBoom
	w.reload(web)
	w.state("shop", status.ModuleFailed, "uninstall: ")
	w.uninstallErr = nil
	w.advance(time.Hour)
	if n := len(w.e.Status().Modules); n != 1 || len(w.e.Load().Modules) != 1 {
		t.Errorf("%d modules", n)
	}
}

// A release that has failed for long is tried again as soon as another one is gone: its objects
// may have been in the way.
func TestAFailedReleaseIsTriedOnceAnotherOneIsGone(t *testing.T) {
	web, shop := webAndShop()
	w := newWorld(t, web, shop)
	w.opts.Grace = 10 * time.Minute
	w.helmErr["web"] = errBoom
	w.start()
	w.reload(web)
	w.advance(10*time.Minute - time.Second) // its next try is minutes away
	delete(w.helmErr, "web")
	w.saveErr = errBoom // nothing else has the modules looked at
	w.advance(3 * time.Second)
	if !slices.Equal(w.gone, []string{"shop"}) {
		t.Fatalf("gone %v", w.gone)
	}
	w.state("web", status.ModuleReady, "")
}
