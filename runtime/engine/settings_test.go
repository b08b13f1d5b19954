package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/generation"
)

// checking is a module with def settings_check(old, new).
func checking(m *generation.Module) *generation.Module {
	m.SettingsCheck, m.SettingsDigest = noFunction{}, "code"
	return m
}

func (w *world) config(data ...string) {
	w.t.Helper()
	in := Config{State: ConfigPresent, Data: map[string]string{}}
	for _, line := range data {
		key, text, _ := strings.Cut(line, "=")
		in.Data[key] = text
	}
	w.in(in)
}

// A section is in force once the module has nothing against it; one that it refuses changes nothing, and others go on.
func TestSettingsAreChecked(t *testing.T) {
	w := newWorld(t, checking(mod("web", isOn())), mod("other", isOn()))
	var asked []string
	w.settings = func(a CheckSettings) SettingsChecked {
		asked = append(asked, fmt.Sprint(a.Old["size"], " to ", a.New["size"]))
		switch n := a.New["size"]; n {
		case int64(3):
			return SettingsChecked{Against: "a size of 3 does not count"}
		case int64(4):
			return SettingsChecked{Err: errBoom}
		}
		return SettingsChecked{}
	}
	w.start()
	w.config("web=size: 1")
	w.config("web=size: 2", "other=size: 1")
	w.config("web=size: 3", "other=size: 2")
	if got := w.e.Values("web")["size"]; got != int64(2) {
		t.Errorf("in force is %v", got)
	}
	if got := fmt.Sprint(w.module("web").Config.Refused); got != "[ConfigMap ops/starling: config web: a size of 3 does not count]" {
		t.Errorf("refused: %s", got)
	}
	w.config("web=size: 4", "other=size: 2")
	if got := fmt.Sprint(w.module("web").Config.Refused); !strings.Contains(got, "config web: settings_check(): "+errBoom.Error()) {
		t.Errorf("refused: %s", got)
	}
	w.in(Reconcile{Module: "web"})
	w.wantReleased("other#1", "web#1", "web#2", "other#2", "web#3", "other#3")
	if got := fmt.Sprint(asked); got != "[<nil> to 1 1 to 2 2 to 3 2 to 4 2 to 4]" {
		t.Errorf("asked %s", got)
	}
	// After a restart what is in force is not asked about.
	w.config("web=size: 2", "other=size: 2")
	asked = nil
	w.e = New(w.opts)
	w.queue = nil
	w.config("web=size: 2", "other=size: 2")
	w.in(Start{Generation: w.gen, Kept: w.kept, Installed: slices.Clone(w.installed)})
	if len(asked) > 0 || w.e.Values("web")["size"] != int64(2) {
		t.Errorf("asked %v", asked)
	}
}

// Until the module has answered nothing of it begins, with values that the user has not meant.
func TestAModuleWaitsForItsSettings(t *testing.T) {
	w := newWorld(t, checking(mod("web", isOn(), hk("nodes", onWatch("nodes")))))
	w.holdSettings = true
	var asks []CheckSettings
	w.told = func(a Action) {
		if a, is := a.(CheckSettings); is {
			asks = append(asks, a)
		}
	}
	w.e = New(w.opts)
	w.config("web=size: 1")
	w.in(Start{Generation: w.gen})
	w.state("web", status.ModuleStarting, "reading the configuration")
	if len(asks) != 1 || len(w.runs) > 0 {
		t.Fatalf("asked %d times, runs %v", len(asks), w.runs)
	}
	w.in(SettingsChecked{Op: asks[0].Op})
	w.wantReleased("web#1")
	if !strings.Contains(w.released[0], "size:1") {
		t.Errorf("released %v", w.released)
	}

	// One that runs goes on, with the switch that it had, though a question is open.
	w.config("web=size: 2", "webEnabled=false")
	w.changed(w.e.module("web").byKey["web/nodes"].watches[0].ID)
	if w.state("web", status.ModuleReady, ""); len(w.gone) > 0 || len(w.runs) != 2 {
		t.Errorf("gone %v, runs %v", w.gone, w.runs)
	}
	w.in(SettingsChecked{Op: asks[1].Op, Against: "no"})
	if w.state("web", status.ModuleOff, ""); len(w.gone) != 1 { // the switch is meant
		t.Errorf("gone %v", w.gone)
	}
}

// An answer for a section that the user has replaced meanwhile, or of code that has changed, counts for nothing.
func TestALateAnswerAboutSettings(t *testing.T) {
	w := newWorld(t, checking(mod("web", isOn())))
	w.start()
	w.holdSettings = true
	var asks []CheckSettings
	w.told = func(a Action) {
		if a, is := a.(CheckSettings); is {
			asks = append(asks, a)
		}
	}
	w.config("web=size: 1")
	w.config("web=size: 2")
	next := checking(mod("web", isOn()))
	next.SettingsDigest = "other code"
	w.reload(next)
	if len(asks) != 3 || asks[2].Module != next {
		t.Fatalf("asked %+v", asks)
	}
	for _, a := range asks[:2] {
		w.in(SettingsChecked{Op: a.Op})
	}
	if got := w.e.Values("web")["size"]; got != nil {
		t.Errorf("in force is %v", got)
	}
	w.in(SettingsChecked{Op: asks[2].Op})
	if got := w.e.Values("web")["size"]; got != int64(2) {
		t.Errorf("in force is %v", got)
	}
}
