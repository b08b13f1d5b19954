package engine

import (
	"slices"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/engine/subjects"
)

// Hooks of startup(when_off=True) run in a module that is off, too. Nothing else of it does.

// whenOff says whether the hook runs in a module that is off.
func (h *hook) whenOff() bool {
	b := h.startup()
	return b != nil && b.WhenOff
}

// off says that the module is off, and that it is not about to go.
func (m *module) off() bool {
	return m.life == down && !m.removed && m.verdict.State == status.ModuleOff && !m.verdict.Do.Goes()
}

// awake says whether the module is one in which the hook runs.
func (h *hook) awake() bool { return h.module.life != down || h.whenOff() && h.module.off() }

// startOff queues what a module runs that is off, once until it comes up.
func (t *turn) startOff(m *module) {
	if !m.off() {
		return
	}
	for _, h := range m.hooks {
		if h.whenOff() && h.subjects.First() == subjects.Untried && !h.lane.Waits(h.gen.ID) && !h.running() {
			t.queueStartup(h)
		}
	}
}

// endOff forgets what a module has run while it was off: it begins anew.
func (t *turn) endOff(m *module) {
	if !slices.ContainsFunc(m.hooks, (*hook).whenOff) {
		return
	}
	m.incarnation = t.op()
	for _, h := range m.hooks {
		if h.whenOff() {
			h.lane.Drop(h.gen.ID)
			h.reset()
		}
	}
}
