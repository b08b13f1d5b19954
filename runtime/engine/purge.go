package engine

import (
	"maps"
	"slices"
	"time"

	"github.com/starling-operator/starling/builtins"
)

// purge takes away what is left of a module that is no longer in the tree: a
// release of this instance, then what was kept for its hooks.
type purge struct {
	ref     ReleaseRef
	kept    map[string][]byte // what its hooks left
	orphan  *module           // work of which may still be under way, or nil
	holds   []Finalizer       // those that are still on objects
	gone    bool              // the release is, or there was none
	running bool
	attempt int
	next    time.Time
	since   time.Time
	err     string
}

// remain is what there is of a module that is not in the tree. What becomes of it is up
// to the tree.
type remain struct {
	module string
	refs   []ReleaseRef
	kept   map[string][]byte
	orphan *module
	warned bool
}

// findRemains notes what earlier processes have left of modules that are not in the tree.
func (e *Engine) findRemains(in Start) {
	byName := map[string]*remain{}
	note := func(module string) *remain {
		r := byName[module]
		if r == nil {
			r = &remain{module: module, kept: in.Kept[module]}
			byName[module] = r
			e.remains = append(e.remains, r)
		}
		return r
	}
	for _, ref := range in.Installed {
		if e.modules[ref.Module] == nil {
			r := note(ref.Module)
			r.refs = append(r.refs, ref)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(in.Kept)) {
		if e.modules[name] == nil && name != globalName {
			note(name)
		}
	}
	e.sortRemains()
}

// sortRemains has taken away what is left of modules that are really gone. A folder that
// holds nothing of a module may be one that is being written.
func (e *Engine) sortRemains() {
	e.remains = slices.DeleteFunc(e.remains, func(r *remain) bool {
		if slices.Contains(e.gen.Tree.Hollow, r.module) {
			if len(r.refs) > 0 && !r.warned {
				r.warned = true
				e.do(Note{Level: builtins.LevelWarn, Module: r.module, Message: "its folder holds nothing of a module: its release stays as it is; remove the folder to uninstall it"})
			}
			return false
		}
		next := e.now.Add(e.opts.Grace)
		if m := r.orphan; m != nil && m.takesLeave() {
			m.since, m.pass.next = e.now, next
			e.leavers = append(e.leavers, m)
			return true
		}
		for _, ref := range r.refs {
			e.purges = append(e.purges, &purge{ref: ref, kept: r.kept, orphan: r.orphan, holds: Finalizers(r.kept), since: e.now, next: next})
		}
		if len(r.refs) == 0 {
			e.purges = append(e.purges, &purge{ref: ReleaseRef{Module: r.module}, kept: r.kept, orphan: r.orphan, gone: true, holds: Finalizers(r.kept), next: next})
		}
		return true
	})
}

// reclaim gives a module that comes back what is left of it. Nothing of that is being
// taken away in this moment.
func (e *Engine) reclaim(name string) (refs []ReleaseRef, kept map[string][]byte, back bool) {
	e.remains = slices.DeleteFunc(e.remains, func(r *remain) bool {
		if r.module != name {
			return false
		}
		refs, kept, back = append(refs, r.refs...), r.kept, true
		return true
	})
	for _, m := range slices.Clone(e.leavers) {
		if m.name == name {
			refs, kept, back = append(refs, m.pass.refs...), e.endLeaving(m), true
		}
	}
	e.purges = slices.DeleteFunc(e.purges, func(p *purge) bool {
		if p.ref.Module != name {
			return false
		}
		if kept, back = p.kept, true; !p.gone {
			refs = append(refs, p.ref)
		}
		return true
	})
	return refs, kept, back
}

// remove ends a module that is not in the tree any more.
func (e *Engine) remove(m *module) {
	if m.started {
		e.takeDown(m)
	}
	m.epoch++ // runs under way count for nothing
	for _, id := range m.toSave {
		e.drop(id)
	}
	m.toSave, m.removed = nil, true
	delete(e.dirty, m)
	delete(e.modules, m.name)
	if len(m.serves) > 0 {
		e.do(Serve{Module: m.gen})
	}
	e.do(Gone{Module: m.name})
	e.remains = append(e.remains, &remain{module: m.name, refs: m.pass.refs, kept: e.keptOf(m), orphan: m})
}

// keptOf is what is kept for a module that is not in the tree any more.
func (e *Engine) keptOf(m *module) map[string][]byte {
	kept, err := e.kept(m)
	if err != nil {
		e.do(Note{Level: builtins.LevelWarn, Module: m.name, Message: err.Error()})
	}
	return kept
}

// occupied says that something of a module that was removed is still under way.
func (e *Engine) occupied(m *module) bool {
	if m.pass.phase == inHelm || m.pass.phase == uninstalling || m.keeping || m.crds.running {
		return true
	}
	for _, f := range m.finalizers {
		if f.running {
			return true
		}
	}
	for _, r := range e.runs {
		if r.hook.module == m {
			return true
		}
	}
	return false
}

// stepPurges comes last: after every module has settled, and from a tree that has
// modules. A tree that cannot be read as a whole does not get this far.
func (e *Engine) stepPurges() {
	for _, p := range e.purges {
		if p.running || p.next.After(e.now) || p.orphan != nil && e.occupied(p.orphan) || !e.mayGo(p.ref.Module) {
			continue
		}
		p.running = true
		if p.gone && len(p.holds) > 0 {
			f := p.holds[0]
			op := e.ask(func(in Input) { e.purged(p, in.(Unheld).Err) })
			e.do(Unhold{Op: op, Module: p.ref.Module, Hook: f.Hook, APIVersion: f.APIVersion, Kind: f.Kind, Finalizer: f.Name})
			continue
		}
		if p.gone {
			op := e.ask(func(in Input) { e.purged(p, in.(Saved).Err) })
			e.do(Save{Op: op, Module: p.ref.Module})
			continue
		}
		if p.attempt == 0 {
			e.do(Note{Level: builtins.LevelInfo, Module: p.ref.Module, Message: goneReason + ": its release is uninstalled"})
		}
		op := e.ask(func(in Input) { e.purged(p, in.(Uninstalled).Err) })
		e.do(Uninstall{Op: op, Ref: p.ref})
	}
}

func (e *Engine) purged(p *purge, err error) {
	p.running = false
	switch {
	case err != nil:
		p.attempt++
		delay := releaseRetry.Delay(p.attempt, e.opts.Jitter())
		p.next, p.err = e.now.Add(delay), err.Error()
		what := "uninstall: "
		if p.gone {
			what = "what was kept for its hooks: "
		}
		e.do(Note{Level: builtins.LevelError, Module: p.ref.Module, Message: what + err.Error() + " (next try in " + roundUp(delay).String() + ")"})
	case p.gone && len(p.holds) > 0:
		p.holds, p.attempt = p.holds[1:], 0
	case p.gone:
		e.purges = slices.DeleteFunc(e.purges, func(other *purge) bool { return other == p })
	default:
		p.gone, p.attempt, p.err = true, 0, ""
		e.nudgeFailed()
	}
}

// nudgeFailed has releases tried again that have failed: one with another name may have
// waited for the objects of one that is gone.
func (e *Engine) nudgeFailed() {
	for _, m := range e.modules {
		if m.pass.err != "" {
			e.nudge(m)
		}
	}
}
