package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
)

// disabled() counts for the values that it has seen: when they have moved since,
// enabled() is asked again before anything is taken away.
func TestADisabledForOldValuesUninstallsNothing(t *testing.T) {
	m := mod("web", isOn())
	m.Enabled = noFunction{}
	w := newWorld(t, m)
	answer := builtins.Decision{Answer: builtins.AnswerOn}
	w.enabled["web"] = func(map[string]any) (builtins.Decision, error) { return answer, nil }
	config := func(n string) Config {
		return Config{State: ConfigPresent, Data: map[string]string{"global": "n: " + n}}
	}
	w.start()
	w.wantReleased("web#1")

	asked := w.e.Handle(w.now, config("1"))
	late := w.e.Handle(w.now, config("2"))
	for _, a := range asked {
		if a, ok := a.(Evaluate); ok {
			w.in(Evaluated{Op: a.Op, Decision: builtins.Decision{Answer: builtins.AnswerDisabled, Reason: "n is 1"}})
		}
	}
	for _, a := range late {
		if _, ok := a.(Evaluate); ok {
			t.Error("asked twice at once")
		}
	}
	if len(w.gone) > 0 {
		t.Error("uninstalled for values that no longer hold")
	}
	w.state("web", status.ModuleReady, "")
}

// The tree says no and a global hook says yes: when that hook fails before it has
// ever said so, its error must not uninstall.
func TestAGlobalHookThatFailsDoesNotLeaveTheSwitchToTheTree(t *testing.T) {
	g := mod(globalName, builtins.ModuleDecl{}, hk("g", onStartup(0)))
	w := newWorld(t, g, mod("web", builtins.ModuleDecl{}))
	w.gen.Tree.Values = map[string]any{"webEnabled": false}
	fails := false
	w.hooks["global/g"] = func(RunHook) (effect.Effects, error) {
		if fails {
			return effect.Effects{}, errBoom
		}
		return set("webEnabled", true), nil
	}
	w.start()
	w.wantReleased("web#1")
	fails = true
	w.kept = map[string]map[string][]byte{} // a new name of the hook, or a lost Secret
	w.start()
	if len(w.gone) > 0 {
		t.Fatal("uninstalled because a global hook fails")
	}
	w.state("web", status.ModuleOff, "global/g fails; its release stays")
	fails = false
	w.advance(time.Minute)
	w.state("web", status.ModuleReady, "")
	// The user's own no needs no hook.
	fails = true
	w.kept = map[string]map[string][]byte{}
	w.start()
	w.in(Config{State: ConfigPresent, Data: map[string]string{"webEnabled": "false"}})
	if diff := cmp.Diff([]string{"web"}, w.gone); diff != "" {
		t.Error(diff)
	}
}

// Off by an explicit no, a module forgets what its hooks have set, whether it had
// a release or not, and also when a crash comes in between.
func TestOffForgetsLayers(t *testing.T) {
	nightly := builtins.Binding{Name: "nightly", Schedule: &builtins.ScheduleBinding{Cron: "0 3 * * *"}}
	m := mod("web", isOn(), hk("a", nightly))
	m.Tree.Chart = nil
	w := newWorld(t, m)
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) { return set("n", int64(1)), nil }
	w.start()
	w.advance(24 * time.Hour)
	if len(w.kept["web"]) != 1 {
		t.Fatal("nothing is kept")
	}
	off := Config{State: ConfigPresent, Data: map[string]string{"webEnabled": "false"}}
	w.in(off)
	if len(w.kept["web"]) != 0 {
		t.Errorf("kept %v", copyKept(w.kept))
	}
}

// offBy has enabled() of a module say no while an internal value is true that a hook of the module sets.
func offBy(w *world, module, value string) {
	w.enabled[module] = func(v map[string]any) (builtins.Decision, error) {
		if internal, _ := v["internal"].(map[string]any); internal[value] == true {
			return builtins.Decision{Answer: builtins.AnswerDisabled, Reason: value}, nil
		}
		return builtins.Decision{Answer: builtins.AnswerOn}, nil
	}
}

