package engine

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine/layers"
	"github.com/starling-operator/starling/runtime/engine/persist"
	"github.com/starling-operator/starling/runtime/engine/subjects"
	"github.com/starling-operator/starling/runtime/lane"
	"github.com/starling-operator/starling/runtime/object"
)

// runDone checks what a run asked for and has it committed.
func (t *turn) runDone(in RunDone) {
	r := t.run(in.Run)
	if r == nil {
		return
	}
	h := r.hook
	switch {
	case r.outdated(), in.Gone, in.Incomplete && r.request != 0:
		t.drop(r)
		return
	case in.Incomplete: // its watch was replaced, or holds nothing for now
		t.take(r.call().Run)
		h.lane.Failed(r.work(), t.now.Add(h.gen.Retry.Min))
		return
	}
	h.ran.Duration = status.Duration(in.Took)
	h.ran.Runs++
	if h.gen.Controller != nil {
		r.subject.Outcome().Decided(in.Waits, in.Actions, in.Err != nil)
		t.looked(r, &in)
	}
	if in.Err != nil && !h.keeps(&in) {
		r.done = in
		t.runFailed(r, in.Err)
		return
	}
	if r.call().Cleanup { // what the object had set and remembered goes with it
		in.Effects.Values, in.Effects.Memory = nil, effect.Memory{}
		if in.Waits == "" {
			in.Effects.Requeue = 0
		}
	}
	r.done = in
	r.done.Effects.Writes = t.held(r)
	t.commit(r)
}

// keeps says whether a run that has failed has its effects committed all the same: a controller does what it
// can, and tells of the error.
func (h *hook) keeps(in *RunDone) bool {
	if h.gen.Controller != nil {
		return len(in.Effects.Writes) > 0
	}
	failed, is := errors.AsType[*builtins.FailError](in.Err)
	return is && failed.Keep
}

// commit has the objects written that a run asks for, unless its values would be refused.
// Then its layer and state are kept: see written.
func (t *turn) commit(r *asked) {
	s, m := r.subject, r.hook.module
	if len(r.done.Effects.Writes) == 0 {
		t.written(r)
		return
	}
	if layer := r.nextLayer(m.layer(s)); !values.Equal(m.layer(s), layer) {
		err := r.check(t.proposed(r))
		if err == nil { // or it is too large
			_, err = s.Keep(layer, effect.Memory{})
		}
		if err != nil {
			t.commitFailed(r, err)
			return
		}
	}
	if err := t.configured(r); err != nil {
		t.commitFailed(r, err)
		return
	}
	commit := Commit{Run: r.done.Run, Module: m.name, Hook: r.hook.gen, Writes: r.done.Effects.Writes, Cause: r.cause, Seen: r.done.Seen}
	if slices.ContainsFunc(commit.Writes, func(w effect.Write) bool { return w.Kind == effect.WriteSet && !w.Set.Keep }) {
		m.sets.Applies(effect.Manager(r.hook.gen.ID), t.ops)
	}
	if r.ownsSets() {
		s.Leave(subjects.Sets)
	}
	t.wrote.Begin(commit.Writes, commit.Cause)
	t.do(commit)
}

// proposed are the values of a module with those of its other runs whose objects are being written, or are: what is
// refused beside them is refused before it writes anything, and writes nothing twice.
func (t *turn) proposed(r *asked) *layers.Proposal {
	m := r.hook.module
	p := m.values.Propose()
	for _, id := range slices.Sorted(maps.Keys(m.asked)) {
		if other := m.asked[id]; other.hook != nil && other != r && other.done.Run != 0 && !other.outdated() {
			p.Set(other.subject.ID(), other.nextLayer(m.layer(other.subject)))
		}
	}
	return p
}

// check says whether the values that a run asks for may come into force. The message of a rule may
// hold what others have set as a secret since the run began.
func (r *asked) check(p *layers.Proposal) error {
	h, id := r.hook, r.subject.ID()
	err := p.Check(id, h.gen.ID, h.gen.Digest, slices.Concat(h.keptOf(p.Layer(id)), r.done.Effects.Values))
	if err == nil {
		return nil
	}
	if text := hidden(err.Error(), p.Secrets().Texts()); text != err.Error() {
		return errors.New(text)
	}
	return err
}

// nextLayer is the layer of the run's subject after it.
func (r *asked) nextLayer(before []effect.ValueOp) []effect.ValueOp {
	call := r.call()
	if call.Cleanup {
		return before
	}
	return values.Located(r.hook.keptOf(before), r.done.Effects.Values, &effect.Origin{Run: call.Run, At: call.Now})
}

// nextMemory is what the subject of the run remembers after it.
func (r *asked) nextMemory() effect.Memory {
	before, next := r.subject.Memory(), r.done.Effects.Memory
	if next.State == nil || next.Equal(before) {
		return before
	}
	return next
}

