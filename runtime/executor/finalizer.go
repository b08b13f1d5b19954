package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/object"
)

// Unhold takes a finalizer off all objects of a kind that a watch does not have, or names them.
func (x *Executor) Unhold(ctx context.Context, a engine.Unhold) (unwatched []engine.Unwatched, err error) {
	keep := func(effect.Ref) (bool, error) { return false, nil }
	if a.Watch != "" {
		keep = func(ref effect.Ref) (bool, error) {
			_, there, known := x.o.Watches.Find(a.Watch, ref.Namespace, ref.Name)
			if !known {
				return true, errors.New("the watch has ended")
			}
			if there || !a.Cleans {
				return there, nil
			}
			obj, err := x.o.Client.Get(ctx, ref)
			if err == nil && obj != nil {
				unwatched = append(unwatched, engine.Unwatched{Namespace: ref.Namespace, Name: ref.Name, Object: object.New(obj)})
			}
			return true, err
		}
	}
	has := func(obj map[string]any) bool {
		ref, uid := effect.RefOf(obj), object.UID(object.New(obj))
		return slices.ContainsFunc(a.Children, func(id string) bool {
			if strings.Contains(id, "#"+builtins.FieldsBinding) { // these know the parent by its name
				return len(x.o.Watches.About(id, effect.Key(ref.Namespace, ref.Name))) > 0
			}
			return uid != "" && len(x.o.Watches.About(id, uid)) > 0
		})
	}
	log := x.o.Log(a.Module, a.Hook)
	err = ReleaseFinalizer(ctx, x.o.Client, x.o.Writer, a.APIVersion, a.Kind, a.Finalizer, has, keep, func(ref effect.Ref) {
		log.Log(builtins.LevelInfo, "finalizer "+a.Finalizer+" taken off "+ref.String()+", which nobody cleans up any more", nil)
	})
	return unwatched, err
}

// ReleaseFinalizer takes a finalizer off all objects of a kind but those to keep, and
// tells of each. Keep is asked about an object without it, too, if also says so. A kind that is served in no version
// has no objects.
func ReleaseFinalizer(ctx context.Context, c *cluster.Client, w *cluster.Writer, apiVersion, kind, finalizer string,
	also func(obj map[string]any) bool, keep func(effect.Ref) (bool, error), removed func(effect.Ref)) error {
	m, err := c.Mapping(ctx, apiVersion, kind)
	if errors.Is(err, cluster.ErrNotServed) {
		m, err = otherVersion(c, apiVersion, kind)
	}
	if errors.Is(err, cluster.ErrNotServed) {
		return nil
	} else if err != nil {
		return err
	}
	m.Metadata = true // each start lists all objects of the kind
	var refs []effect.Ref
	_, err = c.Each(ctx, m, "", metav1.ListOptions{}, func(obj map[string]any) error {
		held, _ := object.Get(obj, []string{"metadata", "finalizers"})
		list, _ := held.([]any)
		if slices.Contains(list, any(finalizer)) || also(obj) {
			ref := effect.RefOf(obj)
			ref.APIVersion, ref.Kind = m.APIVersion(), kind // an item of a list may not say them
			refs = append(refs, ref)
		}
		return nil
	})
	if err != nil {
		return c.Explain(err, "list", m, "")
	}
	for _, ref := range refs {
		if kept, err := keep(ref); err != nil {
			return err
		} else if kept {
			continue
		}
		if err := w.Write(ctx, "starling", effect.Write{Kind: effect.WriteRemoveFinalizer, Ref: ref, Finalizer: finalizer}); err != nil {
			return fmt.Errorf("%s: %w", ref, err)
		}
		removed(ref)
	}
	return nil
}

// otherVersion finds a kind in another version of its group: with one version that is served no more its objects have
// not gone.
func otherVersion(c *cluster.Client, apiVersion, kind string) (cluster.Mapping, error) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return cluster.Mapping{}, err
	}
	found, err := c.Mapper().RESTMapping(schema.GroupKind{Group: gv.Group, Kind: kind})
	switch {
	case meta.IsNoMatchError(err):
		return cluster.Mapping{}, cluster.ErrNotServed
	case err != nil:
		return cluster.Mapping{}, err
	}
	return cluster.Mapping{GVR: found.Resource, Kind: kind, Namespaced: found.Scope.Name() == meta.RESTScopeNameNamespace}, nil
}
