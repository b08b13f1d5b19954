package engine

import (
	"fmt"
	"slices"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/engine/persist"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/lane"
)

// save writes what is kept of a module, when something of it has changed: with it go the
// layers and states of all runs that wait for that.
func (e *Engine) save(m *module) {
	more := slices.ContainsFunc(m.lanes, (*lane.Lane[builtins.Event]).Gathers)
	if !m.store.Due(e.now, more) {
		return
	}
	runs, changes, hooks := e.join(m)
	if len(runs) == 0 && m.store.Clean() {
		return // all of them were refused
	}
	e.ask(m, Save{Op: e.op(), Module: m.name, Runs: runs, Hooks: hooks, Data: m.store.Begin(changes...)})
}

// join takes the runs that wait to be kept, in their order, and returns those whose values
// may come into force. Each is checked against the layers as they are once the runs before
// it count.
func (e *Engine) join(m *module) (runs []uint64, changes []persist.Change, hooks []*generation.Hook) {
	layers := m.values.Propose()
	for _, id := range m.store.Take() {
		r := e.runs[id]
		s := r.subject
		if r.outdated() {
			e.drop(id)
			continue
		}
		r.layer = r.nextLayer(id, layers.Layer(s.ID()))
		state, secrets := s.State()
		if r.remembers(state, secrets) {
			state, secrets = r.effects.State, r.effects.StateSecrets
		}
		change, err := s.Keep(r.layer, state, secrets)
		if err == nil && !values.Equal(layers.Layer(s.ID()), r.layer) {
			err = r.check(layers)
		}
		if err != nil {
			e.commitFailed(id, err)
			continue
		}
		layers.Set(s.ID(), r.layer)
		r.state, r.secrets, r.change = state, secrets, change
		runs, changes, hooks = append(runs, id), append(changes, change), append(hooks, r.hook.gen)
	}
	return runs, changes, hooks
}

// saved ends a write of what is kept of a module.
func (e *Engine) saved(a asked, in Saved) {
	m, runs, err := a.module, a.action.(Save).Runs, in.Err
	failed := m.store.End(e.now, err, e.opts.Jitter)
	for _, id := range runs {
		r := e.runs[id]
		switch {
		case err != nil, r.outdated():
			m.store.Doubt(r.change)
		default:
			m.store.Count(r.change)
		}
		switch {
		case r.outdated():
			e.drop(id)
		case err != nil:
			e.commitFailed(id, fmt.Errorf("values and state are not kept: %w", err))
		default:
			e.runSucceeded(id)
		}
	}
	if failed == 1 && len(runs) == 0 { // else the hooks say so
		e.note(builtins.LevelWarn, m, "", "what is kept of it cannot be written, tried again: "+err.Error())
	}
}
