package engine

import (
	"slices"
	"time"

	"github.com/starling-operator/starling/builtins"
)

// purge takes away a release of this instance whose module is no longer in the
// tree.
type purge struct {
	ref     ReleaseRef
	running bool
	attempt int
	next    time.Time
}

func (e *Engine) beginPurges(installed []ReleaseRef) {
	for _, ref := range installed {
		if e.modules[ref.Module] == nil {
			e.purges = append(e.purges, &purge{ref: ref})
		}
	}
}

// stepPurges comes last: after every module has settled, from a generation that has
// modules and was read completely.
func (e *Engine) stepPurges() {
	if len(e.purges) == 0 || e.opts.PauseAll || len(e.modules) == 0 || !e.gen.Complete {
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
		op := e.ask(func(in Input) { e.purged(p, in.(Uninstalled).Err) })
		e.do(Note{Level: builtins.LevelInfo, Module: p.ref.Module, Message: "no longer in the module tree: its release is uninstalled"})
		e.do(Uninstall{Op: op, Ref: p.ref})
	}
}

func (e *Engine) purged(p *purge, err error) {
	p.running = false
	if err != nil {
		p.attempt++
		delay := releaseRetry.Delay(p.attempt, e.opts.Jitter())
		p.next = e.now.Add(delay)
		e.do(Note{Level: builtins.LevelError, Module: p.ref.Module, Message: "uninstall: " + err.Error() + " (next try in " + roundUp(delay).String() + ")"})
		return
	}
	e.purges = slices.DeleteFunc(e.purges, func(other *purge) bool { return other == p })
	op := e.ask(func(Input) {})
	e.do(Save{Op: op, Module: p.ref.Module})
}
