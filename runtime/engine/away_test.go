package engine

import (
	"errors"
	"testing"
	"time"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/effect"
)

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
	w.advance(saveRetry.Max * 5 / 4) // with what Jitter adds
	for _, h := range w.e.Status().Hooks {
		if h.State != status.HookOK {
			t.Errorf("%+v", h)
		}
	}
	for _, name := range []string{"a", "b"} {
		w.state(name, status.ModuleReady, "")
	}
}
