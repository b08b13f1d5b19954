package engine

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
)

func wantSaid(t *testing.T, w *world, want ...string) {
	t.Helper()
	if !slices.Equal(w.said, want) {
		t.Errorf("said %q, want %q", w.said, want)
	}
	w.said = nil
}

// Nobody hears of what was not written.
func TestMessagesAreSentOnceTheRunIsCommitted(t *testing.T) {
	receive := builtins.Binding{Name: "receive", Receive: &builtins.ReceiveBinding{Path: "/x"}}
	w := newWorld(t, mod("web", isOn(), hk("a", onWatch("nodes"), receive)))
	w.hooks["web/a"] = func(r RunHook) (effect.Effects, error) {
		return effect.Effects{
			Writes:   []effect.Write{{Kind: effect.WriteApply}},
			Messages: []effect.Message{{Request: effect.Request{URL: "https://chat.example"}}},
		}, nil
	}
	w.commitErr = errors.New("0 of 1 written")
	w.start()
	wantSaid(t, w)
	w.commitErr = nil
	w.advance(time.Second)
	wantSaid(t, w, "web/a sends https://chat.example")

	// A request is answered after its commit, and its messages are on their way then.
	w.in(Requested{ID: 1, Hook: "web/a", Request: &builtins.Request{Binding: "receive"}})
	wantSaid(t, w, "web/a sends https://chat.example", "request 1: <nil>")
	w.commitErr = errors.New("0 of 1 written")
	w.in(Requested{ID: 2, Hook: "web/a", Request: &builtins.Request{Binding: "receive"}})
	wantSaid(t, w, "request 2: 0 of 1 written")
}

// A call about an object that is not there is refused, whatever would cause such a run.
func TestACallOfAnObjectThatIsNotThereIsRefused(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), eachHook("a", false)))
	w.objects["o"] = Object{Name: "o"}
	w.start()
	why := ""
	w.told = func(a Action) {
		if a, ok := a.(Respond); ok && a.Err != nil {
			why = a.Err.Error()
		}
	}
	w.in(Requested{ID: 1, Hook: "web/a", Key: "gone"})
	if why == "" {
		t.Error("it runs")
	}
}
