package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine/repairs"
	"github.com/starling-operator/starling/runtime/engine/subjects"
	hooks "github.com/starling-operator/starling/runtime/hook"
	"github.com/starling-operator/starling/runtime/lane"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// past is what earlier runs about a parent have left.
func (h *hook) past(s *subjects.Subject, now time.Time) (out hooks.Past) {
	rounds := h.repairs[s.Key]
	for id := range rounds {
		if c, is := rounds.Contested(id, now); is {
			out.Contests = append(out.Contests, hooks.Contest{ID: id, By: c.By, Left: max(0, rounds.Until(id).Sub(now))})
		}
	}
	slices.SortFunc(out.Contests, func(a, b hooks.Contest) int {
		return cmp.Or(a.Ref.Compare(b.Ref), cmp.Compare(a.Subresource, b.Subresource))
	})
	out.Kept = slices.Clone(s.Outcome().Kept)
	for _, f := range s.Outcome().Tried {
		f.Due = !f.Next.After(now)
		out.Failures = append(out.Failures, f.Failure)
	}
	return out
}

// unsynced are the kinds of whose objects some may not be known. Nothing is deleted while a kind that is read has gone; a
// deletion reads none.
func (h *hook) unsynced(s *subjects.Subject) (out []reconcile.Kind) {
	for _, w := range h.watches {
		if (w.Decl.Read == "" || !s.Leaving()) && !h.isEach(w) && w.Unsure() {
			out = append(out, reconcile.Kind{APIVersion: w.Decl.APIVersion, Kind: w.Decl.Kind})
		}
	}
	return out
}

// childrenWritten takes in what has become of the writes of children. Apart says that nothing but children could not
// be written: each of them has its own wait.
func (t *turn) childrenWritten(r *asked, fates []effect.Fate) (apart bool) {
	h, s := r.hook, r.subject
	rounds := h.repairs[s.Key]
	var contests []contest
	for i, fate := range fates {
		if i >= len(r.done.Writes) { // the status of the parent
			return apart && fate.Err == nil
		}
		w := r.done.Writes[i]
		learned := s.Outcome().Wrote(w, fate, t.now, func(tries int) time.Duration { return t.delay(h, fate.Err, tries) })
		if learned && w.Put { // it may have changed nothing, so that no event tells of it
			t.add(h, s, lane.Unordered, builtins.Event{Type: "requeue", Binding: "requeue"})
		}
		apart = apart || fate.Err != nil
		if w.By == "" || !fate.Written {
			continue
		}
		if rounds == nil {
			rounds = repairs.Rounds[reconcile.ID]{}
			h.repairs[s.Key] = rounds
		}
		if rounds.Add(w.ID, "", w.By, t.now) {
			contests = append(contests, contest{w.Ref, repairs.Contest{By: w.By}})
		}
	}
	if rounds.Forget(t.now); len(rounds) == 0 {
		delete(h.repairs, s.Key)
	}
	if len(contests) > 0 {
		t.do(Note{Level: builtins.LevelWarn, Module: r.hook.module.name, Hook: h.gen.ID, Event: driftContested, Message: s.Said(contestedBy(contests))})
	}
	return apart
}

// childrenFailed ends a run that could not write some children. They are tried again, each in its own time;
// nothing else waits for that.
func (t *turn) childrenFailed(r *asked, err error) {
	h, s := r.hook, r.subject
	err = r.done.Seen.Err(err)
	t.do(Uncommitted{Run: r.done.Run, Module: r.hook.module.name, Hook: h.gen.ID, Err: err})
	h.ran.Failures++
	next := roundUp(s.Outcome().Next(r.call().Past.Failures).Sub(t.now)).String()
	t.do(Note{Level: builtins.LevelError, Module: r.hook.module.name, Hook: h.gen.ID, Err: err, Message: s.Said(err.Error()) + " (next try in " + next + ")"})
	t.runSucceeded(r, err.Error())
}

// retryAll has all that has failed of a hook tried again once a pause has passed since then.
func (t *turn) retryAll(h *hook, pause time.Duration) {
	h.lane.RetryAllSoon(h.gen.ID, pause)
	if h.gen.Controller == nil { // else there may be many, and none has children
		return
	}
	for _, s := range h.subjects.All() {
		before := s.Outcome().Next(nil)
		s.Outcome().RetrySoon(pause, "", "")
		if next := s.Outcome().Next(nil); !next.Equal(before) {
			t.requeueAt(s, next)
		}
	}
}
