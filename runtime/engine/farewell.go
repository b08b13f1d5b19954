package engine

import (
	"slices"
	"time"

	"github.com/starling-operator/starling/modules/status"
)

// A module that is not in the tree any more, and has before_delete or after_delete hooks,
// leaves as one that is switched off does: with the hooks that its last generation had.
// After a restart nobody has them.

const (
	goneReason = "no longer in the module tree"
	// goneHint is said where such a hook fails: nobody can mend it where it was.
	goneHint = "; its folder is gone: bring it back to mend the hook, or restart starling to uninstall without it"
)

// takesLeave says that hooks of a module run as its release is uninstalled.
func (m *module) takesLeave() bool {
	return m.broken == "" && len(m.pass.refs) > 0 && slices.ContainsFunc(m.hooks, (*hook).leaves)
}

// mayGo says whether what is left of a module that is not in the tree may be taken away:
// every module of the tree has settled, and its folder is not one that is being written.
func (e *Engine) mayGo(name string) bool {
	if len(e.modules) == 0 || e.paused(name) || slices.Contains(e.gen.Tree.Hollow, name) {
		return false
	}
	for _, m := range e.modules {
		if !m.settled() {
			return false
		}
	}
	return true
}

// stepLeavers goes on with the modules that leave.
func (e *Engine) stepLeavers() {
	for _, m := range slices.Clone(e.leavers) {
		if !m.leaving {
			if m.pass.next.After(e.now) || e.occupied(m) || !e.mayGo(m.name) {
				continue
			}
			m.verdict = verdict{State: status.ModuleUninstalling, Reason: goneReason, Uninstall: true}
			e.beginLeaving(m)
		}
		for stands := -1; stands != m.stands(); {
			stands = m.stands()
			e.save(m)
			e.advance(m)
			e.dispatch(m)
		}
		e.show(m)
		if len(m.pass.refs) == 0 && m.pass.phase == idle && !e.occupied(m) {
			e.hasLeft(m)
		}
	}
}

// stands is another number when a module that leaves is further on.
func (m *module) stands() int {
	n := int(m.pass.phase) + 100*len(m.pass.refs)
	if m.pass.bidden {
		n += 10
	}
	return n
}

// hasLeft ends the life of a module whose release is gone. What was kept for its hooks is
// still to go.
func (e *Engine) hasLeft(m *module) {
	kept := e.endLeaving(m)
	e.purges = append(e.purges, &purge{ref: ReleaseRef{Module: m.name}, kept: kept, orphan: m, gone: true, holds: Finalizers(kept)})
	e.do(Gone{Module: m.name}) // its last runs may have left something in the metrics
	e.nudgeFailed()
}

// endLeaving has a module leave no more, and returns what is kept for its hooks.
func (e *Engine) endLeaving(m *module) (kept map[string][]byte) {
	e.leavers = slices.DeleteFunc(e.leavers, func(other *module) bool { return other == m })
	if m.started {
		e.takeDown(m)
	}
	return e.keptOf(m)
}

// goners are what people are shown of modules that are not in the tree any more while
// their releases are there, each once.
func (e *Engine) goners() []status.Module {
	var out []status.Module
	add := func(name string, ref *ReleaseRef, since, next time.Time, state status.ModuleState, reason string) {
		if slices.ContainsFunc(out, func(m status.Module) bool { return m.Name == name }) {
			return
		}
		if e.paused(name) {
			state, reason = status.ModulePaused, goneReason+"; paused: its release stays as it is"
		}
		one := status.Module{Name: name, State: state, Reason: reason, Since: since, NextTry: future(next, e.now)}
		if one.Reason == goneReason && one.NextTry != nil {
			one.Reason, one.NextTry = goneReason+": uninstalled in a moment, unless it comes back", nil
		}
		if ref != nil {
			one.Release = &status.Release{Name: ref.Name, Namespace: ref.Namespace}
		}
		out = append(out, one)
	}
	for _, m := range e.leavers {
		state, reason := status.ModuleUninstalling, goneReason
		if m.leaving {
			state, reason = e.moduleState(m)
		}
		var ref *ReleaseRef
		if len(m.pass.refs) > 0 {
			ref = &m.pass.refs[0]
		}
		add(m.name, ref, m.since, m.pass.next, state, reason)
	}
	for _, p := range e.purges {
		switch {
		case p.gone:
		case p.err != "":
			add(p.ref.Module, &p.ref, p.since, p.next, status.ModuleFailed, "uninstall: "+p.err)
		default:
			add(p.ref.Module, &p.ref, p.since, p.next, status.ModuleUninstalling, goneReason)
		}
	}
	return out
}
