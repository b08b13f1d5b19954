package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/starling-operator/starling/runtime/apply"
	"github.com/starling-operator/starling/runtime/effect"
)

// set is what is known of one set: every object that it may have made. Sets of which
// nothing is in memory have no members, once the places of their hook have been read.
type set struct {
	// Guarded by the writer's mutex:
	users   int // that apply it or wait to
	owned   bool
	keeps   bool   // it stays when its hook goes
	at      uint64 // which of all applies was the last one of this set
	dropped uint64 // the apply with which it is forgotten
	// members are the uids of the objects that the set has made, "" of one that it may have made.
	members map[effect.Ref]string

	mu sync.Mutex // one apply at a time
}

// lock returns a set for one who applies it; unlock must be called. One without members
// is not kept in memory: names of sets come and go with the objects that hooks are about.
func (h *hookSets) lock(name string) (s *set, unlock func()) {
	w := h.writer
	w.mu.Lock()
	s = h.set(name)
	s.users++
	w.mu.Unlock()
	s.mu.Lock()
	return s, func() {
		w.mu.Lock()
		if s.users--; s.users == 0 && (len(s.members) == 0 || s.dropped > 0 && s.dropped == s.at) {
			delete(h.sets, name)
		}
		w.mu.Unlock()
		s.mu.Unlock()
	}
}

// set is called with the writer's mutex held.
func (h *hookSets) set(name string) *set {
	s := h.sets[name]
	if s == nil {
		s = &set{members: map[effect.Ref]string{}}
		h.sets[name] = s
	}
	return s
}

// remember says what the set consists of from now on.
func (w *Writer) remember(s *set, members map[effect.Ref]string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.members = members
}

// set applies the members and deletes what the set made before and does not list
// any more. Objects that it did not make are left alone: to list one is an error.
func (w *Writer) set(ctx context.Context, manager string, wr effect.Write) error {
	h, release, err := w.setsOf(ctx, manager)
	if err != nil {
		return err
	}
	defer release()
	s, unlock := h.lock(wr.Set.Name)
	defer unlock()
	w.mu.Lock()
	w.applied++
	s.owned, s.keeps, s.at = wr.Owner != nil, wr.Set.Keep, w.applied
	w.mu.Unlock()
	a := w.applying(ctx, manager, wr)
	if wr.Owner != nil && len(a.members) > 0 { // the same for all
		if a.owner, err = w.o.Client.ownerReference(ctx, effect.Write{Ref: a.members[0].Ref, Owner: wr.Owner}); err != nil {
			return err
		}
	}
	if a.known, err = h.enter(ctx, s, a); err != nil {
		return err
	}
	now, refused, err := a.apply(ctx)
	var failed []error
	if all := cmp.Or(err, refused); all != nil {
		failed = []error{fmt.Errorf("%w (%d of %d objects of set %q applied)", all, len(now), len(a.members), wr.Set.Name)}
	}
	if err != nil || refused != nil && !wr.Continue {
		return failed[0] // what is not listed any more may be what the refused ones replace
	}
	listed := map[effect.Ref]bool{}
	for _, m := range a.members {
		listed[m.Ref.AnyVersion()] = true
	}
	gone := slices.DeleteFunc(slices.Collect(maps.Keys(a.known)), func(ref effect.Ref) bool { return listed[ref.AnyVersion()] })
	if err := a.prune(ctx, gone); err != nil {
		failed = append(failed, fmt.Errorf("%w (set %q lists it no more)", err, wr.Set.Name))
	}
	if len(failed) > 0 {
		return apply.Joined(failed)
	}
	w.remember(s, now)
	return h.tidy(ctx, len(gone) > 0)
}

// knownOf is what the set may have made.
func (w *Writer) knownOf(s *set) map[effect.Ref]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(s.members)
}

// defaultSideBySide is how many members of a set are read, written or deleted at a time.
const defaultSideBySide = 8

// order is that of members of a set. A member that fails holds up no other, unless nobody answers, or this process may
// not write any more.
func (w *Writer) order(ctx context.Context, back bool) apply.Order {
	return apply.Order{Width: w.o.SideBySide, Back: back, Ends: func(err error) bool {
		return ctx.Err() != nil || InTrouble(err) || errors.Is(err, ErrFenced) || errors.Is(err, ErrStandby)
	}}
}