// enabled() says no by what a hook of the module has set. That value goes with the module, and the no stands
// until something else moves.
func TestANoByAValueOfTheModulesOwnHookStands(t *testing.T) {
	m := mod("web", isOn(), hk("find", onStartup(0)))
	m.Enabled = noFunction{}
	w := newWorld(t, m)
	offBy(w, "web", "legacy")
	w.hooks["web/find"] = func(RunHook) (effect.Effects, error) { return set("internal.legacy", true), nil }
	w.start()
	w.advance(24 * time.Hour)
	w.state("web", status.ModuleOff, "disabled: legacy")
	w.wantRuns("web/find startup")
	w.runs = nil
	w.in(Config{State: ConfigPresent, Data: map[string]string{"web": "n: 1"}})
	w.advance(24 * time.Hour)
	w.state("web", status.ModuleOff, "disabled: legacy")
	w.wantRuns("web/find startup")
	w.wantReleased()
	w.runs = nil
	w.hooks["web/find"] = func(RunHook) (effect.Effects, error) { return effect.Effects{}, nil }
	w.in(Config{State: ConfigPresent, Data: map[string]string{"web": "n: 2"}})
	w.state("web", status.ModuleReady, "")
}

// A module says that its work is done, by what its hook sees after the install: it is installed and uninstalled
// once, and once more when the user switches it off and on, its files change, or another process starts.
func TestAModuleThatIsDoneGoesOnce(t *testing.T) {
	web := func(digest string) *generation.Module {
		m := mod("web", isOn(), code(digest, hk("done", onAfter())))
		m.Enabled = noFunction{}
		return m
	}
	w := newWorld(t, web("1"))
	offBy(w, "web", "done")
	w.hooks["web/done"] = func(RunHook) (effect.Effects, error) { return set("internal.done", true), nil }
	want := func(rounds int) {
		t.Helper()
		w.advance(24 * time.Hour)
		w.state("web", status.ModuleOff, "disabled: done")
		if len(w.gone) != rounds {
			t.Errorf("uninstalled %d times, want %d", len(w.gone), rounds)
		}
	}
	w.start()
	want(1)
	w.in(Config{State: ConfigPresent, Data: map[string]string{"webEnabled": "false"}})
	w.in(Config{State: ConfigPresent, Data: map[string]string{"webEnabled": "true"}})
	want(2)
	w.reload(web("2"))
	want(3)
	w.start()
	want(4)
}

// A save that failed may have been carried out all the same: what is in force is
// written again, so that a restart brings nothing else.
func TestAFailedSaveLeavesNothingBehindInWhatIsKept(t *testing.T) {
	n := int64(1)
	w := newWorld(t, mod("web", isOn(), hk("a", onWatch("nodes"))))
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) { return set("n", n), nil }
	w.start()
	kept := copyKept(w.kept)
	n, w.saveErr, w.saveKeeps = 2, errors.New("timeout"), true
	w.changed("web/a#nodes")
	n, w.saveErr = 1, nil
	w.advance(time.Minute)
	if diff := cmp.Diff(kept, copyKept(w.kept)); diff != "" {
		t.Error(diff)
	}
}

// Keys of the ConfigMap stand each on its own: a section that does not pass keeps
// no switch in force that was taken out, and a switch that does not pass no section.
func TestABadKeyHoldsItselfAlone(t *testing.T) {
	w := newWorld(t, mod("web", builtins.ModuleDecl{}))
	config := func(data ...string) {
		m := map[string]string{}
		for _, d := range data {
			k, v, _ := strings.Cut(d, "=")
			m[k] = v
		}
		w.in(Config{State: ConfigPresent, Data: m})
	}
	w.start()
	config("webEnabled=true", "web=a: 1")
	config("webEnabled=yes", "web=a: 1")
	w.state("web", status.ModuleReady, "")
	config("webEnabled=yes")
	w.state("web", status.ModuleReady, "")
	if last := w.last["web"]; strings.Contains(last, "a:1") {
		t.Errorf("the section that was taken out is still in force: %s", last)
	}
	config("webEnabled=true", "web=a: 1")
	config("web=- a list")
	w.state("web", status.ModuleOff, "its release stays")
}

