package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// fields carries out what a controller does about fields of an object that somebody else has made, one step
// after the other.
func (w *Writer) fields(ctx context.Context, m effect.Write, cause *effect.Cause) error {
	for _, step := range m.Children {
		p, err := w.o.Client.begin(ctx, m.Manager, step)
		if err != nil {
			return err
		}
		asked := time.Now()
		obj, err := p.run(ctx)
		var api apierrors.APIStatus
		if apierrors.IsConflict(err) && errors.As(err, &api) {
			if owners := conflictOwners(api.Status()); owners != "" {
				return fmt.Errorf("cannot set fields of %s: others set them to another value (%s): leave these fields out, or have them do so", m.Ref, owners)
			}
		}
		if err != nil {
			return err
		}
		w.o.Observe(step.Ref, obj, cause, asked)
	}
	return nil
}

// FieldsWritten says whether manager has written the annotation by which a parent says that it has fields of
// live, and when it has changed the fields of the subresource, "" for the object itself; zero: not known.
func FieldsWritten(live map[string]any, manager, mark, subresource string) (is bool, at time.Time) {
	a := appliedFields(live, manager, "")
	if a == nil || !a.owns("annotations", mark) {
		return false, at
	}
	if a = appliedFields(live, manager, subresource); a == nil {
		return true, at
	}
	return true, a.changed()
}

// Rival finds, among the parents that have fields of live, one but that of the mark which has a field of want
// with another value. It names the parent and the field, "" for none.
func Rival(want, live map[string]any, mark, subresource string) (parent, field string) {
	for _, held := range reconcile.HeldIn(live) {
		if held.Name == mark || held.Subresource != subresource {
			continue
		}
		for _, manager := range Takers(live, "") {
			a := appliedFields(live, manager, "")
			if a == nil || !a.owns("annotations", held.Name) {
				continue
			}
			if a = appliedFields(live, manager, subresource); a == nil {
				continue
			}
			if field, is := clash(want, live, a.fields); is {
				return held.Key, field
			}
		}
	}
	return "", ""
}

// clash finds a value of want that another manager owns, and that is not so. Of items of lists the API server
// says it.
func clash(want, live any, owned map[string]any) (path string, is bool) {
	given, isMap := want.(map[string]any)
	if whole(owned) {
		return "", !equal(want, live)
	}
	there, _ := live.(map[string]any)
	if !isMap {
		return "", false
	}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		fields, has := owned["f:"+key].(map[string]any)
		if !has {
			continue
		}
		if path, is := clash(given[key], there[key], fields); is {
			return "." + key + path, true
		}
	}
	return "", false
}
