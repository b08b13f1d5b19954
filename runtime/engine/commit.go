package engine

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/lane"
)

// runDone checks what a run asked for and has it committed.
func (e *Engine) runDone(in RunDone) {
	r := e.runs[in.Run]
	if r == nil {
		return
	}
	h := r.hook
	h.took = in.Took
	h.runs++
	if r.epoch != h.module.epoch {
		e.drop(in.Run)
		return
	}
	if in.Err != nil {
		e.runFailed(in.Run, in.Err)
		return
	}
	r.effects, r.response = in.Effects, in.Response
	if r.request != nil && !r.receives {
		delete(e.runs, in.Run)
		e.responded(r, nil)
		return
	}
	e.commit(in.Run)
}

// commit checks the values that a run asks for, and has its effects written. Runs
// that change what is kept for their module go one at a time: each is checked against
// the layers as they are then, and none writes over what another has kept.
func (e *Engine) commit(id uint64) {
	r := e.runs[id]
	h, m := r.hook, r.hook.module
	if r.epoch != m.epoch {
		e.drop(id)
		return
	}
	asked := h.withKept(r.effects.Values)
	layer := values.Canonical(asked)
	commit := Commit{Run: id, Module: m.name, Hook: h.gen, Writes: r.effects.Writes}
	if !values.Equal(h.layer, layer) || r.remembers() {
		if m.keeping {
			m.toKeep = append(m.toKeep, id)
			return
		}
		if err := e.check(h, asked); err != nil {
			e.runFailed(id, err)
			return
		}
		state := h.state
		if r.remembers() {
			state = r.effects.State
		}
		keep, err := e.kept(m, h, layer, state)
		if err != nil {
			e.runFailed(id, err)
			return
		}
		commit.Keep, r.keeps, m.keeping = keep, true, true
	}
	r.effects.Values = layer
	if len(commit.Writes) == 0 && commit.Keep == nil {
		e.runSucceeded(id)
		return
	}
	e.do(commit)
}

// remembers says whether the run leaves another state than it found.
func (r *run) remembers() bool {
	return r.effects.State != nil && !reflect.DeepEqual(r.effects.State, r.hook.state) &&
		len(r.effects.State)+len(r.hook.state) > 0
}

// keptDone lets the next one keep something.
func (e *Engine) keptDone(m *module) {
	m.keeping = false
	for len(m.toKeep) > 0 && !m.keeping {
		id := m.toKeep[0]
		m.toKeep = m.toKeep[1:]
		e.commit(id)
	}
	e.touch(m)
}

func (e *Engine) committed(in Committed) {
	r := e.runs[in.Run]
	if r != nil && r.keeps {
		defer e.keptDone(r.hook.module)
	}
	switch {
	case r == nil:
	case r.epoch != r.hook.module.epoch:
		e.drop(in.Run)
	case in.Err != nil:
		// What it kept may be in the Secret all the same.
		r.hook.module.stale = r.hook.module.stale || r.keeps
		e.runFailed(in.Run, in.Err)
	default:
		e.runSucceeded(in.Run)
	}
}

// withKept returns the layer that a run leaves: what it has set, after what earlier
// runs have set with values="keep".
func (h *hook) withKept(ops []effect.ValueOp) []effect.ValueOp {
	if !h.gen.KeepValues {
		return ops
	}
	return slices.Concat(h.layer, ops)
}

// drop forgets a run that belongs to an earlier life of its module.
func (e *Engine) drop(id uint64) {
	r := e.runs[id]
	delete(e.runs, id)
	if r.request != nil {
		e.do(Respond{ID: r.request.ID, Err: fmt.Errorf("hook %s: its module has stopped: %w", r.hook.gen.ID, ErrNotReady)})
		if !r.receives {
			return
		}
		e.receiveNext(r.hook)
	} else {
		r.hook.lane.Done(r.work)
	}
	// What it kept may be in the Secret, and must not come back.
	r.hook.module.stale = true
	e.touch(r.hook.module)
}

// runSucceeded makes the effects of a run count.
func (e *Engine) runSucceeded(id uint64) {
	r := e.runs[id]
	delete(e.runs, id)
	h, m := r.hook, r.hook.module
	if r.request == nil {
		h.lane.Done(r.work)
		if h.lastError != "" {
			e.note(builtins.LevelInfo, m, h.gen.ID, "runs again")
		}
		h.tried, h.succeeded, h.lastError = true, true, ""
	}
	if r.remembers() {
		h.state = r.effects.State
	}
	if !values.Equal(h.layer, r.effects.Values) {
		before := m.version
		e.setLayer(m, h, r.effects.Values)
		if m.pass.runs(r.work.Events) {
			m.pass.own += m.version - before
		}
	}
	if len(r.effects.Metrics) > 0 {
		e.do(Publish{Module: m.name, Hook: h.gen.ID, Metrics: r.effects.Metrics})
	}
	if len(r.effects.Messages) > 0 {
		e.do(Send{Module: m.name, Hook: h.gen.ID, Messages: r.effects.Messages})
	}
	if r.request != nil {
		if r.effects.Requeue > 0 {
			h.requeueAt = e.now.Add(r.effects.Requeue)
		}
		e.responded(r, nil)
		return
	}
	h.ran(r.work.Events)
	h.requeueAt = time.Time{}
	if r.effects.Requeue > 0 {
		h.requeueAt = e.now.Add(r.effects.Requeue)
	}
	e.hookDone(m, h, r.work.Events, true)
	e.touch(m)
}

// runFailed keeps the events for the next try and leaves everything else as it was.
func (e *Engine) runFailed(id uint64, err error) {
	r := e.runs[id]
	delete(e.runs, id)
	h, m := r.hook, r.hook.module
	if r.request != nil {
		e.responded(r, err)
		return
	}
	h.tried, h.lastError = true, err.Error()
	h.failures++
	if h.gen.AllowFailure {
		h.succeeded = true // as far as others wait for it
		h.lane.Parked(r.work)
		e.do(Note{Level: builtins.LevelWarn, Module: m.name, Hook: h.gen.ID, Err: err,
			Message: err.Error() + " (allowed; not tried again before something changes)"})
		e.hookDone(m, h, r.work.Events, true)
		e.touch(m)
		return
	}
	backoff := lane.Backoff{Min: h.gen.Retry.Min, Max: h.gen.Retry.Max, Factor: h.gen.Retry.Factor}
	delay := backoff.Delay(r.work.Attempt, e.opts.Jitter())
	var failed *builtins.FailError
	if errors.As(err, &failed) && failed.RetryAfter > 0 {
		delay = failed.RetryAfter
	}
	if failed != nil && failed.Permanent {
		h.lane.Parked(r.work)
		e.do(Note{Level: builtins.LevelError, Module: m.name, Hook: h.gen.ID, Err: err,
			Message: err.Error() + " (not tried again before something changes)"})
	} else {
		h.lane.Failed(r.work, e.now.Add(delay))
		e.do(Note{Level: builtins.LevelError, Module: m.name, Hook: h.gen.ID, Err: err,
			Message: err.Error() + " (next try in " + roundUp(delay).String() + ")"})
	}
	e.hookDone(m, h, r.work.Events, false)
	e.touch(m)
}

func roundUp(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(100 * time.Millisecond)
}