// The kept state of a module that is no longer in the tree goes, with or without a
// release, and also when that fails at first.
func TestAModuleThatIsGoneLeavesNothingKept(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("a", onStartup(0))))
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) { return set("n", int64(1)), nil }
	w.kept["old"] = map[string][]byte{"layer.x": []byte("{}")}
	w.kept["hooks-only"] = map[string][]byte{"layer.x": []byte("{}")}
	w.installed = []ReleaseRef{{Module: "old", Name: "old", Namespace: "x"}}
	w.saveErr = errBoom
	w.start()
	if diff := cmp.Diff([]string{"old"}, w.gone); diff != "" {
		t.Error(diff)
	}
	w.saveErr = nil
	w.advance(time.Minute)
	if len(w.kept["old"])+len(w.kept["hooks-only"]) > 0 || len(w.kept["web"]) != 1 {
		t.Errorf("kept %v", copyKept(w.kept))
	}
	if !w.wakeAt.IsZero() || len(w.gone) != 1 {
		t.Errorf("it goes on: wakes at %s, uninstalled %v", w.wakeAt, w.gone)
	}
}

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
	if n := len(w.e.Status().Modules); n != 1 || len(w.e.gone()) > 0 || len(w.e.watches) != 1 {
		t.Errorf("%d modules, %d leave, watches %v", n, len(w.e.gone()), w.e.watches)
	}
}

