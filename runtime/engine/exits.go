package engine

import (
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/engine/verdicts"
)

// orderKey holds the places of all modules among what is kept for the global hooks.
const orderKey = "order"

// noteOrder looks at the places of all modules that are there, and has them kept when they are other ones.
func (e *Engine) noteOrder() {
	places := verdicts.Places{}
	for _, m := range e.modules {
		places[m.name] = verdicts.PlaceOf(&m.gen.Decl)
	}
	e.exits = places.Exits()
	e.global.store.Put(orderKey, places.Encode())
	e.placed = e.global.store.Written(orderKey)
}

// unkept says that something has to be kept before any more of a module is done: its config, for a tree that has just
// come must not meet the section of before, and its place, without which another process would take it away out of
// order.
func (v *View) unkept(m *module) bool {
	return v.config.Moves(m.name) || !m.there() && !v.placed && !v.global.barred()
}

// there says whether something of the module is in the cluster that goes with it.
func (m *module) there() bool { return m.pass.Installed() || m.sets.Any() || m.store.Has(upKey) }

// goesFirst names a module that has to be gone before this one is taken away, or "".
func (v *View) goesFirst(m *module) string {
	return v.exits.GoesBefore(m.name, func(name string) bool {
		other := v.modules[name]
		if other == nil || !other.there() {
			return false
		}
		will := verdicts.Decide(v.facts(other))
		return will.Do == verdicts.Uninstall || other.removed && will.State != status.ModulePaused // now or later
	})
}

// wait has a module that would be taken away wait for those that go before it.
func (e *Engine) wait(m *module) {
	if m.verdict.Do != verdicts.Uninstall || m.life == leaving || m.pass.Uninstalling() {
		return
	}
	if name := e.goesFirst(m); name != "" {
		m.verdict = m.verdict.Behind(name)
	}
}
