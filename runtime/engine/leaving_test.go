package engine

import (
	"testing"
	"time"

	"github.com/starling-operator/starling/runtime/effect"
)

// Somebody who deletes an object does not wait for its next try.
func TestAnObjectThatFailsGoesAtOnce(t *testing.T) {
	w, fails := eachWorld(t, true, "x"), false
	w.hooks["web/a"] = func(r RunHook) (effect.Effects, error) {
		if r.Cleanup || !fails {
			return effect.Effects{}, nil
		}
		return effect.Effects{}, errBoom
	}
	w.start()
	fails = true
	w.happens("modified", "x")
	w.advance(time.Hour)
	w.happens("deleted", "x")
	w.advance(time.Second)
	if _, there := w.objects["x"]; there {
		t.Error("still held")
	}
}
