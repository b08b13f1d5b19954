package engine

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/effect"
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

// A save that failed may have been carried out all the same: what is in force is
// written again, so that a restart brings nothing else.
func TestAFailedCommitLeavesNothingBehindInWhatIsKept(t *testing.T) {
	n := int64(1)
	w := newWorld(t, mod("web", isOn(), hk("a", onWatch("nodes"))))
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) { return set("n", n), nil }
	w.start()
	kept := copyKept(w.kept)
	n, w.commitErr, w.commitKeeps = 2, errors.New("timeout"), true
	w.changed("web/a#nodes")
	n, w.commitErr = 1, nil
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
