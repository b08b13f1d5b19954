package engine

import (
	"slices"

	"github.com/starling-operator/starling/runtime/effect"
)

// Sets of objects go with the hook that has applied them, and with its module: see package sets.

// applies notes that a commit may apply sets that go with the hook.
func (e *Engine) applies(h *hook, writes []effect.Write) {
	if slices.ContainsFunc(writes, func(w effect.Write) bool { return w.Kind == effect.WriteSet && !w.Set.Keep }) {
		h.module.sets.Applies(effect.Manager(h.gen.ID), e.ops)
	}
}

// removeSets deletes the sets of some hooks of the module. It is done once at a time: for
// an uninstall, or for hooks that are gone.
func (e *Engine) removeSets(m *module, managers []string) {
	e.ask(m, RemoveSets{Op: e.op(), Module: m.name, Managers: managers})
}

func (e *Engine) setsRemoved(a asked, in SetsRemoved) {
	managers := a.action.(RemoveSets).Managers
	if !a.module.sets.Removed(managers, in.Op, e.now, in.Err, releaseRetry, e.opts.Jitter) {
		e.uninstalledSets(a.module, in.Err)
	}
}

// stepSets deletes the sets of hooks that a module which runs does not have any more.
func (e *Engine) stepSets(m *module) {
	if e.globals.Stays != "" || m.life != up || m.pass.Uninstalling() || !m.sets.Due(e.now) {
		return
	}
	managers := map[string]bool{}
	for _, h := range m.hooks {
		managers[effect.Manager(h.gen.ID)] = true
	}
	for h := range m.runs { // it may be about to apply one
		managers[effect.Manager(h.gen.ID)] = true
	}
	if gone := m.sets.Strays(managers); len(gone) > 0 {
		e.removeSets(m, gone)
	}
}
