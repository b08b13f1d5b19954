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

// SetManagers returns the field managers of the hooks whose sets go with them, sorted.
func (w *Writer) SetManagers(ctx context.Context) ([]string, error) {
	found := map[string]bool{}
	err := w.records(ctx, func(_, of string, obj map[string]any) {
		if annotationsOf(obj)[keepAnnotation] == nil {
			found[managerOf(of)] = true
		}
	})
	return slices.Sorted(maps.Keys(found)), err
}

// managerOf is the field manager in what a record says of its set. Paths of files may hold
// spaces, names of functions do not.
func managerOf(of string) string {
	before, after, ok := strings.Cut(of, ".star:")
	if !ok {
		manager, _, _ := strings.Cut(of, " ")
		return manager
	}
	function, _, _ := strings.Cut(after, " ")
	return before + ".star:" + function
}

// RemoveSets deletes the objects of all sets that hooks with these field managers have
// applied before the mark, and then their records. Sets that must be kept stay as they
// are. An object that cannot be deleted stays recorded.
func (w *Writer) RemoveSets(ctx context.Context, managers []string, mark uint64) error {
	found := map[string]string{}
	err := w.records(ctx, func(id, of string, _ map[string]any) {
		if slices.Contains(managers, managerOf(of)) {
			found[id] = of
		}
	})
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(found)) {
		if err := w.removeSet(ctx, id, found[id], mark); err != nil {
			errs = append(errs, fmt.Errorf("set %q: %w", strings.TrimPrefix(found[id], managerOf(found[id])+" "), err))
		}
	}
	return errors.Join(errs...)
}

// removeSet deletes one set.
func (w *Writer) removeSet(ctx context.Context, id, of string, mark uint64) error {
	s, unlock := w.lockSet(id)
	defer unlock()
	w.mu.Lock()
	later := s.at > mark
	w.mu.Unlock()
	if later {
		return nil
	}
	record := &setRecord{writer: w, id: id, of: of}
	members, keeps, err := record.read(ctx)
	if err != nil || keeps {
		return err
	}
	s.loaded = false
	seen, err := w.look(ctx, id, members, func(effect.Ref, map[string]any) bool { return false })
	if err != nil {
		return err
	}
	if err := w.prune(ctx, managerOf(of), id, members, seen, nil); err != nil {
		return err
	}
	if err := record.write(ctx, nil); err != nil {
		return err
	}
	s.members, s.loaded = nil, true
	return nil
}
