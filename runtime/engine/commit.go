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
	"github.com/starling-operator/starling/runtime/engine/layers"
	"github.com/starling-operator/starling/runtime/engine/subjects"
	"github.com/starling-operator/starling/runtime/lane"
	"github.com/starling-operator/starling/runtime/object"
)

// runDone checks what a run asked for and has it committed.
func (e *Engine) runDone(in RunDone) {
	r := e.runs[in.Run]
	if r == nil {
		return
	}
	h := r.hook
	switch {
	case r.outdated(), in.Gone, in.Incomplete && r.asked():
		e.drop(in.Run)
		return
	case in.Incomplete: // its watch was replaced, or holds nothing for now
		delete(e.runs, in.Run)
		h.lane.Failed(r.work, e.now.Add(h.gen.Retry.Min))
		e.touch(h.module)
		return
	}
	h.took = in.Took
	h.runs++
	if in.Err != nil {
		e.runFailed(in.Run, in.Err)
		return
	}
	r.effects, r.response, r.seen = in.Effects, in.Response, in.Seen
	switch {
	case r.cleanup: // what the object had set and remembered goes with it
		r.effects.Values, r.effects.State, r.effects.Requeue = nil, nil, 0
	}
	r.effects.Writes = e.held(r)
	e.commit(in.Run)
}

// outdated says that what the run was about is not there any more: its module has
// stopped since, or its object is gone.
func (r *run) outdated() bool { return r.epoch != r.hook.module.epoch || r.gone() }

// gone says that there is no such hook, or no such object of it.
func (r *run) gone() bool {
	h := r.hook
	return h.module.byKey[h.gen.ID] != h || h.subjects.At(r.subject.Key) != r.subject
}

// commit has the objects written that a run asks for, unless its values would be refused.
// Then its layer and state are kept: see written.
func (e *Engine) commit(id uint64) {
	r := e.runs[id]
	s, m := r.subject, r.hook.module
	if len(r.effects.Writes) == 0 {
		e.written(id)
		return
	}
	if r.layer = r.nextLayer(id, m.layer(s)); !values.Equal(m.layer(s), r.layer) {
		err := r.check(m.values.Propose())
		if err == nil { // or it is too large
			_, err = s.Keep(r.layer, nil, nil)
		}
		if err != nil {
			e.commitFailed(id, err)
			return
		}
	}
	commit := Commit{Run: id, Module: m.name, Hook: r.hook.gen, Writes: r.effects.Writes, Cause: r.leads(), Seen: r.seen}
	e.applies(r.hook, commit.Writes)
	if r.ownsSets() {
		s.Leave(subjects.Sets)
	}
	e.wrote.Begin(commit.Writes, commit.Cause)
	r.writes = commit.Cause
	e.do(commit)
}

// check says whether the values that a run asks for may come into force. The message of a rule may
// hold what others have set as a secret since the run began.
func (r *run) check(p *layers.Proposal) error {
	h, id := r.hook, r.subject.ID()
	err := p.Check(id, h.gen.ID, h.gen.Digest, slices.Concat(h.keptOf(p.Layer(id)), r.effects.Values))
	if err == nil {
		return nil
	}
	if text := hidden(err.Error(), p.Secrets().Texts()); text != err.Error() {
		return errors.New(text)
	}
	return err
}

// nextLayer is the layer of the run's subject after it.
func (r *run) nextLayer(id uint64, before []effect.ValueOp) []effect.ValueOp {
	if r.cleanup {
		return before
	}
	return values.Located(r.hook.keptOf(before), r.effects.Values, &effect.Origin{Run: id, At: r.at})
}

// ownsSets says whether the run applies sets that belong to its object.
func (r *run) ownsSets() bool {
	return r.subject.Key != "" && slices.ContainsFunc(r.effects.Writes, func(w effect.Write) bool { return w.Kind == effect.WriteSet && w.Owner != nil })
}

// remembers says whether the run leaves another state than this one, or knows of other
// secrets in it.
func (r *run) remembers(state map[string]any, secrets [][]string) bool {
	next := &r.effects
	return next.State != nil && len(next.State)+len(state) > 0 &&
		!(reflect.DeepEqual(next.State, state) && slices.EqualFunc(next.StateSecrets, secrets, slices.Equal))
}

func (e *Engine) committed(in Committed) {
	r := e.runs[in.Run]
	if r != nil {
		e.wrote.End(r.effects.Writes, r.writes)
	}
	switch {
	case r == nil:
	case r.outdated():
		e.drop(in.Run)
	case in.Err != nil:
		e.commitFailed(in.Run, in.Err)
	default:
		e.written(in.Run)
	}
}

// written goes on once the objects are written: what the run sets and remembers is kept,
// when it differs.
func (e *Engine) written(id uint64) {
	r := e.runs[id]
	s, m := r.subject, r.hook.module
	r.layer = r.nextLayer(id, m.layer(s))
	r.state, r.secrets = s.State()
	if values.Equal(m.layer(s), r.layer) && !r.remembers(r.state, r.secrets) {
		e.runSucceeded(id)
		return
	}
	until := e.now
	if s.Key != "" && !r.asked() {
		until = e.now.Add(gatherFor)
	}
	m.store.Join(id, object.PlainSize(r.effects.State)+sizeOf(r.layer), until)
	// Its objects are written: those behind it need not wait for what is kept of it.
	if !m.store.Full() {
		r.hook.lane.Yield(r.work)
	}
	e.touch(m)
}

