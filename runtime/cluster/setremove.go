package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/starling-operator/starling/runtime/effect"
)

// Sets go with the hook that has applied them, and with its module, unless they must be
// kept.

// SetManagers returns the field managers of the hooks whose sets go with them, sorted.
func (w *Writer) SetManagers(ctx context.Context) ([]string, error) {
	if err := w.readRecords(ctx); err != nil {
		return nil, err
	}
	return w.setManagers(), nil
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
	if err := h.look(ctx); err != nil {
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

// look takes in all that there is of the hook's sets.
func (h *hookSets) look(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.read(ctx, nil)
}

// removeSet deletes one set.
func (w *Writer) removeSet(ctx context.Context, manager, id string, mark uint64) (name string, err error) {
	s, unlock := w.lockSet(id)
	defer unlock()
	w.mu.Lock()
	name, keeps, later := s.name, s.keeps, s.at > mark
	w.mu.Unlock()
	if later || keeps {
		return name, nil
	}
	marks, seen := w.marksOf(manager, name, false), map[effect.Ref]sight{}
	members := membersOf(w.knownOf(s))
	a := &applying{writer: w, marks: marks, seen: seen}
	err = w.look(ctx, id, members, func(ref effect.Ref, obj map[string]any, certain bool) { a.see(ctx, ref, obj, certain) })
	if err != nil {
		return name, err
	}
	if err := w.prune(ctx, marks, members, seen, nil); err != nil {
		return name, err
	}
	w.remember(s, nil)
	return name, nil
}
