package engine

import (
	"errors"
	"strings"

	"github.com/starling-operator/starling/runtime/effect"
)

// Sets of objects go with the hook that has applied them, and with its module: see package sets.

// setsRemoved ends a removal of sets. There is one at a time: for an uninstall, or for hooks that are gone.
func (t *turn) setsRemoved(m *module, a asked, in SetsRemoved) {
	err := in.Err
	if m.sets.Removed(a.action.(RemoveSets).Managers, in.Op, t.now, err, t.opts.Jitter) {
		return
	}
	if err != nil { // of an uninstall, which is shown in one line
		err = errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	m.pass.Removed(err, t.now, t.opts.Jitter())
}

// stepSets deletes the sets of hooks that a module which runs does not have any more.
func (t *turn) stepSets(m *module) {
	if t.globals.Stays != "" || m.life != up || m.pass.Uninstalling() || !m.sets.Due(t.now) {
		return
	}
	managers := map[string]bool{}
	for _, h := range m.hooks {
		managers[effect.Manager(h.gen.ID)] = true
	}
	for r := range m.runs() { // it may be about to apply one
		managers[effect.Manager(r.hook.gen.ID)] = true
	}
	if gone := m.sets.Strays(managers); len(gone) > 0 {
		t.ask(m, RemoveSets{Op: t.op(), Module: m.name, Managers: gone})
	}
}
