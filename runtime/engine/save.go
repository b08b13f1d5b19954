package engine

import (
	"fmt"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/engine/persist"
	"github.com/starling-operator/starling/runtime/generation"
)

// save writes what is kept of a module, when something of it has changed: with it go the
// layers and states of all runs that wait for that.
func (t *turn) save(m *module) {
	more := false
	for _, l := range m.queues {
		more = more || l.Gathers()
	}
	if !m.store.Due(t.now, more) {
		return
	}
	runs, changes, hooks := t.join(m)
	if len(runs) == 0 && m.store.Clean() {
		return // all of them were refused
	}
	t.ask(m, Save{Op: t.op(), Module: m.name, Runs: runs, Hooks: hooks, Data: m.store.Begin(changes...)})
}

// join takes the runs that wait to be kept, in their order, and returns those whose values may come into force. Each
// is checked against the layers as they are once the runs before it count.
func (t *turn) join(m *module) (runs []uint64, changes []persist.Change, hooks []*generation.Hook) {
	layers, messages := m.values.Propose(), m.messageSizes()
	for _, id := range m.store.Take() {
		r := t.run(id)
		if r.outdated() {
			t.drop(r)
			continue
		}
		s := r.subject
		before := layers.Layer(s.ID())
		layer := r.nextLayer(before)
		change, err := s.Keep(layer, r.nextMemory())
		if err == nil && !values.Equal(before, layer) {
			err = r.check(layers)
		}
		if err != nil {
			t.commitFailed(r, err)
			continue
		}
		layers.Set(s.ID(), layer)
		r.keepMessages(change, messages)
		runs, changes, hooks = append(runs, id), append(changes, change), append(hooks, r.hook.gen)
	}
	return runs, changes, hooks
}

// saved ends a write of what is kept of a module.
func (e *Engine) saved(m *module, a asked, in Saved) {
	save := a.action.(Save)
	runs, err := save.Runs, in.Err
	away := m.store.Away()
	failed := m.store.End(e.now, err, e.opts.Jitter)
	if away && err == nil {
		e.back()
	}
	for _, id := range runs {
		r := e.run(id)
		change := persist.Change{}
		for _, key := range r.subject.Keys() {
			change[key] = save.Data[key]
		}
		for _, said := range r.messages() {
			change[said.name] = save.Data[said.name]
		}
		switch {
		case r.outdated():
			m.store.Doubt(change)
			e.drop(r)
		case err != nil:
			m.store.Doubt(change)
			e.commitFailed(r, fmt.Errorf("values and state are not kept: %w", err))
		default:
			m.store.Count(change)
			e.runCommitted(r)
		}
	}
	if m.isGlobal() && err == nil {
		e.countConfig()
	}
	if failed == 1 && len(runs) == 0 { // else the hooks say so
		e.note(builtins.LevelWarn, m, "", "what is kept of it cannot be written, tried again: "+err.Error())
	}
}

// failedKey has the minute in which the API server has failed a run of the module, until one that had failed succeeds:
// so there is a write, also where hooks keep nothing, which is tried until the API server takes it.
const failedKey = "failed"

// back has all that waits because it failed try again: the API server was away for long, and is there again.
func (e *Engine) back() {
	for _, m := range e.everyone() {
		m.store.Back()
		e.retrySoon(m)
	}
	e.switched++
}
