package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/effect"
)

// config changes one value of the user's config. It reads the object that holds it, and writes that
// state of it alone: what the user changes meanwhile is read again, and never overwritten.
func (w *Writer) config(ctx context.Context, manager string, wr effect.Write) error {
	for try := 1; ; try++ {
		live, err := w.o.Client.Get(ctx, wr.Ref)
		if err != nil {
			return err
		}
		next, err := configWrite(wr, live)
		if err != nil {
			return fmt.Errorf("cannot change the user's config in %s: %w", wr.Ref, err)
		}
		if next == nil {
			return nil
		}
		asked := time.Now()
		obj, err := w.o.Client.Write(ctx, manager, *next)
		if err == nil {
			w.o.Observe(wr.Ref, obj, wr.Cause, asked)
			return nil
		}
		if try == maxTries || !changedMeanwhile(err) && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
}

// configWrite is the write that makes the change in an object as it is, nil where it stands already.
func configWrite(wr effect.Write, live map[string]any) (*effect.Write, error) {
	c := wr.Config
	next := &effect.Write{Kind: effect.WritePatch, Ref: wr.Ref}
	if live == nil {
		switch {
		case c.Object || !c.Create:
			return nil, errors.New("it is not there any more; create it again")
		case c.Remove:
			return nil, nil
		}
		text, err := values.EditConfig("", c)
		if err != nil {
			return nil, err
		}
		next.Kind = effect.WriteCreate
		next.Object = map[string]any{
			"apiVersion": wr.Ref.APIVersion, "kind": wr.Ref.Kind,
			"metadata": map[string]any{"name": wr.Ref.Name, "namespace": wr.Ref.Namespace},
			"data":     map[string]any{c.Key: text},
		}
		return next, nil
	}
	next.Unchanged = &effect.Unchanged{ResourceVersion: versionOf(live), UID: uidOf(live)}
	if c.Object {
		section := effect.At[map[string]any](live, "spec", "values")
		if done, err := values.Stands(section, c); done || err != nil {
			return nil, err
		}
		patch := values.MergePatch(section, values.Configured(section, c))
		next.Patch = &effect.Patch{Type: effect.PatchMerge, Body: map[string]any{"spec": map[string]any{"values": patch}}}
		return next, nil
	}
	text := effect.At[string](live, "data", c.Key)
	edited, err := values.EditConfig(text, c)
	if err != nil || edited == text {
		return nil, err
	}
	next.Patch = &effect.Patch{Type: effect.PatchMerge, Body: map[string]any{"data": map[string]any{c.Key: edited}}}
	return next, nil
}
