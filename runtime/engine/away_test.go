package engine

import (
	"errors"
	"testing"
	"time"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine/persist"
	"github.com/starling-operator/starling/runtime/lane"
)

// A hook that keeps nothing, and whose writes the API server has refused while it was in trouble, is tried again soon
// once that is over, and not soon while it lasts.
func TestAHookThatOnlyAppliesGoesOnOnceTheServerIsBack(t *testing.T) {
	w := newWorld(t, mod("a", isOn(), hk("h", onWatch("nodes"))))
	w.hooks["a/h"] = func(RunHook) (effect.Effects, error) {
		return effect.Effects{Writes: []effect.Write{{Kind: effect.WriteApply}}}, nil
	}
	w.start()
	w.commitErr, w.saveErr = &lane.Awaits{Err: errors.New("etcd is full"), For: lane.AwaitsServer}, errors.New("etcd is full")
	w.changed("a/h#nodes")
	w.advance(time.Hour)
	if runs := len(w.runs); runs > 30 {
		t.Errorf("%d tries in an hour", runs)
	}
	w.commitErr, w.saveErr = nil, nil
	w.advance(persist.Retry.Max * 5 / 4)
	if h := w.e.Status().Hooks[0]; h.State != status.HookOK {
		t.Errorf("%+v", h)
	}
	saves := w.saves
	w.advance(time.Hour)
	if w.saves != saves {
		t.Errorf("%d more writes of what is kept", w.saves-saves)
	}
}

// After an API server was away for long all is done within seconds, however long each hook and release would wait.
func TestAllGoesOnOnceTheServerIsBack(t *testing.T) {
	value := int64(1)
	away := false
	w := newWorld(t, mod("a", isOn(), hk("h", onWatch("nodes"))), mod("b", isOn(), hk("h", onWatch("nodes"))), mod("c", isOn(), hk("h", onWatch("nodes"))))
	for _, module := range []string{"a", "b"} {
		w.hooks[module+"/h"] = func(RunHook) (effect.Effects, error) { return set("n", value), nil }
	}
	w.hooks["c/h"] = func(RunHook) (effect.Effects, error) { // keeps nothing, and cannot read
		if away {
			return effect.Effects{}, errors.New("the API server is away")
		}
		return effect.Effects{}, nil
	}
	w.start()
	away, value, w.saveErr = true, 2, errors.New("the API server is away")
	for _, module := range []string{"a", "b", "c"} {
		w.changed(module + "/h#nodes")
	}
	w.advance(time.Hour)
	for _, h := range w.e.Status().Hooks {
		if h.State != status.HookFailed {
			t.Fatalf("%+v", h)
		}
	}
	away, w.saveErr = false, nil
	w.advance(persist.Retry.Max * 5 / 4) // with what Jitter adds
	for _, h := range w.e.Status().Hooks {
		if h.State != status.HookOK {
			t.Errorf("%+v", h)
		}
	}
	for _, name := range []string{"a", "b"} {
		w.state(name, status.ModuleReady, "")
	}
}
