package engine

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	hooks "github.com/starling-operator/starling/runtime/hook"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// A child that cannot be written waits alone: events have the parent look at once, and each look is told
// which child is not due yet. A change of the parent shortens the wait, and so does one of the object of that name.
func TestAChildThatFailsHoldsUpNothingElse(t *testing.T) {
	h := eachHook("a", false)
	h.Controller = &builtins.ControllerDecl{}
	w := newWorld(t, mod("web", isOn(), h))
	w.objects["x"] = Object{Name: "x"}
	child := func(name string) reconcile.ID {
		return reconcile.ID{Ref: effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: name}}
	}
	var past hooks.Past
	var effects effect.Effects
	looks := 0
	w.hooks["web/a"] = func(a RunHook) (effect.Effects, error) {
		past, looks = a.Past, looks+1
		return effects, nil
	}
	w.start()
	w.advance(time.Minute)
	writes := effect.Effects{Writes: []effect.Write{{Kind: effect.WriteChildren, Ref: effect.Ref{Kind: "children", Name: "x"}, Children: []effect.Write{{Ref: child("bad").Ref}, {Ref: child("good").Ref}}}}}
	w.about = []reconcile.Write{{ID: child("bad"), Digest: "1"}, {ID: child("good"), Digest: "2"}}
	w.actions = []reconcile.Action{{Op: reconcile.OpCreate, ID: child("bad"), Part: "bad", Why: "it is not there"}}
	w.commitErr = errors.New("refused (1 of 2 writes fail)")
	w.fates = []effect.Fate{{Err: errors.New("refused")}, {Written: true, Form: "kept"}}
	effects = writes
	w.happens("modified", "x")
	effects = effect.Effects{}
	if got := w.e.Failures(); len(got) != 1 || got[0].Reason != "refused (1 of 2 writes fail)" {
		t.Errorf("failures %+v", got)
	}
	if got, _ := w.e.Actions("web/a", "x"); len(got) != 1 || got[0].Op != reconcile.OpHold || got[0].Why != "refused" {
		t.Errorf("actions %+v", got)
	}
	state := func() string {
		t.Helper()
		if len(past.Failures) != 1 || past.Failures[0].ID != child("bad") || past.Failures[0].Digest != "1" || past.Failures[0].Reason != "refused" {
			t.Fatalf("%+v", past)
		}
		return fmt.Sprintf("%d tries, due %v, %d kept", past.Failures[0].Tries, past.Failures[0].Due, len(past.Kept))
	}
	ours := func() { // a change of the parent that Starling itself has made
		in := w.event("modified", w.objects["x"], false)
		in.Events[0].Cause = &effect.Cause{Run: "web/a of x"}
		w.in(in)
	}
	before := looks
	ours() // no time has passed
	if got := state(); looks != before+1 || got != "1 tries, due false, 1 kept" {
		t.Errorf("%d more looks, %s", looks-before, got)
	}
	for range 5 { // at its own time, which grows
		effects = writes
		w.advance(6 * time.Minute)
		effects = effect.Effects{}
	}
	ours()
	if got := state(); past.Failures[0].Due || past.Failures[0].Tries < 5 {
		t.Error(got)
	}
	w.advance(2 * time.Second)
	w.happens("modified", "x") // somebody has changed the parent
	ours()
	if got := state(); !past.Failures[0].Due {
		t.Error(got)
	}
	w.commitErr, w.fates, effects = nil, nil, writes
	w.happens("modified", "x")
	effects, w.actions = effect.Effects{}, nil
	w.happens("modified", "x")
	if got := w.e.Failures(); len(got) > 0 || len(past.Failures) > 0 || len(past.Kept) > 0 {
		t.Errorf("failures %+v, %+v", got, past)
	}
}

// failedChild is a world in which a controller could not write a child of x, whose next try is a second away. The
// world holds what the next looks decide, and whether they fail.
func failedChild(t *testing.T) (w *world, bad reconcile.ID, fails *error, looks *int) {
	h := eachHook("a", false)
	h.Controller = &builtins.ControllerDecl{}
	w, fails, looks = newWorld(t, mod("web", isOn(), h)), new(error), new(int)
	w.objects["x"] = Object{Name: "x"}
	bad = reconcile.ID{Ref: effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "bad"}}
	var effects effect.Effects
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) {
		*looks++
		return effects, *fails
	}
	w.start()
	w.advance(time.Minute)
	effects.Writes = []effect.Write{{Kind: effect.WriteChildren, Ref: effect.Ref{Kind: "children", Name: "x"}, Children: []effect.Write{{Ref: bad.Ref}}}}
	w.about = []reconcile.Write{{ID: bad, Digest: "1"}}
	w.actions = []reconcile.Action{{Op: reconcile.OpCreate, ID: bad, Part: "bad"}}
	w.commitErr, w.fates = errors.New("refused"), []effect.Fate{{Err: errors.New("refused")}}
	w.happens("modified", "x")
	effects, w.about, w.commitErr, w.fates = effect.Effects{}, nil, nil, nil
	return w, bad, fails, looks
}

// A child whose next try is due, and which has to wait for something else by then, has its parent looked at no more
// than that one look.
func TestAFailedChildThatWaitsForSomethingElse(t *testing.T) {
	w, bad, _, looks := failedChild(t)
	for _, op := range []reconcile.Op{reconcile.OpWait, reconcile.OpHold} {
		w.actions = []reconcile.Action{{Op: op, ID: bad, Part: "bad", Why: "another part comes first"}}
		w.happens("modified", "x")
		before := *looks
		if w.advance(time.Hour); *looks > before+1 {
			t.Errorf("%s: %d looks in an hour", op, *looks-before)
		}
	}
}

// A child whose next try is due ends no pause of a function that fails, nor one that fails for good.
func TestAFailedChildOfAControllerThatFails(t *testing.T) {
	for most, err := range map[int]error{1: &builtins.FailError{Msg: "no", Permanent: true}, 30: errors.New("too slow")} {
		w, _, fails, looks := failedChild(t)
		*fails = err
		w.happens("modified", "x")
		before := *looks
		if w.advance(time.Hour); *looks > before+most {
			t.Errorf("%v: %d looks in an hour, want %d at most", err, *looks-before, most)
		}
	}
}
