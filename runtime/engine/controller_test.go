package engine

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// A parent that is being deleted stays until nothing is left to be done about its children, and people
// are told for what it waits.
func TestAParentGoesAfterItsChildren(t *testing.T) {
	h := eachHook("a", false)
	h.Controller = &builtins.ControllerDecl{}
	h.Bindings = append(h.Bindings, onWatch("children-service"))
	w := newWorld(t, mod("web", isOn(), h))
	w.objects["x"] = Object{Name: "x"}
	told := func() string {
		in, err := w.e.Explain("web")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(in.Notes, "\n")
	}
	child := func(typ string) {
		w.in(WatchChanged{ID: "web/a#children-service", Events: []builtins.Event{{Type: typ, Binding: "children-service", Name: "x"}}})
	}
	w.waits = "wait Ingress x: web is not ready"
	w.actions = []reconcile.Action{{Op: reconcile.OpWait, ID: reconcile.ID{Ref: effect.Ref{Kind: "Ingress", Name: "x"}}, Part: "ingress", Why: "web is not ready"}}
	w.start()
	parents, err := w.e.Parents("web", "x")
	if err != nil || len(parents) != 1 || parents[0].Waits != w.waits || len(parents[0].Actions) != 1 || parents[0].Actions[0].Child != "Ingress x" {
		t.Errorf("parents %+v, error %v", parents, err)
	}
	if _, err := w.e.Parents("web", "y"); err == nil || err.Error() != `there is no parent "y"; there are x` {
		t.Errorf("error %v", err)
	}
	w.actions = nil
	if !w.objects["x"].Held {
		t.Fatal("no finalizer")
	}
	if got := told(); got != "controller web/a: x: wait Ingress x: web is not ready" {
		t.Errorf("told %q", got)
	}
	w.waits = ""
	w.runs = nil
	child("modified")
	w.ran("web/a[x] modified")
	if got := told(); got != "" {
		t.Errorf("told %q", got)
	}
	w.waits = "wait Service x: it is being deleted"
	w.happens("deleted", "x")
	w.ran("web/a[x] cleanup")
	if _, there := w.objects["x"]; !there {
		t.Error("gone before its children")
	}
	w.waits = ""
	child("deleted")
	w.ran("web/a[x] cleanup")
	if _, there := w.objects["x"]; there {
		t.Error("still held")
	}
}

// A parent gets the finalizer before its first child, and without children it goes at once. A function that
// cleans up is asked about each.
func TestAParentWithoutChildrenIsLeftAlone(t *testing.T) {
	clean := starlark.NewBuiltin("clean", func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
		return starlark.None, nil
	})
	for _, test := range []struct {
		decl      builtins.ControllerDecl
		childless bool
		held      bool
	}{
		{builtins.ControllerDecl{}, true, false}, {builtins.ControllerDecl{}, false, true}, {builtins.ControllerDecl{Cleanup: clean}, true, true},
	} {
		h := eachHook("a", false)
		h.Controller = &test.decl
		w := newWorld(t, mod("web", isOn(), h))
		w.objects["x"] = Object{Name: "x"}
		w.childless = test.childless
		w.start()
		if w.objects["x"].Held != test.held || test.held != (w.writes > 0) {
			t.Fatalf("%+v: held %t after %d writes", test, w.objects["x"].Held, w.writes)
		}
		if test.held {
			continue
		}
		w.childless = false
		w.happens("modified", "x")
		if !w.objects["x"].Held {
			t.Error("its first child comes without the finalizer")
		}
		w.childless = true
		w.happens("modified", "x")
		if !w.objects["x"].Held || w.writes != 1 {
			t.Errorf("held %t after %d writes", w.objects["x"].Held, w.writes)
		}
	}
}

