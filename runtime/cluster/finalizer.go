package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/starling-operator/starling/runtime/effect"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// finalizer puts a finalizer on an object, or takes it off: [effect.WriteAddFinalizer] and
// [effect.WriteRemoveFinalizer]. Others may change the list at the same time, so what is written
// holds only for what was read.
func (w *Writer) finalizer(ctx context.Context, manager string, wr effect.Write) error {
	for try := 1; ; try++ {
		var live map[string]any
		if try == 1 && w.o.Known != nil { // as a watch shows it: when it has changed since, the write meets a conflict
			live = w.o.Known(wr.Ref)
		}
		next, err := finalizersOf(live, wr)
		if next == nil { // nobody watches it, or the watch is behind
			if live, err = w.o.Client.Get(ctx, wr.Ref); err != nil {
				return err
			}
			next, err = finalizersOf(live, wr)
		}
		if err != nil || next == nil {
			return err
		}
		asked := time.Now()
		obj, err := w.o.Client.Write(ctx, manager, effect.Write{
			Kind: effect.WritePatch, Ref: wr.Ref, Unchanged: &effect.Unchanged{ResourceVersion: versionOf(live), UID: uidOf(live)},
			Patch: &effect.Patch{Type: effect.PatchMerge, Body: map[string]any{"metadata": map[string]any{"finalizers": next}}},
		})
		switch {
		case err == nil && len(next) == 0 && effect.At[any](live, "metadata", "deletionTimestamp") != nil:
			w.o.Observe(wr.Ref, nil, wr.Cause, asked) // nothing else has held it
			return nil
		case err == nil:
			w.o.Observe(wr.Ref, obj, wr.Cause, asked)
			return nil
		case wr.Kind == effect.WriteRemoveFinalizer && apierrors.IsNotFound(err):
			return nil
		case try == 1 && apierrors.IsNotFound(err): // a watch may have shown it that is behind
		case try == maxTries || !apierrors.IsConflict(err):
			return err
		}
	}
}

// finalizersOf returns the finalizers that an object is to have after a write, nil when
// there is nothing to do.
func finalizersOf(live map[string]any, wr effect.Write) ([]any, error) {
	meta, _ := live["metadata"].(map[string]any)
	now, _ := meta["finalizers"].([]any)
	at := slices.Index(now, any(wr.Finalizer))
	switch hold := wr.Kind == effect.WriteAddFinalizer; {
	case hold && meta == nil:
		return nil, fmt.Errorf("%s is gone; there is nothing to clean up", wr.Ref)
	case hold && at < 0 && meta["deletionTimestamp"] != nil:
		return nil, fmt.Errorf("%s is being deleted, so it takes no finalizer any more", wr.Ref)
	case hold && at < 0:
		return append(slices.Clip(now), wr.Finalizer), nil
	case !hold && at >= 0:
		return append([]any{}, slices.Delete(slices.Clone(now), at, at+1)...), nil
	}
	return nil, nil
}