// Hooks of after_delete find what hooks have set and remember, whichever way the module goes. Then that goes, too.
func TestAfterDeleteSeesWhatHooksHaveSet(t *testing.T) {
	for _, gone := range []bool{false, true} {
		web, _ := webAndShop()
		w := newWorld(t, web, leaves("shop"))
		w.hooks["shop/work"] = func(RunHook) (effect.Effects, error) { return set("n", int64(1)), nil }
		var saw []any
		w.hooks["shop/last"] = func(a RunHook) (effect.Effects, error) {
			view, err := a.Values.Compose(nil)
			saw = append(saw, view["n"])
			return effect.Effects{}, err
		}
		w.start()
		if gone {
			w.reload(web)
		} else {
			off(w, "shop")
		}
		w.advance(time.Hour)
		if !slices.Equal(saw, []any{int64(1)}) || len(w.kept["shop"]) > 0 {
			t.Errorf("gone %v: after_delete saw %v, kept is %v", gone, saw, copyKept(w.kept))
		}
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
		if got := w.e.Values("shop"); got["n"] != int64(1) || len(w.gone) > 0 || len(w.e.gone()) > 0 {
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
	w.wantRuns()
	w.in(RunDone{Run: run.Run})
	w.wantRuns("shop/bye sync", "shop/work sync")
	w.state("shop", status.ModuleReady, "")
	if len(w.gone) > 0 {
		t.Errorf("gone %v", w.gone)
	}
}

// A module is not uninstalled when it is gone from the tree for a moment only, is paused, or
// has a folder that is being written anew.
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

// Somebody whose folder is gone by mistake has ten seconds to pause the module: its object still counts.
func TestAModuleThatIsGoneIsPausedByItsObject(t *testing.T) {
	web, shop := webAndShop()
	w := newWorld(t, web, shop)
	w.opts.Grace = 10 * time.Second
	w.start()
	pause := func(paused bool) {
		w.in(Config{State: ConfigPresent, ObjectsState: ConfigPresent, Objects: map[string]ConfigObject{"web": {}, "shop": {Paused: paused}}})
	}
	pause(false)
	w.reload(web)
	pause(true)
	w.advance(time.Hour)
	w.state("shop", status.ModulePaused, "paused: its release stays as it is")
	if len(w.gone) > 0 {
		t.Fatalf("gone %v", w.gone)
	}
	pause(false)
	w.advance(time.Hour)
	if !slices.Equal(w.gone, []string{"shop"}) {
		t.Errorf("gone %v", w.gone)
	}
	w.in(Reconcile{Module: "shop"})
	if w.e.modules["shop"] != nil {
		t.Error("it is not forgotten")
	}
}

// A pause that comes once nothing of a module is there holds up nothing, and says nothing.
func TestAPauseOfAModuleThatHasGoneIsNone(t *testing.T) {
	web, shop := webAndShop()
	w := newWorld(t, web, shop)
	w.start()
	w.told = func(a Action) {
		if _, is := a.(Uninstall); is {
			w.in(Config{State: ConfigPresent, ObjectsState: ConfigPresent, Objects: map[string]ConfigObject{"web": {}, "shop": {Paused: true}}})
			if _, reason := w.e.moduleState(w.e.modules["shop"]); strings.Contains(reason, "paused") {
				t.Errorf("it says %s while it is uninstalled", reason)
			}
		}
	}
	w.reload(web)
	w.advance(time.Hour)
	if !slices.Equal(w.gone, []string{"shop"}) || w.e.modules["shop"] != nil {
		t.Errorf("gone %v, there is %v", w.gone, w.e.modules["shop"])
	}
}

// The reason of a module that leaves names what it waits for: another module that is on its way, one of its runs, or a
// hook of its leave.
func TestTheReasonNamesWhatAModuleWaitsFor(t *testing.T) {
	web, _ := webAndShop()
	late, shop := mod("late", isOn()), leaves("shop")
	w := newWorld(t, web, shop)
	shown := func(want string) {
		t.Helper()
		for _, m := range w.e.Status().Modules {
			if m.Name == "shop" && m.State == status.ModuleUninstalling && m.Reason == "no longer in the module tree"+want {
				return
			}
		}
		t.Errorf("it is not shown that it%s: %+v", want, w.e.Status().Modules)
	}
	w.start()
	w.holdHelm, w.hold = "late", "shop/work"
	w.changed("shop/work#nodes")
	w.reload(web, late)
	shown("; waits for module late, which is releasing")
	run, release := w.held["shop/work"][0].(RunHook), w.heldHelm
	w.holdHelm, w.hold = "", "shop/bye"
	w.in(Released{Op: release.Op, Changed: true, Revision: 1})
	shown("; waits for a run of its hook work")
	w.in(RunDone{Run: run.Run})
	shown("; waits for its before_delete hook bye")
}

// A release that cannot be taken away is in the status, with the reason.
func TestAnUninstallThatFailsIsShown(t *testing.T) {
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

// A module that leaves the tree and comes back has the section of the user's config that was accepted
// last, also when what the ConfigMap says by then is refused; it goes with the module.
func TestAModuleThatComesBackHasItsConfig(t *testing.T) {
	web, _ := webAndShop()
	shop := mod("shop", isOn())
	shop.Tree.ConfigSchema = &tree.File{Path: "shop/openapi/config-values.yaml", Data: []byte("properties: {x: {type: integer}}\n")}
	config := func(text string) Config {
		return Config{State: ConfigPresent, Data: map[string]string{"shop": text}}
	}
	for name, restart := range map[string]bool{"reload": false, "restart": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, web, shop)
			w.opts.Grace = 10 * time.Second
			w.start()
			w.in(config("x: 1"))
			w.in(config("x: none"))
			w.state("shop", status.ModuleReady, "")
			w.reload(web)
			if restart {
				w.gen = newWorld(t, web).gen
				w.start()
				w.in(config("x: none"))
			}
			w.reload(web, shop)
			if got := w.e.Values("shop"); got["x"] != int64(1) {
				t.Errorf("values are %v", got)
			}
			if last := w.last["shop"]; !strings.Contains(last, "x:1") {
				t.Errorf("released with %s", last)
			}
			w.reload(web)
			w.advance(time.Minute)
			for key := range w.kept[globalName] {
				if strings.Contains(key, "shop") {
					t.Errorf("%s is kept", key)
				}
			}
		})
	}
}

// A new process does not know which module has another name now: while one is broken of which
// nothing was ever there, modules that are gone stay.
func TestANewProcessKeepsWhatMayHaveAnotherName(t *testing.T) {
	web, shop := webAndShop()
	www := mod("www", isOn())
	www.Err = errBoom
	w := newWorld(t, web, shop)
	w.opts.Grace = 10 * time.Second
	w.start()
	w.reload(shop, www)
	w.state("web", status.ModuleReady, "")
	w.gen = newWorld(t, shop, www).gen
	w.start()
	w.advance(time.Hour)
	w.state("web", status.ModulePaused, "no longer in the module tree; its release stays while module www, of which nothing is there, is broken: ")
	if len(w.gone) > 0 {
		t.Fatalf("gone %v", w.gone)
	}
	w.reload(shop, mod("www", isOn()))
	w.advance(time.Hour)
	if !slices.Equal(w.gone, []string{"web"}) {
		t.Errorf("gone %v", w.gone)
	}
}

