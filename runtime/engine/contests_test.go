package engine

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	hooks "github.com/starling-operator/starling/runtime/hook"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// A child that was put right three times is contested: people are told once, runs are told until when it has to
// stay as it is, and that ends ten minutes after the last repair. A repair that fails is none.
func TestAContestedChildIsTold(t *testing.T) {
	h := eachHook("a", false)
	h.Controller = &builtins.ControllerDecl{}
	w := newWorld(t, mod("web", isOn(), h))
	w.objects["x"] = Object{Name: "x"}
	id := reconcile.ID{Ref: effect.Ref{APIVersion: "v1", Kind: "Service", Namespace: "shop", Name: "web"}}
	var past hooks.Past
	var effects effect.Effects
	w.hooks["web/a"] = func(a RunHook) (effect.Effects, error) {
		past = a.Past
		return effects, nil
	}
	var events []string
	w.told = func(a Action) {
		if n, is := a.(Note); is && n.Event != "" {
			events = append(events, n.Event+" "+n.Hook+": "+n.Message)
		}
	}
	w.start()
	w.advance(time.Minute)
	effects = effect.Effects{Writes: []effect.Write{{Kind: effect.WriteChildren, Ref: effect.Ref{Kind: "children", Name: "x"}, Children: []effect.Write{{Ref: id.Ref}}}}}
	w.about = []reconcile.Write{{ID: id, By: "argo"}}
	w.commitErr = errors.New("refused")
	for range 3 {
		w.happens("modified", "x")
		w.advance(10 * time.Second)
	}
	w.commitErr = nil
	for i, left := range []time.Duration{0, 0, 0, time.Second, 2 * time.Second, 4 * time.Second} {
		w.happens("modified", "x")
		var got time.Duration
		if len(past.Contests) == 1 && past.Contests[0].ID == id && past.Contests[0].By == "argo" {
			got = past.Contests[0].Left
		}
		if got != left || left == 0 && len(past.Contests) > 0 {
			t.Errorf("after %d repairs it is held for %s, want %s: %+v", i, got, left, past)
		}
	}
	if got := w.e.module("web").contests(w.now); got["argo"] != 1 {
		t.Errorf("contests %v", got)
	}
	const want = "DriftContested web/a: x: Service shop/web is contested by argo: it was put right 3 times within 10 minutes, and waits longer each time from now on"
	if strings.Join(events, "\n") != want {
		t.Errorf("events %q", events)
	}
	effects, w.about = effect.Effects{}, nil
	w.advance(10 * time.Minute)
	w.happens("modified", "x")
	if len(past.Contests) > 0 || len(w.e.module("web").contests(w.now)) > 0 {
		t.Errorf("it does not end: %+v", past)
	}
	w.happens("deleted", "x")
	if n := len(w.e.module("web").hooks[0].repairs); n > 0 {
		t.Errorf("%d parents are left", n)
	}
}
