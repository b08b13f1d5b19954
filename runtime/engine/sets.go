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

// removeSets deletes the sets of some hooks of the module.
func (e *Engine) removeSets(m *module, managers []string, then func(error)) {
	slices.Sort(managers)
	asked := e.ops
	op := e.ask(func(in Input) {
		err := in.(SetsRemoved).Err
		for _, manager := range managers {
			if err == nil && m.sets[manager] <= asked {
				delete(m.sets, manager)
			}
		}
		e.touch(m)
		then(err)
	})
	e.do(RemoveSets{Op: op, Module: m.name, Managers: managers})
}

// stepSets deletes the sets of hooks that a module which runs does not have any more.
func (e *Engine) stepSets(m *module) {
	if !m.started || m.leaving || m.strays.running || m.strays.retry.Waits(e.now) || len(m.sets) == 0 {
		return
	}
	gone := maps.Clone(m.sets)
	for _, h := range m.hooks {
		delete(gone, effect.Manager(h.gen.ID))
	}
	for _, r := range e.runs {
		if r.hook.module == m { // it may be about to apply one
			delete(gone, effect.Manager(r.hook.gen.ID))
		}
	}
	if len(gone) == 0 {
		m.strays = step{}
		return
	}
	m.strays.running = true
	e.removeSets(m, slices.Collect(maps.Keys(gone)), func(err error) {
		if err != nil {
			m.strays.failed(e.now, err, e.opts.Jitter())
			return
		}
		m.strays = step{}
	})
}

// straysTrouble says why sets of hooks that are gone are still there, or "".
func (m *module) straysTrouble() string {
	if m.strays.err == "" {
		return ""
	}
	return "sets of hooks that are gone: " + strings.ReplaceAll(m.strays.err, "\n", "; ")
}
