package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/release/owned"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/effect"
)

var deployment = DriftObject{Ref: effect.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}, By: []string{"kubectl-edit"}}

// repairs carries out a repair as a driver does: the tracker tells of what differs before the engine
// has its answer.
func (w *world) repairs(a Repair) Input {
	w.t.Helper()
	text := a.Ref.Module + ": all"
	if a.Objects != nil {
		text = fmt.Sprint(a.Ref.Module, ": ", a.Objects[0])
		if n := len(a.Objects); n > 1 {
			text += fmt.Sprintf(" and %d more", n-1)
		}
	}
	w.repaired = append(w.repaired, text)
	switch {
	case w.holdRepair:
		w.heldRepair = a
		return nil
	case w.repair != nil:
		done := w.repair(a)
		done.Op = a.Op
		return done
	}
	w.queue = append(w.queue, w.e.Handle(w.now, Drift{Module: a.Ref.Module})...)
	out := Repaired{Op: a.Op, Written: a.Refs()}
	for _, k := range out.Written {
		out.Changes = append(out.Changes, Change{Ref: k, Edits: w.edits})
	}
	return out
}

func (w *world) wantRepaired(want ...string) {
	w.t.Helper()
	if !slices.Equal(w.repaired, want) {
		w.t.Errorf("repaired %q, want %q", w.repaired, want)
	}
	w.repaired = nil
}

func drifts(objects ...DriftObject) Drift { return Drift{Module: "web", Objects: objects} }

func TestDriftIsRepaired(t *testing.T) {
	w := newWorld(t, mod("web", isOn()), mod("other", isOn()))
	w.start()
	w.in(drifts(deployment))
	w.wantRepaired("web: Deployment shop/web")
	w.in(Drift{Module: "web", Verify: true})
	w.wantRepaired("web: all")
	w.in(drifts())
	w.in(Drift{Module: "nobody", Objects: []DriftObject{deployment}})
	w.wantRepaired()
	w.wantReleased("other#1", "web#1") // no revision comes of it
}

// People are told of an object that somebody has deleted and that stays, for its finalizers.
func TestObjectsOnTheirWayOutAreShown(t *testing.T) {
	w := newWorld(t, mod("web", isOn()))
	w.start()
	w.in(Drift{Module: "web", Going: []effect.Ref{deployment.Ref, {Kind: "Secret", Namespace: "shop", Name: "web"}}})
	want := []string{"Deployment shop/web is being deleted, and stays until its finalizers are gone (and 1 more)"}
	if got := w.module("web"); !slices.Equal(got.Problems, want) || got.State != status.ModuleReady {
		t.Errorf("%s with problems %q, want %q", got.State, got.Problems, want)
	}
	w.in(drifts())
	if got := w.module("web").Problems; len(got) > 0 {
		t.Errorf("problems: %q", got)
	}
	w.wantRepaired()
}

// A storm that comes while a repair is under way is one more repair.
func TestAStormIsOneRepair(t *testing.T) {
	w := newWorld(t, mod("web", isOn()))
	w.start()
	w.holdRepair = true
	w.in(drifts(deployment))
	var all []DriftObject
	for i := range 500 {
		o := deployment
		o.Name = fmt.Sprint("web", i)
		all = append(all, o)
		w.in(drifts(all...))
	}
	w.wantRepaired("web: Deployment shop/web")
	w.holdRepair = false
	w.in(Repaired{Op: w.heldRepair.Op})
	w.wantRepaired("web: Deployment shop/web0 and 499 more")
}

// Nothing is put right of a module that is not released as it should be.
func TestNoRepairWhile(t *testing.T) {
	for name, test := range map[string]struct {
		before func(*world)
		after  func(*world) // ends the reason
	}{
		"Helm works": {
			func(w *world) { w.holdHelm = "web"; w.start() },
			func(w *world) { w.holdHelm = ""; w.in(Released{Op: w.heldHelm.Op, Changed: true, Revision: 1}) },
		},
		"Helm has failed": {
			func(w *world) { w.helmErr["web"] = errBoom; w.start() },
			func(w *world) { delete(w.helmErr, "web"); w.advance(time.Minute) },
		},
		"it is switched off": {
			func(w *world) {
				w.start()
				w.holdUninstall = true
				w.in(Config{State: ConfigPresent, Data: map[string]string{"webEnabled": "false"}})
			},
			func(w *world) {
				w.holdUninstall = false
				w.in(Config{State: ConfigPresent})
				w.in(Uninstalled{Op: w.heldUninstall.Op})
			},
		},
		"it is paused":       {func(w *world) { w.opts.Paused = []string{"web"}; w.start() }, nil},
		"its folder is gone": {func(w *world) { w.start(); w.reload(mod("other", isOn())) }, nil},
		"its code is broken": {func(w *world) { w.gen.Modules["web"].Err = errBoom; w.start() }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, mod("web", isOn()))
			test.before(w)
			w.in(drifts(deployment))
			w.advance(time.Second)
			w.wantRepaired()
			if test.after != nil {
				test.after(w)
				w.wantRepaired("web: Deployment shop/web")
			}
		})
	}
}