// A module gets another name by several edits, and is broken under it at first: nothing is uninstalled
// before the new name works.
func TestARenameInSeveralEdits(t *testing.T) {
	web, shop := webAndShop()
	broken := func() *generation.Module {
		m := mod("www", isOn())
		m.Err = errBoom
		return m
	}
	type mods = []*generation.Module
	for name, edits := range map[string][]mods{
		"copied first":       {{web, shop, broken()}, {shop, broken()}, {shop, broken()}},
		"gone first":         {{shop}, {shop, broken()}, {shop, broken()}},
		"gone, back, broken": {{shop, broken()}, {web, shop, broken()}, {shop, broken()}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, web, shop)
			w.opts.Grace = 10 * time.Second
			w.start()
			for _, next := range edits {
				w.reload(next...)
				w.advance(5 * time.Second)
			}
			w.advance(time.Hour)
			if len(w.gone) > 0 {
				t.Fatalf("gone %v", w.gone)
			}
			w.reload(shop, mod("www", isOn()))
			w.advance(time.Hour)
			w.state("www", status.ModuleReady, "")
			if !slices.Equal(w.gone, []string{"web"}) {
				t.Errorf("gone %v", w.gone)
			}
		})
	}
}

// A global hook gets another name, and with it what it has set goes: the switch of a module, or what
// enabled() goes by. That uninstalls nothing before the hook has run under its new name, or while it fails.
func TestAGlobalHookWithAnotherNameUninstallsNothing(t *testing.T) {
	for _, path := range []string{"webEnabled", "global.zone"} {
		for _, fails := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, fails %v", path, fails), func(t *testing.T) {
				global := func(hook string) *generation.Module {
					return mod(globalName, builtins.ModuleDecl{}, code("1", hk(hook, onStartup(0))))
				}
				web := mod("web", isOn(), code("1", hk("a", onWatch("nodes"))))
				if path == "global.zone" {
					web.Enabled = noFunction{}
				}
				w := newWorld(t, global("g"), web)
				w.enabled["web"] = func(v map[string]any) (builtins.Decision, error) {
					if global, _ := v["global"].(map[string]any); global["zone"] == nil {
						return builtins.Decision{Answer: builtins.AnswerDisabled, Reason: "no zone"}, nil
					}
					return builtins.Decision{Answer: builtins.AnswerOn}, nil
				}
				w.values = map[string]any{"webEnabled": path == "global.zone"}
				w.gen.Tree.Values = w.values
				w.hooks["global/g"] = func(RunHook) (effect.Effects, error) { return set(path, true), nil }
				w.start()
				w.state("web", status.ModuleReady, "")
				w.runs = nil

				w.hold = "global/h"
				w.reload(global("h"), web)
				run := w.held["global/h"][0].(RunHook)
				w.advance(time.Minute)
				w.wantRuns("global/h startup") // the module goes on
				w.hold = ""
				if fails {
					w.in(RunDone{Run: run.Run, Err: errBoom})
					w.state("web", status.ModuleOff, "while global hook global/h fails; its release stays as it is")
				}
				if len(w.gone) > 0 {
					t.Fatalf("gone %v", w.gone)
				}
				w.hooks["global/h"] = w.hooks["global/g"]
				if !fails {
					w.in(RunDone{Run: run.Run, Effects: set(path, true)})
					w.wantRuns()
				}
				w.advance(time.Minute)
				w.state("web", status.ModuleReady, "")

				w.hooks["global/i"] = func(RunHook) (effect.Effects, error) { return effect.Effects{}, nil }
				w.reload(global("i"), web) // it has run, and does not say so
				if !slices.Equal(w.gone, []string{"web"}) {
					t.Errorf("gone %v", w.gone)
				}
			})
		}
	}
}