// ownsSets says whether the run applies sets that belong to its object.
func (r *asked) ownsSets() bool {
	return r.subject.Key != "" && slices.ContainsFunc(r.done.Effects.Writes, func(w effect.Write) bool { return w.Kind == effect.WriteSet && w.Owner != nil })
}

func (t *turn) committed(in Committed) {
	r, apart := t.run(in.Run), false
	if r != nil {
		t.wrote.End(r.done.Effects.Writes, r.cause)
		apart = t.childrenWritten(r, in.Children)
	}
	switch {
	case r == nil:
	case r.outdated():
		t.drop(r)
	case in.Err != nil && apart && r.done.Err == nil:
		t.childrenFailed(r, in.Err)
	case in.Err != nil:
		t.commitFailed(r, in.Err)
	default:
		t.written(r)
	}
}

// written goes on once the objects are written: what the run sets, remembers and says is kept, where it differs.
func (t *turn) written(r *asked) {
	s, m := r.subject, r.hook.module
	layer := r.nextLayer(m.layer(s))
	if values.Equal(m.layer(s), layer) && r.nextMemory().Equal(s.Memory()) && len(r.done.Effects.Messages) == 0 {
		t.runCommitted(r)
		return
	}
	until := t.now
	if s.Key != "" && r.request == 0 {
		until = t.now.Add(gatherFor)
	}
	m.store.Join(r.done.Run, r.size(layer), until)
	// Its objects are written: those behind it need not wait for what is kept of it.
	if !m.store.Full() {
		r.hook.lane.Yield(r.work())
	}
}

// gatherFor is how long a run about an object waits for others that are under way, so that
// what is kept of all of them goes with one write.
const gatherFor = 50 * time.Millisecond

// size is about how much is kept of a run that leaves a layer, in bytes.
func (r *asked) size(layer []effect.ValueOp) int {
	n := object.PlainSize(r.done.Effects.State)
	for _, op := range layer {
		n += object.PlainSize(op.Value)
	}
	for i := range r.done.Effects.Messages {
		n += r.done.Effects.Messages[i].Size()
	}
	return n
}

// drop forgets a run whose subject is not there any more.
func (t *turn) drop(r *asked) {
	t.end(r)
	h, m := r.hook, r.hook.module
	if next := m.byKey[h.gen.ID]; next != nil && len(next.before) > 0 && !h.running() {
		next.before = slices.DeleteFunc(next.before, func(other *hook) bool { return other == h })
	}
	if r.request != 0 {
		why := "its module has stopped"
		if !r.outdated() {
			why = "its snapshots are not complete"
		}
		t.do(Respond{ID: r.request, Err: fmt.Errorf("hook %s: %s: %w", h.gen.ID, why, ErrNotReady)})
	}
	if r.gone() && r.ownsSets() { // applied after those of its object were dropped
		t.do(DropSets{Module: m.name, Hook: h.gen.ID, Key: r.subject.Key})
	}
}

// end takes out a run that has its end, and gives its work back.
func (t *turn) end(r *asked) {
	t.take(r.call().Run)
	r.hook.lane.Done(r.work())
}

// runCommitted ends a run whose effects are committed.
func (t *turn) runCommitted(r *asked) {
	if r.done.Err == nil {
		t.runSucceeded(r, r.subject.Outcome().Failure())
		return
	}
	t.count(r)
	t.runFailed(r, r.done.Err)
}

// runSucceeded makes the effects of a run count. Failing says which children cannot be written, or "".
func (t *turn) runSucceeded(r *asked, failing string) {
	t.end(r)
	h, s, m := r.hook, r.subject, r.hook.module
	effects, events := &r.done.Effects, r.call().Events
	if r.request == 0 {
		echo := h.echoes.Of(s.ID())
		h.lane.Delay(work(s), echo.Until())
		echo.End(len(effects.Writes) > 0, t.now)
		if failing != "" {
			h.subjects.Fail(s, failing, false)
		} else if h.subjects.Succeed(s) {
			m.store.Put(failedKey, nil)
			t.note(builtins.LevelInfo, m, h.gen.ID, s.Said("runs again"))
		}
	}
	t.count(r)
	if r.request != 0 {
		if effects.Requeue > 0 {
			t.requeueAt(s, t.now.Add(effects.Requeue))
		}
		t.responded(r, nil)
		return
	}
	for _, timer := range h.schedules.Ran(events) {
		m.keepTick(timer)
	}
	t.requeueAt(s, t.nextLook(r))
	if r.call().Cleanup && r.done.Waits == "" {
		t.cleaned(h, s)
	}
	m.pass.Ran(h.gen.ID, events, failing == "")
}

