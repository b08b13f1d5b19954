package engine

import "testing"

// wantWakes fails when a module wants a tick at another time than the engine goes by.
func wantWakes(t testing.TB, e *Engine) {
	if e.gen == nil || t == nil {
		return
	}
	for _, m := range append(e.all(), e.leavers...) {
		known, knownOK := m.nextWake(e.now)
		if at, ok := m.wake(e.now); ok != knownOK || !at.Equal(known) {
			t.Errorf("module %s wants a tick at %s (%t), and has one at %s (%t)", m.name, at, ok, known, knownOK)
		}
	}
}
