package engine

import (
	"maps"
	"slices"
	"strings"

	"github.com/starling-operator/starling/runtime/effect"
)

// Sets of objects go with the hook that has applied them, and with its module. The engine
// knows which hooks may have some, by their field managers, and which action was the last
// that may have applied one.

// noteSets notes which hooks an earlier process has found to have sets.
func (m *module) noteSets(managers []string) {
	for _, manager := range managers {
		m.sets[manager] = 0
	}
}

// applies notes that a commit may apply sets that go with the hook.
func (e *Engine) applies(h *hook, writes []effect.Write) {
	if slices.ContainsFunc(writes, func(w effect.Write) bool { return w.Kind == effect.WriteSet && !w.Set.Keep }) {
		h.module.sets[effect.Manager(h.gen.ID)] = e.ops
	}
}

// removeSets deletes the sets of some hooks of the module. It is done once at a time: for
// an uninstall, or for hooks that are gone.
func (e *Engine) removeSets(m *module, managers map[string]uint64) {
	e.ask(m, RemoveSets{Op: e.op(), Module: m.name, Managers: slices.Sorted(maps.Keys(managers))})
}

func (e *Engine) setsRemoved(a asked, in SetsRemoved) {
	m := a.module
	for _, manager := range a.action.(RemoveSets).Managers {
		if in.Err == nil && m.sets[manager] < in.Op { // applied before
			delete(m.sets, manager)
		}
	}
	switch {
	case !m.strays.Running:
		e.uninstalledSets(m, in.Err)
	default:
		m.strays.Ended(e.now, in.Err, releaseRetry, e.opts.Jitter)
	}
}

// stepSets deletes the sets of hooks that a module which runs does not have any more.
func (e *Engine) stepSets(m *module) {
	if !m.started || m.leaving || m.pass.Uninstalling() || m.strays.Running || m.strays.Waits(e.now) || len(m.sets) == 0 {
		return
	}
	gone := maps.Clone(m.sets)
	for _, h := range m.hooks {
		delete(gone, effect.Manager(h.gen.ID))
	}
	for h := range e.underWay(m) { // it may be about to apply one
		delete(gone, effect.Manager(h.gen.ID))
	}
	if len(gone) == 0 {
		m.strays.Again()
		return
	}
	m.strays.Running = true
	e.removeSets(m, gone)
}

// straysTrouble says why sets of hooks that are gone are still there, or "".
func (m *module) straysTrouble() string {
	if m.strays.Err == "" {
		return ""
	}
	return "sets of hooks that are gone: " + strings.ReplaceAll(m.strays.Err, "\n", "; ")
}