// nextLook is when the subject of a run has the next one, though nothing changes; zero: it has none.
func (g *ground) nextLook(r *asked) time.Time {
	next, after := r.done.Due, r.done.Effects.Requeue
	if again := g.now.Add(after); after > 0 && (next.IsZero() || again.Before(next)) {
		next = again
	}
	if again := r.subject.Outcome().Next(r.call().Past.Failures); !again.IsZero() && (next.IsZero() || again.Before(next)) {
		next = again
	}
	if r.hook.module.life == leaving {
		next = time.Time{}
	}
	return next
}

// count makes what a run sets, remembers, publishes and sends count.
func (t *turn) count(r *asked) {
	h, s, m, effects := r.hook, r.subject, r.hook.module, &r.done.Effects
	s.Remember(r.nextMemory())
	if layer := r.nextLayer(m.layer(s)); !values.Equal(m.layer(s), layer) {
		t.setLayer(m, s, layer, r.cause)
	} else {
		m.values.Relocate(s.ID(), layer)
	}
	if len(effects.Metrics) > 0 {
		s.Leave(subjects.Metrics)
		t.do(Publish{Module: m.name, Hook: h.gen.ID, Key: s.Key, Metrics: effects.Metrics})
	}
	t.send(r)
}

// cleaned ends the life of an object for its hook, unless it has come back meanwhile. One that was made anew
// under its name begins its own.
func (t *turn) cleaned(h *hook, s *subjects.Subject) {
	if s.Leaving() {
		next := s.Next()
		t.dropObject(h, s)
		if w := h.eachWatch(); next != nil {
			next.Binding = w.Binding
			t.eachChanged(h, w, []builtins.Event{*next})
		}
		return
	}
	t.clearSubject(h.module, s)
}

// commitFailed ends a run whose effects could not be committed.
func (t *turn) commitFailed(r *asked, err error) {
	err = r.done.Seen.Err(err)
	if r.done.Err == nil {
		lost := r.request == 0 && lane.Lost(err, r.call().Attempt)
		t.do(Uncommitted{Run: r.done.Run, Module: r.hook.module.name, Hook: r.hook.gen.ID, Allowed: r.allowed(), Lost: lost, Err: err})
	} else { // known to have failed; it is tried again, though it may say that this is of no use
		err = fmt.Errorf("%v; %w", r.done.Err, err)
	}
	t.runFailed(r, err)
}

// allowed says that the run may fail.
func (r *asked) allowed() bool { return r.hook.gen.AllowFailure && !r.call().Cleanup }

// runFailed keeps the events for the next try and leaves everything else as it was.
func (t *turn) runFailed(r *asked, err error) {
	h, s, m := r.hook, r.subject, r.hook.module
	if r.request != 0 {
		t.end(r)
		t.responded(r, err)
		return
	}
	work := r.work()
	if work.Attempt >= persist.AwayAfter && lane.AwaitedBy(err) == lane.AwaitsServer {
		m.store.Put(failedKey, t.now.Truncate(time.Minute).AppendFormat(nil, time.RFC3339))
	}
	t.take(r.call().Run)
	allowed, again, lost := r.allowed(), s.Why() == err.Error(), r.done.Err == nil && lane.Lost(err, work.Attempt)
	if !lost {
		h.subjects.Fail(s, err.Error(), allowed)
		h.ran.Failures++
	}
	level, then := builtins.LevelError, ""
	failed, _ := errors.AsType[*builtins.FailError](err)
	if allowed && !lost {
		level, then = builtins.LevelWarn, "allowed; "
	}
	polls := slices.ContainsFunc(work.Events, func(ev builtins.Event) bool { return ev.Type == "requeue" }) // no other event may ever come
	switch {
	case failed != nil && failed.Permanent, allowed && !lost && !polls:
		h.lane.AwaitChange(work)
		then += "not tried again before something changes"
		if h.gen.Controller != nil && again { // what has changed, such as the status of this failure, was of no help
			level = builtins.LevelDebug
		}
	default:
		delay := t.delay(h, err, work.Attempt)
		if failed != nil && failed.RetryAfter > 0 {
			delay = failed.RetryAfter
		}
		if lost || again && h.gen.Controller != nil && !h.gen.Decides() { // it may be so for long
			level = builtins.LevelDebug
		}
		h.lane.Failed(work, t.now.Add(delay))
		then += "next try in " + roundUp(delay).String()
	}
	if h.gen.Controller != nil { // what has failed puts off nothing else of its parent
		t.requeueAt(s, t.nextLook(r))
	}
	t.do(Note{Level: level, Module: m.name, Hook: h.gen.ID, Err: err, Message: s.Said(err.Error()) + " (" + then + ")"})
	m.pass.Ran(h.gen.ID, work.Events, allowed && !lost)
}

// delay is how long the next try waits after so many tries; err is that of the last one.
func (t *turn) delay(h *hook, err error, tries int) time.Duration {
	return lane.Backoff{Min: h.gen.Retry.Min, Max: h.gen.Retry.Max, Factor: h.gen.Retry.Factor}.After(err, tries, t.opts.Jitter())
}