// Helm waits for a repair, for an install and for an uninstall: one works on a release at a time.
func TestHelmWaitsForARepair(t *testing.T) {
	for _, data := range []map[string]string{{"web": "replicas: 7"}, {"webEnabled": "false"}} {
		w := newWorld(t, mod("web", isOn()))
		w.start()
		w.holdRepair = true
		w.in(drifts(deployment))
		w.in(Config{State: ConfigPresent, Data: data})
		w.wantReleased("web#1")
		if len(w.gone) > 0 {
			t.Error("it is uninstalled")
		}
		w.in(Repaired{Op: w.heldRepair.Op})
		if data["web"] != "" {
			w.wantReleased("web#1", "web#2")
		} else if !slices.Equal(w.gone, []string{"web"}) {
			t.Error("it is not uninstalled")
		}
	}
}

// A release that is gone, with its namespace, is installed anew.
func TestALostReleaseIsMadeAnew(t *testing.T) {
	w := newWorld(t, mod("web", isOn()))
	w.start()
	w.repair = func(Repair) Repaired {
		delete(w.last, "web")
		w.queue = append(w.queue, w.e.Handle(w.now, drifts())...) // as the tracker tells after the install
		return Repaired{Lost: true}
	}
	w.in(drifts(deployment))
	w.wantRepaired("web: Deployment shop/web")
	w.wantReleased("web#1", "web#2")
}

func TestARepairThatFailsIsShownAndTriedAgain(t *testing.T) {
	w := newWorld(t, mod("web", isOn()))
	w.start()
	w.repair = func(Repair) Repaired { return Repaired{Err: errBoom} }
	w.in(drifts(deployment))
	w.advance(4 * time.Second)
	w.wantRepaired("web: Deployment shop/web", "web: Deployment shop/web", "web: Deployment shop/web")
	w.state("web", status.ModuleReady, "")
	if p := w.module("web").Problems; len(p) != 1 || !strings.Contains(p[0], "boom") {
		t.Errorf("problems: %q", p)
	}
	w.repair = nil
	w.advance(time.Minute)
	w.wantRepaired("web: Deployment shop/web")
	if p := w.module("web").Problems; len(p) > 0 {
		t.Errorf("problems: %q", p)
	}
}

func TestAContestedObjectIsTold(t *testing.T) {
	w := newWorld(t, mod("web", isOn()))
	var told []Note
	w.told = func(a Action) {
		if n, is := a.(Note); is && n.Event != "" {
			told = append(told, n)
		}
	}
	w.start()
	for range 4 {
		w.in(drifts(deployment))
	}
	w.wantRepaired(slices.Repeat([]string{"web: Deployment shop/web"}, 3)...)
	if len(told) != 1 || !strings.Contains(told[0].Message, "Deployment shop/web is contested by kubectl-edit") {
		t.Errorf("told %+v", told)
	}
	w.advance(time.Second)
	w.wantRepaired("web: Deployment shop/web")
	if d := w.module("web").Drifted; len(d) != 1 || !d[0].Contested || d[0].Object != "Deployment shop/web" || !slices.Equal(d[0].By, []string{"kubectl-edit"}) {
		t.Errorf("drifted: %+v", d)
	}
	if m := w.e.Load().Modules[0]; m.Contested["kubectl-edit"] != 1 {
		t.Errorf("load: %+v", m)
	}
	w.advance(11 * time.Minute)
	w.in(drifts())
	if m := w.e.Load().Modules[0]; m.Drifted != 0 || m.Contested != nil {
		t.Errorf("load: %+v", m)
	}
	if d := w.module("web").Drifted; len(d) > 0 {
		t.Errorf("drifted: %+v", d)
	}
}

// A field that stays as another writer of the release has left it is told, with the line that says so.
func TestAFieldThatIsLeftIsTold(t *testing.T) {
	w := newWorld(t, mod("web", isOn()))
	var told []Note
	w.told = func(a Action) {
		if n, is := a.(Note); is && n.Event != "" {
			told = append(told, n)
		}
	}
	w.start()
	w.repair = func(Repair) Repaired {
		w.queue = append(w.queue, w.e.Handle(w.now, drifts())...)
		return Repaired{Left: []Change{{Ref: deployment.Ref, Edits: []owned.Edit{{Path: owned.Path{{Field: "spec"}, {Field: "caBundle"}}, By: "injector"}}}}}
	}
	w.in(drifts(deployment))
	want := `Deployment shop/web stays in spec.caBundle as injector has written it: a hook of its chart, somebody while that ran, or who fills in certificates. Say so with module(ignore = ["Deployment/web spec.caBundle"])`
	if len(told) != 1 || told[0].Event != "LeftToOthers" || told[0].Message != want {
		t.Errorf("told %+v", told)
	}
}