// gatherFor is how long a run about an object waits for others that are under way, so that
// what is kept of all of them goes with one write.
const gatherFor = 50 * time.Millisecond

// sizeOf is the size of a layer.
func sizeOf(layer []effect.ValueOp) int {
	n := 0
	for _, op := range layer {
		n += object.PlainSize(op.Value)
	}
	return n
}

// drop forgets a run whose subject is not there any more.
func (e *Engine) drop(id uint64) {
	r := e.runs[id]
	delete(e.runs, id)
	m := r.hook.module
	if h := m.byKey[r.hook.gen.ID]; h != nil && len(h.before) > 0 && !e.running(r.hook) {
		h.before = slices.DeleteFunc(h.before, func(other *hook) bool { return other == r.hook })
	}
	r.hook.lane.Done(r.work)
	if r.asked() {
		why := "its module has stopped"
		if !r.outdated() {
			why = "its snapshots are not complete"
		}
		e.do(Respond{ID: r.work.ID.Ask, Err: fmt.Errorf("hook %s: %s: %w", r.hook.gen.ID, why, ErrNotReady)})
	}
	if r.gone() && r.ownsSets() { // applied after those of its object were dropped
		e.do(DropSets{Module: m.name, Hook: r.hook.gen.ID, Key: r.subject.Key})
	}
	e.touch(m)
}

// runSucceeded makes the effects of a run count.
func (e *Engine) runSucceeded(id uint64) {
	r := e.runs[id]
	delete(e.runs, id)
	h, s, m := r.hook, r.subject, r.hook.module
	h.lane.Done(r.work)
	if !r.asked() {
		echo := h.echoes.Of(s.ID())
		h.lane.Delay(work(s), echo.Until())
		echo.End(len(r.effects.Writes) > 0, e.now)
		if h.subjects.Succeed(s) {
			e.note(builtins.LevelInfo, m, h.gen.ID, s.Said("runs again"))
		}
	}
	s.Remember(r.state, r.secrets)
	if !values.Equal(m.layer(s), r.layer) {
		e.setLayer(m, s, r.layer, r.leads())
	} else {
		m.values.Relocate(s.ID(), r.layer)
	}
	if len(r.effects.Metrics) > 0 {
		s.Leave(subjects.Metrics)
		e.do(Publish{Module: m.name, Hook: h.gen.ID, Key: s.Key, Metrics: r.effects.Metrics})
	}
	e.touch(m)
	if len(r.effects.Messages) > 0 {
		e.do(Send{Module: m.name, Hook: h.gen.ID, Messages: r.effects.Messages})
	}
	if r.asked() {
		if r.effects.Requeue > 0 {
			e.requeueAt(s, e.now.Add(r.effects.Requeue))
		}
		e.responded(r, nil)
		return
	}
	for _, t := range h.schedules.Ran(r.work.Events) {
		m.keepTick(t)
	}
	var next time.Time
	if r.effects.Requeue > 0 && !m.leaving {
		next = e.now.Add(r.effects.Requeue)
	}
	e.requeueAt(s, next)
	if r.cleanup {
		e.cleaned(h, s)
	}
	m.pass.Ran(h.gen.ID, r.work.Events, true)
}

// cleaned ends the life of an object for its hook, unless it has come back meanwhile.
func (e *Engine) cleaned(h *hook, s *subjects.Subject) {
	if s.Leaving() {
		e.dropObject(h, s)
		return
	}
	e.clearSubject(h.module, s)
}

// commitFailed ends a run that has failed after its hook had succeeded.
func (e *Engine) commitFailed(id uint64, err error) {
	err = e.runs[id].seen.Err(err)
	h := e.runs[id].hook
	e.do(Uncommitted{Run: id, Module: h.module.name, Hook: h.gen.ID, Err: err})
	e.runFailed(id, err)
}

// runFailed keeps the events for the next try and leaves everything else as it was.
func (e *Engine) runFailed(id uint64, err error) {
	r := e.runs[id]
	delete(e.runs, id)
	h, s, m := r.hook, r.subject, r.hook.module
	if r.asked() {
		h.lane.Done(r.work)
		e.responded(r, err)
		e.touch(m)
		return
	}
	allowed := h.gen.AllowFailure && !r.cleanup
	h.subjects.Fail(s, err.Error(), allowed)
	h.failures++
	level, then := builtins.LevelError, ""
	var failed *builtins.FailError
	errors.As(err, &failed)
	switch {
	case allowed:
		h.lane.AwaitChange(r.work)
		level, then = builtins.LevelWarn, "allowed; not tried again before something changes"
	case failed != nil && failed.Permanent:
		h.lane.AwaitChange(r.work)
		then = "not tried again before something changes"
	default:
		backoff := lane.Backoff{Min: h.gen.Retry.Min, Max: h.gen.Retry.Max, Factor: h.gen.Retry.Factor}
		delay := backoff.Delay(r.work.Attempt, e.opts.Jitter())
		if failed != nil && failed.RetryAfter > 0 {
			delay = failed.RetryAfter
		}
		h.lane.Failed(r.work, e.now.Add(delay))
		then = "next try in " + roundUp(delay).String()
	}
	e.do(Note{Level: level, Module: m.name, Hook: h.gen.ID, Err: err, Message: s.Said(err.Error()) + " (" + then + ")"})
	m.pass.Ran(h.gen.ID, r.work.Events, allowed)
	e.touch(m)
}

func roundUp(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(100 * time.Millisecond)
}
