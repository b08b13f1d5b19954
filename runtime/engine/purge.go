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
	holds   []Finalizer // those that are still on objects
	gone    bool        // the release is, or there was none
	running bool
	attempt int
	next    time.Time
}

func (e *Engine) beginPurges(in Start) {
	released := map[string]bool{}
	removed := func(module string) bool {
		return e.modules[module] == nil && !slices.Contains(e.gen.Tree.Hollow, module)
	}
	for _, ref := range in.Installed {
		if e.modules[ref.Module] == nil && !removed(ref.Module) {
			e.do(Note{Level: builtins.LevelWarn, Module: ref.Module, Message: "its folder holds nothing of a module: its release stays as it is; remove the folder to uninstall it"})
		}
		if removed(ref.Module) {
			e.purges = append(e.purges, &purge{ref: ref, holds: Finalizers(in.Kept[ref.Module])})
			released[ref.Module] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(in.Kept)) {
		if removed(name) && name != globalName && !released[name] {
			e.purges = append(e.purges, &purge{ref: ReleaseRef{Module: name}, gone: true, holds: Finalizers(in.Kept[name])})
		}
	}
}

// stepPurges comes last: after every module has settled, and from a tree that has
// modules. A tree that cannot be read as a whole does not get this far.
func (e *Engine) stepPurges() {
	if len(e.purges) == 0 || e.opts.PauseAll || len(e.modules) == 0 {
		return
	}
	for _, m := range e.modules {
		if !m.settled() {
			return
		}
	}
	for _, p := range e.purges {
		if p.running || p.next.After(e.now) || e.paused(p.ref.Module) {
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
			e.do(Note{Level: builtins.LevelInfo, Module: p.ref.Module, Message: "no longer in the module tree: its release is uninstalled"})
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
		p.next = e.now.Add(delay)
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
		p.gone, p.attempt = true, 0
	}
}
