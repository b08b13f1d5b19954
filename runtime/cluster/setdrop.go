package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/starling-operator/starling/runtime/effect"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Sets of objects that hooks with for_each were about. When such an object is gone, what
// it owned goes by itself, and the record of the set is of no more use. Sets without an
// owner keep their records: their members stay, too.

// ownedAnnotation marks the record of a set whose members have an owner.
const ownedAnnotation = "starling.dev/set-owned"

// SetMark stands for all sets that were applied so far: what is applied later belongs to
// an object that has come since.
func (w *Writer) SetMark() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.applied
}

// DropSets forgets the sets with an owner that a hook has applied for an object of
// for_each, before the mark. Of sets that an earlier process has applied nothing is known:
// see [Writer.SweepSets].
func (w *Writer) DropSets(ctx context.Context, manager, key string, mark uint64) error {
	w.mu.Lock()
	var ids []string
	for id, s := range w.sets {
		if s.owned && strings.HasPrefix(s.of, setsOf(manager, key)) {
			ids = append(ids, id)
		}
	}
	w.mu.Unlock()
	slices.Sort(ids) // the same order each time
	var errs []error
	for _, id := range ids {
		errs = append(errs, w.drop(ctx, id, effect.Unchanged{}, mark))
	}
	return errors.Join(errs...)
}

// SweepSets forgets the sets with an owner that a hook with for_each has applied for
// objects that are not there any more: all but keys.
func (w *Writer) SweepSets(ctx context.Context, manager string, keys map[string]bool, mark uint64) error {
	found := map[string]effect.Unchanged{}
	err := w.records(ctx, func(id, of string, obj map[string]any) {
		rest, ours := strings.CutPrefix(of, manager+" ")
		key, _, each := strings.Cut(rest, " ")
		if !ours || !each || annotationsOf(obj)[ownedAnnotation] == nil || keys[key] {
			return
		}
		meta, _ := obj["metadata"].(map[string]any)
		version, _ := meta["resourceVersion"].(string)
		found[id] = effect.Unchanged{UID: uidOf(obj), ResourceVersion: version}
	})
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(found)) {
		errs = append(errs, w.drop(ctx, id, found[id], mark))
	}
	return errors.Join(errs...)
}

// records lists the records of all sets of the instance: their ids, and of which hook and
// name they are.
func (w *Writer) records(ctx context.Context, take func(id, of string, obj map[string]any)) error {
	secrets := Mapping{GVR: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, Kind: "Secret", Namespaced: true}
	_, err := w.o.Client.Each(ctx, secrets, w.o.Namespace, metav1.ListOptions{
		LabelSelector: effect.InstanceLabel + "=" + w.o.Instance, FieldSelector: "type=" + SetType,
	}, func(obj map[string]any) error {
		of, _ := annotationsOf(obj)[setAnnotation].(string)
		if id, named := strings.CutPrefix(effect.RefOf(obj).Name, w.recordPrefix()); named {
			take(id, of, obj)
		}
		return nil
	})
	if err != nil {
		return w.o.Client.Explain(err, "list", secrets, w.o.Namespace)
	}
	return nil
}

// setsOf is what the names of the sets of one object begin with.
func setsOf(manager, key string) string { return manager + " " + key + " " }

// drop deletes the record of a set, unless the set was applied after the mark.
func (w *Writer) drop(ctx context.Context, id string, seen effect.Unchanged, mark uint64) error {
	s, unlock := w.lockSet(id)
	defer unlock()
	w.mu.Lock()
	later := s.at > mark
	w.mu.Unlock()
	if later {
		return nil
	}
	record := effect.Write{Kind: effect.WriteDelete, Ref: (&setRecord{writer: w, id: id}).ref()}
	if seen.UID != "" {
		record.Unchanged = &seen
	}
	if _, err := w.o.Client.Write(ctx, "", record); err != nil {
		return fmt.Errorf("the record of a set whose owner is gone stays: %w", err)
	}
	s.members, s.loaded = nil, true
	return nil
}
