package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/starling-operator/starling/runtime/effect"
)

// Sets go with the hook that has applied them, and with its module, unless they must be
// kept.

// SetMark stands for all sets that were applied so far: what is applied later belongs to
// an object that has come since.
func (w *Writer) SetMark() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.applied
}

// DropSets forgets the sets with an owner that a hook with for_each has applied until now for objects that are gone:
// what these owned goes by itself. Sets without an owner stay, with their members.
func (w *Writer) DropSets(manager string, gone func(key string) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, s := range w.sets {
		key, _, each := strings.Cut(s.name, " ")
		if s.manager != manager || !s.owned || !each || !gone(key) {
			continue
		}
		if s.dropped = s.at; s.users == 0 {
			delete(w.sets, id)
		}
	}
}

// RemoveSets deletes the objects of all sets that hooks with these field managers have
// applied before the mark, and then what is recorded of the hooks. Sets that must be kept stay as
// they are. A set of which an object cannot be deleted is known still.
func (w *Writer) RemoveSets(ctx context.Context, managers []string, mark uint64) error {
	var errs []error
	for _, manager := range managers {
		errs = append(errs, w.removeSets(ctx, manager, mark))
	}
	return errors.Join(errs...)
}

func (w *Writer) removeSets(ctx context.Context, manager string, mark uint64) error {
	h, release, err := w.setsOf(ctx, manager)
	if err != nil {
		return err
	}
	defer release()
	h.mu.Lock()
	err = h.read(ctx, nil)
	h.mu.Unlock()
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range w.idsOf(manager) {
		if name, err := w.removeSet(ctx, manager, id, mark); err != nil {
			errs = append(errs, fmt.Errorf("set %q: %w", name, err))
		}
	}
	return errors.Join(append(errs, h.tidy(ctx, true))...)
}

// removeSet deletes one set.
func (w *Writer) removeSet(ctx context.Context, manager, id string, mark uint64) (name string, err error) {
	s, unlock := w.lockSet(id)
	defer unlock()
	w.mu.Lock()
	name, keeps, later := s.name, s.keeps, s.at > mark
	members := slices.Clone(s.members)
	w.mu.Unlock()
	if later || keeps {
		return name, nil
	}
	a := &applying{writer: w, marks: w.marksOf(manager, name, false), seen: map[effect.Ref]sight{}}
	if err := a.look(ctx, members); err != nil {
		return name, err
	}
	if err := w.prune(ctx, a.marks, members, a.seen, nil); err != nil {
		return name, err
	}
	w.remember(s, nil)
	return name, nil
}