// The field that is fought over is named, with its last writer. A contest is over once the field is ignored, by the
// module or by drift = "ignore" of the user.
func TestIgnoreEndsAContest(t *testing.T) {
	field := owned.Path{{Field: "spec"}, {Field: "replicas"}}
	ignores := isOn()
	ignores.Ignore = []owned.Ignore{{Kind: "Deployment", Name: "web", Path: field}}
	for name, end := range map[string]func(*world){
		"module": func(w *world) { w.reload(mod("web", ignores)) },
		"user":   func(w *world) { w.in(Config{State: ConfigPresent, Data: map[string]string{"webDrift": "ignore"}}) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, mod("web", isOn()))
			var told []string
			w.told = func(a Action) {
				if n, is := a.(Note); is && n.Event != "" {
					told = append(told, n.Message)
				}
			}
			w.start()
			w.edits = []owned.Edit{{Path: field, By: "kubectl-edit"}}
			w.in(drifts(deployment))
			w.in(drifts(deployment))
			w.edits[0].By = "argo" // whoever has written another field since goes before it in managedFields
			w.in(drifts(deployment))
			const want = `Deployment shop/web is contested by argo in spec.replicas: it was put right 3 times within 10 minutes, and waits longer each time from now on. ` +
				`End the other writer, or leave it to that with module(ignore = ["Deployment/web spec.replicas"])`
			if len(told) != 1 || told[0] != want {
				t.Errorf("told %q", told)
			}
			shown := func() {
				t.Helper()
				d := w.module("web").Drifted
				if len(d) != 1 || !d[0].Contested || !slices.Equal(d[0].Fields, []string{"spec.replicas"}) || d[0].By[0] != "argo" || !strings.HasSuffix(want, ". "+d[0].Remedy) {
					t.Errorf("drifted: %+v", d)
				}
			}
			shown()
			other := deployment
			other.By = []string{"kubectl-edit", "argo"}
			w.in(drifts(other)) // it waits
			shown()
			w.in(drifts())
			shown()
			end(w)
			if d := w.module("web").Drifted; len(d) > 0 {
				t.Errorf("drifted: %+v", d)
			}
			if m := w.e.Load().Modules[0]; m.Contested != nil {
				t.Errorf("load: %+v", m)
			}
		})
	}
}

func TestDriftIsReported(t *testing.T) {
	w := newWorld(t, mod("web", builtins.ModuleDecl{Enabled: true, Drift: builtins.DriftReport}))
	var told []string
	w.told = func(a Action) {
		if n, is := a.(Note); is && n.Event != "" {
			told = append(told, n.Event+" "+n.Message)
		}
	}
	w.start()
	w.in(drifts(deployment))
	w.in(drifts(deployment))
	w.wantRepaired()
	if len(told) != 1 || told[0] != `Drifted Deployment shop/web was changed by kubectl-edit; it stays so, for drift is reported alone` {
		t.Errorf("told %q", told)
	}
	if d := w.module("web").Drifted; len(d) != 1 || d[0].Contested {
		t.Errorf("drifted: %+v", d)
	}
	w.in(Drift{Module: "web", Verify: true})
	w.wantRepaired("web: all")
}

// The user's ConfigMap has the last word on a release.
func TestPoliciesOfTheUser(t *testing.T) {
	w := newWorld(t, mod("web", isOn()))
	var drift []string
	w.told = func(a Action) {
		if r, is := a.(Release); is {
			drift = append(drift, r.Drift)
		}
	}
	config := func(data map[string]string) { w.in(Config{State: ConfigPresent, Data: data}) }
	w.start()
	config(map[string]string{"webDrift": "report"})
	w.in(drifts(deployment))
	w.wantRepaired()
	config(map[string]string{"webDrift": "mend"}) // refused: it stays as it was
	w.wantRepaired()
	config(map[string]string{"webPaused": "true"})
	w.wantRepaired()
	w.state("web", status.ModulePaused, "")
	config(map[string]string{"webMaintenance": "NoResourceReconciliation"}) // as in addon-operator
	w.state("web", status.ModulePaused, "")
	config(map[string]string{"webMaintenance": "Unmanaged", "webPaused": "false"}) // refused: it stays as it was
	w.state("web", status.ModulePaused, "")
	config(nil)
	w.wantRepaired("web: Deployment shop/web")
	config(map[string]string{"webDrift": "ignore"})
	config(nil)
	if want := []string{"repair", "ignore", "repair"}; !slices.Equal(drift, want) {
		t.Errorf("releases with drift %q, want %q", drift, want)
	}
	w.wantReleased("web#1") // no revision comes of it
}
