package engine

import (
	"slices"

	"github.com/starling-operator/starling/modules/status"
)

func (e *Engine) facts(m *module) facts {
	f := facts{
		Removed: m.removed, Hollow: m.hollow, Grace: m.stays.After(e.now), Leaving: m.leaving,
		Key: m.gen.Key, Broken: m.broken, Started: m.started, Installed: m.pass.Installed(), More: m.there(),
		Paused:     e.paused(m.name) && (m.removed || m.hasChart() || m.pass.Installed()),
		Switch:     e.resolveSwitch(m),
		HasEnabled: m.gen.Enabled != nil, Evaluated: m.eval.done, EvalError: m.eval.err, Decision: m.eval.decision,
		Stale:         m.eval.version != m.values.Version(),
		ConfigKnown:   e.config.Known(),
		GlobalPending: e.globalPending, GlobalFailing: e.globalFailing,
	}
	if e.config.State() == ConfigUnreadable && !e.config.Held() {
		f.ConfigUnread = e.config.Reason()
	}
	if m.removed {
		f.Busy = !f.Grace && (!e.atRest() || e.occupied(m))
		f.BrokenNew = e.brokenNew(m)
		return f
	}
	for _, name := range m.gen.Decl.Requires {
		r := e.module(name)
		if r == nil {
			continue // the graph has made m broken
		}
		switch {
		case r.verdict.State == status.ModuleOff:
			f.RequiresOff = name
		case r.verdict.Run && e.paused(name) && r.pass.Installed():
			// Its release is left as it is: there is nothing to wait for.
		case !r.pass.Ready() && f.RequiresUnmet == "":
			f.RequiresUnmet, f.RequiresStuck = name, r.settled()
		}
	}
	f.After = e.graph.WaitsFor(m.name, func(name string) bool { return e.modules[name].settled() })
	return f
}

// settled is false while the module is on its way and nothing is wrong.
func (m *module) settled() bool {
	if !m.verdict.Run {
		return m.verdict.Settled || m.crds.err != ""
	}
	if m.crds.err != "" || m.pass.Ready() || m.pass.Err() != "" || m.pass.Held() != "" {
		return true
	}
	for _, h := range m.hooks {
		if h.trouble() != "" && (!h.first.passed() || m.pass.WaitsFor(h.gen.ID)) {
			return true
		}
	}
	return !m.verdict.Release // it is paused
}

func (e *Engine) paused(name string) bool {
	return e.opts.PauseAll || slices.Contains(e.opts.Paused, name)
}

// globalState says which first run of a global hook modules wait for, and names the first hook that
// was tried and has never succeeded.
func (e *Engine) globalState() (pending, failing string) {
	if e.global.broken != "" {
		return "", "global: " + e.global.broken
	}
	first := func(h *hook) {
		if pending == "" {
			pending = "the first run of global hook " + h.gen.ID
		}
	}
	for _, h := range e.global.hooks {
		switch {
		case !h.holds():
		case h.trouble() == "":
			first(h)
		case failing == "":
			failing = h.gen.ID
		}
	}
	if !e.global.started && len(e.global.hooks) > 0 {
		first(e.global.hooks[0])
	}
	if pending == "" && e.global.stays.After(e.now) {
		pending = "global hooks that left the module tree a moment ago"
	}
	return pending, failing
}
