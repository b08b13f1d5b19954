package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	h := w.hooks[manager]
	if h == nil {
		return
	}
	for name, s := range h.sets {
		key, _, each := strings.Cut(name, " ")
		if !s.owned || !each || !gone(key) {
			continue
		}
		if s.dropped = s.at; s.users == 0 {
			delete(h.sets, name)
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
	w.mu.Lock()
	names := slices.Sorted(maps.Keys(h.sets))
	w.mu.Unlock()
	var errs []error
	for _, name := range names {
		if err := h.remove(ctx, name, mark); err != nil {
			errs = append(errs, fmt.Errorf("set %q: %w", name, err))
		}
	}
	return errors.Join(append(errs, h.tidy(ctx, true))...)
}

// remove deletes one set.
func (h *hookSets) remove(ctx context.Context, name string, mark uint64) error {
	w := h.writer
	s, unlock := h.lock(name)
	defer unlock()
	w.mu.Lock()
	stays := s.keeps || s.at > mark
	w.mu.Unlock()
	if stays {
		return nil
	}
	a := w.applying(ctx, h.manager, effect.Write{Set: &effect.Set{Name: name}})
	a.known = w.knownOf(s)
	if err := a.look(ctx); err != nil {
		return err
	}
	if err := a.prune(ctx, slices.Collect(maps.Keys(a.known))); err != nil {
		return err
	}
	w.remember(s, map[effect.Ref]string{})
	return nil
}