// The folder of the global hooks is there and empty, as while somebody writes it: what they have switched
// on is not uninstalled. Without the folder they are gone.
func TestAHollowFolderOfGlobalHooks(t *testing.T) {
	web := mod("web", isOn())
	w := newWorld(t, mod(globalName, builtins.ModuleDecl{}, code("1", hk("g", onStartup(0)))), web)
	w.values = map[string]any{"webEnabled": false}
	w.gen.Tree.Values = w.values
	w.hooks["global/g"] = func(RunHook) (effect.Effects, error) { return set("webEnabled", true), nil }
	w.start()
	for range 2 {
		w.reload(mod(globalName, builtins.ModuleDecl{}), web)
		w.advance(time.Hour)
		w.wantHeld(map[string]string{globalName: "its folder holds nothing of a module"})
		w.state("web", status.ModuleReady, "")
	}
	w.reload(web)
	w.wantHeld(nil)
	if !slices.Equal(w.gone, []string{"web"}) {
		t.Errorf("gone %v", w.gone)
	}
}

// The folder of the global hooks, or one of its files, is gone for a moment, as while somebody replaces it file
// by file: modules that are on by what they have set go on.
func TestGlobalHooksThatAreGoneForAMoment(t *testing.T) {
	for _, path := range []string{"webEnabled", "global.zone"} {
		for name, other := range map[string]bool{"the folder": false, "a file": true} {
			t.Run(path+", "+name, func(t *testing.T) {
				web := mod("web", isOn(), code("1", hk("a", onWatch("nodes"))))
				if path == "global.zone" {
					web.Enabled = noFunction{}
				}
				without := []*generation.Module{web}
				with := []*generation.Module{web, mod(globalName, builtins.ModuleDecl{}, code("1", hk("g", onStartup(0))))}
				if other {
					without = append(without, mod(globalName, builtins.ModuleDecl{}, code("1", hk("other", onStartup(0)))))
					with[1] = mod(globalName, builtins.ModuleDecl{}, code("1", hk("other", onStartup(0))), code("2", hk("g", onStartup(0))))
				}
				w := newWorld(t, with...)
				w.enabled["web"] = func(v map[string]any) (builtins.Decision, error) {
					if global, _ := v["global"].(map[string]any); global["zone"] == nil {
						return builtins.Decision{Answer: builtins.AnswerDisabled, Reason: "no zone"}, nil
					}
					return builtins.Decision{Answer: builtins.AnswerOn}, nil
				}
				w.opts.Grace = 10 * time.Second
				w.values = map[string]any{"webEnabled": path == "global.zone"}
				w.gen.Tree.Values = w.values
				w.hooks["global/g"] = func(RunHook) (effect.Effects, error) { return set(path, true), nil }
				w.start()
				w.state("web", status.ModuleReady, "")
				w.runs = nil
				w.reload(without...)
				w.advance(9 * time.Second)
				for _, run := range w.runs {
					if strings.HasPrefix(run, "web/") {
						t.Errorf("%s has run", run)
					}
				}
				if w.e.modules["web"].life == down || len(w.gone) > 0 {
					t.Fatalf("it does not go on; gone %v", w.gone)
				}
				w.reload(with...)
				w.state("web", status.ModuleReady, "")
				w.reload(without...)
				w.advance(11 * time.Second)
				if !slices.Equal(w.gone, []string{"web"}) {
					t.Errorf("gone %v", w.gone)
				}
			})
		}
	}
}

// Somebody who has ended what was in the way need not wait for the next try of what fails while its module goes.
func TestAModuleThatGoesIsTriedOnceAsked(t *testing.T) {
	leaves := map[string]func(w *world){
		"off": func(w *world) { off(w, "web") },
		"not in the tree": func(w *world) {
			w.reload(mod("shop", isOn()))
			w.advance(10 * time.Second)
		},
		"hook not in the tree": func(w *world) { w.reload(mod("web", isOn(), code("1", hk("b", onStartup(0)))), mod("shop", isOn())) },
	}
	for way, leave := range leaves {
		w := newWorld(t, mod("web", isOn(), code("1", hk("a", onStartup(0))), code("1", hk("b", onStartup(0)))), mod("shop", isOn()))
		w.hooks["web/a"] = applySet(false)
		w.start()
		w.uninstallErr, w.setsErr = errBoom, errBoom
		leave(w)
		w.advance(10 * time.Minute)
		w.uninstallErr, w.setsErr = nil, nil
		w.in(Reconcile{Module: "web"})
		if !slices.Contains(w.gone, "starling/web/a") || !strings.HasPrefix(way, "hook") && !slices.Contains(w.gone, "web") {
			t.Errorf("%s: gone %v; %+v", way, w.gone, w.e.Status().Modules)
		}
	}
}
