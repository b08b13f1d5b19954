package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Sets of objects that hooks with for_each were about. When such an object is gone, what
// it owned goes by itself, and is forgotten. Sets without an owner stay, with their members.

// oldOwned marks the record of a set of an earlier version whose members have an owner.
const oldOwned = "starling.dev/set-owned"

// SetMark stands for all sets that were applied so far: what is applied later belongs to
// an object that has come since.
func (w *Writer) SetMark() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.applied
}

// DropSets forgets the sets with an owner that a hook has applied for an object of
// for_each, before the mark.
func (w *Writer) DropSets(ctx context.Context, manager, key string, mark uint64) error {
	return w.dropSets(ctx, manager, mark, func(name string) bool { return strings.HasPrefix(name, key+" ") })
}

// SweepSets forgets the sets with an owner that a hook with for_each has applied for
// objects that are not there any more: all but keys.
func (w *Writer) SweepSets(ctx context.Context, manager string, keys map[string]bool, mark uint64) error {
	if err := w.readRecords(ctx); err != nil {
		return err
	}
	return w.dropSets(ctx, manager, mark, func(name string) bool {
		key, _, each := strings.Cut(name, " ")
		return each && !keys[key]
	})
}

func (w *Writer) dropSets(ctx context.Context, manager string, mark uint64, gone func(name string) bool) error {
	ids := map[string]bool{}
	w.mu.Lock()
	for id, s := range w.sets {
		if s.manager == manager && s.owned && gone(s.name) {
			ids[id] = true
		}
	}
	for id, old := range w.old {
		if old.manager == manager && old.owned && w.sets[id] == nil && gone(old.name) {
			ids[id] = true
		}
	}
	w.mu.Unlock()
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(ids)) { // the same order each time
		errs = append(errs, w.drop(ctx, id, mark))
	}
	return errors.Join(errs...)
}

// drop forgets a set, unless it was applied after the mark.
func (w *Writer) drop(ctx context.Context, id string, mark uint64) error {
	s, unlock := w.lockSet(id)
	defer unlock()
	w.mu.Lock()
	later := s.at > mark
	w.mu.Unlock()
	if later {
		return nil
	}
	if err := w.forgetOld(ctx, id); err != nil {
		return fmt.Errorf("the record of a set whose owner is gone stays: %w", err)
	}
	w.remember(s, nil)
	return nil
}
