package engine

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
)

// A process whose selector leaves out a module that an earlier one had gives its release back, and takes
// nothing away: neither sets of objects nor what is kept of its hooks.
func TestASelectorThatLeavesAModuleOutGivesItsReleaseBack(t *testing.T) {
	bye := hk("bye", onStage(builtins.StageBeforeDelete))
	w := newWorld(t, mod("web", isOn(), hk("a", onStartup(0)), bye), mod("shop", isOn()))
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) { return set("web.password", "x"), nil }
	w.start()
	w.wantReleased("shop#1", "web#1")
	w.sets = []string{effect.Manager("web/a")}
	kept := maps.Clone(w.kept["web"])
	if kept["up"] == nil {
		t.Fatalf("of web is kept %v", slices.Sorted(maps.Keys(kept)))
	}

	var asked []Uninstall
	others := 0
	w.told = func(a Action) {
		switch a := a.(type) {
		case Uninstall:
			asked = append(asked, a)
		case RemoveSets:
			others++
		case Release:
			if a.Ref.Module == "web" {
				others++
			}
		case RunHook:
			if a.Module.Name == "web" {
				others++
			}
		}
	}
	w.gen = only(w.gen, "shop")
	w.start()
	w.advance(time.Hour)
	if len(asked) != 1 || !asked[0].GiveBack || asked[0].Ref.Module != "web" {
		t.Fatalf("uninstalls %+v", asked)
	}
	delete(kept, "up") // its hooks of before_delete are not those of this instance any more
	if diff := cmp.Diff(kept, w.kept["web"]); diff != "" {
		t.Errorf("kept of web (-want +got):\n%s", diff)
	}
	for _, m := range w.e.Status().Modules {
		if m.Name == "web" {
			t.Errorf("the status has %+v", m)
		}
	}
	asked = nil
	w.start() // nothing is left to do for the next process
	w.advance(time.Hour)
	if len(asked) > 0 || others > 0 {
		t.Errorf("uninstalls %v, %d other actions", asked, others)
	}
}

// only is a generation whose selector has some of the modules.
func only(g *generation.Generation, names ...string) *generation.Generation {
	out := *g
	out.Number++
	out.Modules, out.Names, out.Elsewhere = map[string]*generation.Module{}, names, map[string]bool{}
	for name, m := range g.Modules {
		if slices.Contains(names, name) {
			out.Modules[name] = m
		} else {
			out.Elsewhere[name] = true
		}
	}
	return &out
}

// The labels of a module can change while processes run: it goes without its hooks of before_delete, its
// exports go with it, and it comes back with what was kept.
func TestAModuleGoesToAnotherInstanceByAReload(t *testing.T) {
	web := mod("web", isOn(), hk("a", onStartup(0)), hk("bye", onStage(builtins.StageBeforeDelete)))
	web.Decl.Exports = []string{"n"}
	shop := mod("shop", isOn())
	w := newWorld(t, web, shop)
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) { return set("n", 1), nil }
	w.start()
	exports := func() bool { return strings.Contains(w.last["shop"], "exports:map[web:map[n:1]") }
	if !exports() {
		t.Fatalf("shop sees %s", w.last["shop"])
	}

	w.runs = nil
	w.uninstallErr = errBoom
	next := only(w.gen, "shop")
	w.in(Reload{Generation: next})
	w.state("web", status.ModuleFailed, "its release is not given back: "+errBoom.Error())
	w.uninstallErr = nil
	w.advance(time.Hour)
	if diff := cmp.Diff([]string{"web"}, w.gone); diff != "" || len(w.runs) > 0 {
		t.Errorf("gone %v, runs %v", w.gone, w.runs)
	}
	if exports() {
		t.Errorf("shop still sees %s", w.last["shop"])
	}

	back := *web
	w.reload(&back, shop)
	w.advance(time.Minute)
	w.state("web", status.ModuleReady, "")
	if !exports() {
		t.Errorf("shop sees %s", w.last["shop"])
	}
}

// The user's ConfigMap may speak about a module that another instance has: that is neither in force nor a
// mistake; a global hook may set its switch.
func TestTheConfigOfAModuleOfAnotherInstance(t *testing.T) {
	g := mod(globalName, builtins.ModuleDecl{}, hk("g", onStartup(0)))
	w := newWorld(t, g, mod("web", isOn()), mod("shop", isOn()))
	w.gen = only(w.gen, "shop")
	w.hooks["global/g"] = func(in RunHook) (effect.Effects, error) {
		if !slices.Contains(in.Switches, "webEnabled") {
			t.Errorf("it may set %v", in.Switches)
		}
		return set("webEnabled", true), nil
	}
	w.start()
	w.in(Config{State: ConfigPresent, Data: map[string]string{"web": "a: 1", "webEnabled": "maybe", "webDrift": "never", "shpo": "a: 1"}})
	got := w.e.Status().Config.Problems
	if len(got) != 1 || !strings.Contains(got[0], "shpo") {
		t.Errorf("problems %q", got)
	}
}