// A controller that fails has its status written all the same. The next run knows why the one before it has
// failed, and forgets that once one has succeeded.
func TestAFailureOfAControllerIsWritten(t *testing.T) {
	h := eachHook("a", false)
	h.Controller = &builtins.ControllerDecl{}
	w := newWorld(t, mod("web", isOn(), h))
	w.objects["x"] = Object{Name: "x"}
	status := effect.Effects{Writes: []effect.Write{{Kind: effect.WriteStatus, Ref: effect.Ref{APIVersion: "v1", Kind: "Node", Name: "x"}}}}
	broken := errors.New("boom")
	var failed []string
	w.hooks["web/a"] = func(a RunHook) (effect.Effects, error) {
		failed = append(failed, a.Failed)
		return status, broken
	}
	w.start()
	if w.writes == 0 || !strings.Contains(w.e.module("web").hooks[0].subjects.Failure(), "boom") {
		t.Fatalf("%d writes, failure %q", w.writes, w.e.module("web").hooks[0].subjects.Failure())
	}
	w.commitErr = errors.New("refused")
	w.happens("modified", "x")
	w.advance(time.Minute)
	if got := w.e.module("web").hooks[0].subjects.Failure(); !strings.Contains(got, "boom") {
		t.Errorf("the failure is %q: that of the run comes before that of its status", got)
	}
	broken, w.commitErr = nil, nil
	w.advance(10 * time.Minute)
	w.happens("modified", "x")
	if got := strings.Join(failed, ","); !strings.HasPrefix(got, ",boom") || failed[len(failed)-1] != "" {
		t.Errorf("runs know of %q", got)
	}
	// A failure for good is not tried again, but for a status that could not be written.
	w.advance(time.Minute)
	broken, w.commitErr = &builtins.FailError{Msg: "no tier", Permanent: true}, errors.New("refused")
	w.happens("modified", "x")
	if got := w.e.module("web").hooks[0].subjects.Failure(); !strings.Contains(got, "no tier; refused") {
		t.Errorf("the failure is %q", got)
	}
	w.commitErr = nil
	for _, want := range []int{1, 0} {
		failed = nil
		w.advance(time.Hour)
		if len(failed) != want {
			t.Errorf("%d runs, want %d", len(failed), want)
		}
	}
	// A status that is not due yet is written later.
	status = effect.Effects{Requeue: time.Second}
	w.happens("modified", "x")
	failed, status = nil, effect.Effects{}
	w.advance(time.Hour)
	if len(failed) != 1 {
		t.Errorf("%d runs, want 1", len(failed))
	}
}

// A part that fails, and is tried again later and later, puts off nothing else of its parent: a child that is
// left alone for a few seconds, a status that is not due yet, a time that desired has asked for.
func TestAFailureDelaysNoOtherLook(t *testing.T) {
	refused := errors.New("refused")
	writes := []effect.Write{{Kind: effect.WriteChildren, Ref: effect.Ref{Kind: "children", Name: "x"}}}
	for name, c := range map[string]struct {
		effects         effect.Effects
		due             time.Duration
		failed, commits error
	}{
		"a write":               {effect.Effects{Writes: writes, Requeue: 5 * time.Second}, 0, nil, refused},
		"a look":                {effect.Effects{Requeue: 5 * time.Second}, 0, refused, nil},
		"a look that is final":  {effect.Effects{Requeue: time.Minute}, 5 * time.Second, &builtins.FailError{Msg: "no", Permanent: true}, nil},
		"a time after a status": {effect.Effects{Writes: writes, Requeue: time.Minute}, 5 * time.Second, nil, refused},
	} {
		h := eachHook("a", false)
		h.Controller = &builtins.ControllerDecl{}
		w := newWorld(t, mod("web", isOn(), h))
		w.objects["x"] = Object{Name: "x"}
		var effects effect.Effects
		failed, at := refused, []time.Time(nil)
		w.hooks["web/a"] = func(RunHook) (effect.Effects, error) {
			at = append(at, w.now)
			return effects, failed
		}
		w.start()
		w.advance(time.Hour) // the next try is minutes away
		w.commitErr, effects, failed, at = c.commits, c.effects, c.failed, nil
		if c.due > 0 {
			w.due = map[string]time.Time{"x": w.now.Add(c.due + 2*time.Second)}
		}
		w.advance(2 * time.Second)
		w.happens("modified", "x")
		effects, w.due = effect.Effects{}, nil
		w.advance(5 * time.Second)
		if len(at) != 2 || at[1].Sub(at[0]) != 5*time.Second {
			t.Errorf("%s: looks at %v, want another one after 5 seconds", name, at)
		}
	}
}

// A controller that fails for good in the same way again has one line in the log: its own status, which says so,
// brings it a second run. Another failure has its own, and so has the same one after a success.
func TestAFailureForGoodOfAControllerIsSaidOnce(t *testing.T) {
	h := eachHook("a", false)
	h.Controller = &builtins.ControllerDecl{}
	w := newWorld(t, mod("web", isOn(), h))
	w.objects["x"] = Object{Name: "x"}
	var fails error = &builtins.FailError{Msg: "the host is taken", Permanent: true}
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) { return effect.Effects{}, fails }
	lines := map[builtins.Level]int{}
	w.told = func(a Action) {
		if a, is := a.(Note); is && strings.Contains(a.Message, "(not tried again before something changes)") {
			lines[a.Level]++
		}
	}
	want := func(errs, rest int) {
		t.Helper()
		if lines[builtins.LevelError] != errs || lines[builtins.LevelDebug] != rest {
			t.Errorf("%v, want %d errors and %d lines for debugging", lines, errs, rest)
		}
	}
	w.start()
	want(1, 0)
	for range 2 {
		w.happens("modified", "x")
		w.advance(time.Minute)
	}
	want(1, 2)
	fails = &builtins.FailError{Msg: "the image is wrong", Permanent: true}
	w.happens("modified", "x")
	w.advance(time.Minute)
	want(2, 2)
	fails = nil
	w.happens("modified", "x")
	w.advance(time.Minute)
	fails = &builtins.FailError{Msg: "the image is wrong", Permanent: true}
	w.happens("modified", "x")
	w.advance(time.Minute)
	want(3, 2)
}
