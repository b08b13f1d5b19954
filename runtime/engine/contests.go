package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine/repairs"
	hooks "github.com/starling-operator/starling/runtime/hook"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// A child that somebody changes again and again is put right later each time, as an object of a release is.

// past is what earlier runs about a parent have left.
func (h *hook) past(key string, now time.Time) (out hooks.Past) {
	rounds := h.repairs[key]
	for id := range rounds {
		if by, is := rounds.Contested(id, now); is {
			out.Contests = append(out.Contests, hooks.Contest{ID: id, By: by, Left: max(0, rounds.Until(id, releaseRetry).Sub(now))})
		}
	}
	slices.SortFunc(out.Contests, func(a, b hooks.Contest) int {
		return cmp.Or(a.Ref.Compare(b.Ref), cmp.Compare(a.Subresource, b.Subresource))
	})
	return out
}

// childrenWritten takes in what has become of the writes of children.
func (e *Engine) childrenWritten(r *asked, fates []effect.Fate) {
	h, s := r.hook, r.subject
	rounds := h.repairs[s.Key]
	var contested []effect.Ref
	by := ""
	for i, w := range r.done.Writes {
		if w.By == "" || i >= len(fates) || fates[i] != effect.Written {
			continue
		}
		if rounds == nil {
			rounds = repairs.Rounds[reconcile.ID]{}
			h.repairs[s.Key] = rounds
		}
		rounds.Changed(w.ID, w.By)
		if rounds.Add(w.ID, e.now) {
			contested, by = append(contested, w.Ref), cmp.Or(by, w.By)
		}
	}
	if rounds.Forget(e.now); len(rounds) == 0 {
		delete(h.repairs, s.Key)
	}
	if len(contested) > 0 {
		e.do(Note{Level: builtins.LevelWarn, Module: r.module.name, Hook: h.gen.ID, Event: driftContested, Message: s.Said(contestedBy(by, contested))})
	}
}

// driftContested is the reason of the Event that tells of contested objects.
const driftContested = "DriftContested"

// contestedBy says that somebody changes objects again and again.
func contestedBy(by string, objects []effect.Ref) string {
	more := ""
	if n := len(objects) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return fmt.Sprintf("%s is contested by %s: it was put right %d times within %.0f minutes, and waits longer each time from now on%s",
		objects[0], cmp.Or(by, "somebody"), repairs.MaxRounds, repairs.Window.Minutes(), more)
}

// leaveIt is the line that leaves contested objects of a release to others.
func leaveIt(objects []effect.Ref) string {
	var names []string
	for _, o := range objects[:min(len(objects), 3)] {
		names = append(names, fmt.Sprintf("%q", o.Kind+"/"+o.Name))
	}
	return fmt.Sprintf(". End the other writer, or leave it to that with module(ignore = [%s]), and a field after the name for one field alone", strings.Join(names, ", "))
}

// contests counts the contested objects of a module, by who changes them.
func (m *module) contests(now time.Time) map[string]int {
	by := m.repairs.Contests(now)
	for _, h := range m.hooks {
		for _, rounds := range h.repairs {
			by = rounds.Contests(by, now)
		}
	}
	return by
}
