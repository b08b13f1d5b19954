package engine

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/generation"
)

// Reviews are no runs of the engine: a review changes nothing, so it needs no place in a
// lane and no input. The driver answers it from the last [Review] of its hook.

// Review says how a hook answers reviews from now on. It replaces the Review of the hook
// before it. Nothing that it holds changes.
type Review struct {
	Hook *generation.Hook
	// Refused says why the hook answers no review; "": it does.
	Refused string
	// Run is the run of one review but for what [Review.Answer] adds.
	Run RunHook
}

// Answer returns the run that answers a request. The number of the run is the driver's.
func (r *Review) Answer(run uint64, now time.Time, in *builtins.Request) (RunHook, error) {
	if r.Refused != "" {
		return RunHook{}, fmt.Errorf("hook %s: %s: %w", r.Hook.ID, r.Refused, ErrNotReady)
	}
	if b := r.Hook.Binding(in.Binding); b == nil || !beside(b) {
		return RunHook{}, fmt.Errorf("hook %s takes no requests at %q", r.Hook.ID, in.Binding)
	}
	a := r.Run
	a.Run, a.Now, a.Attempt, a.Request = run, now, 1, in
	a.Events = []builtins.Event{{Type: "request", Binding: in.Binding}}
	return a, nil
}

// publishReviews says how the hooks of a module answer reviews, when that changed.
func (t *turn) publishReviews(m *module) {
	if m.removed {
		return
	}
	for _, h := range m.hooks {
		if !h.reviews() {
			continue
		}
		next := &Review{Hook: h.gen, Refused: h.refusesRequests()}
		if next.Refused == "" {
			next.Run = t.runOf(h, h.subjects.At(""))
		}
		before := h.basis
		if h.basis = m.values.Basis(); h.review == nil || !h.review.same(next, before == h.basis) {
			h.review = next
			t.do(*next)
		}
	}
}

// hideSecrets touches the modules that answer reviews when the global values have moved: reviews hide their secrets.
func (e *Engine) hideSecrets(global *module) {
	e.touchAll(func(m *module) bool {
		return !m.removed && m != global && slices.ContainsFunc(m.hooks, func(h *hook) bool {
			return h.basis != m.values.Basis() && h.reviews()
		})
	})
}

// reviews says whether a binding of the hook takes reviews, or conversions that see snapshots.
func (h *hook) reviews() bool {
	return slices.ContainsFunc(h.gen.Bindings, func(b builtins.Binding) bool { return beside(&b) })
}

// beside says that requests to a binding are answered beside the engine, as its Review says. Other
// conversions need nothing of it.
func beside(b *builtins.Binding) bool {
	return b.Admission != nil || b.Convert != nil && len(b.Convert.Snapshots) > 0
}

// same says whether a review is answered the same way, with values that rest on the same, or not.
func (r *Review) same(next *Review, basis bool) bool {
	a, b := &r.Run, &next.Run
	switch {
	case r.Hook != next.Hook || r.Refused != next.Refused:
		return false
	case r.Refused != "":
		return true
	}
	return basis && a.Generation == b.Generation && a.Module == b.Module && maps.Equal(a.Watches, b.Watches) &&
		maps.Equal(a.Synced, b.Synced) && reflect.ValueOf(a.State).Pointer() == reflect.ValueOf(b.State).Pointer()
}
