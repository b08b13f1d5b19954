package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/starling-operator/starling/runtime/apply"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/hook"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// fields carries out what a controller does about fields of an object that somebody else has made, one step
// after the other.
func (w *Writer) fields(ctx context.Context, m effect.Write, cause *effect.Cause) error {
	for i, step := range m.Children {
		obj, err := w.observed(ctx, m.Manager, step, cause)
		if step.Kind == effect.WriteStatus && step.Object["status"] == nil && errors.Is(err, errNoSubresource) {
			continue // nothing is there to be given back
		}
		if owners := conflictOwners(err); owners != "" {
			return fmt.Errorf("cannot set fields of %s: others set them to another value (%s): leave these fields out, or have them do so", m.Ref, owners)
		}
		if err != nil {
			return err
		}
		if i == 0 && m.OneMore != "" && tooMany(obj, step.Object, m.OneMore) {
			step.Object = step.Ref.Object()
			if _, err = w.observed(ctx, m.Manager, step, cause); err != nil {
				return err
			}
			return fmt.Errorf("cannot set fields of %s: it belongs to %d parents of this controller, as many as may set fields of one object", m.Ref, hook.MaxHolders)
		}
	}
	return nil
}

// tooMany says whether more parents of a controller have fields of live than may. All that come at a time see room;
// the API server puts their writes in an order.
func tooMany(live, want map[string]any, hookID string) bool {
	own := reconcile.HeldIn(want)
	fields := func(h reconcile.Holder) hook.Fields { return fieldsOf(h, h.Manager(hookID)) }
	return len(own) > 0 && hook.Crowded(live, own[0].Controller, fields, hook.MaxHolders+1)
}

// Rival finds, among the parents that have fields of live, one but that of the mark which has a field of want
// with another value. Manager is that of the mark's parent.
func Rival(want, live map[string]any, manager, mark, subresource string) (out hook.Rival) {
	own := clashing(want, live, apply.FieldsOf(live, manager, subresource))
	parents := []string{manager}
	writers := writersOf(live)
	for _, held := range reconcile.HeldIn(live) {
		if held.Name == mark || held.Subresource != subresource {
			continue
		}
		for _, by := range writers[held.Name] {
			a := apply.FieldsOf(live, by, subresource)
			if a == nil {
				continue
			}
			parents = append(parents, by)
			for _, field := range clashing(want, live, a) {
				yields := mark < held.Name && slices.Contains(own, field)
				if out.Parent == "" || !yields {
					out = hook.Rival{Parent: held.Key, Field: field, Yields: yields}
				}
				if !yields {
					return out
				}
			}
		}
	}
	out.Yields = out.Yields && !othersClash(want, live, parents)
	return out
}

// writersOf are the managers that have applied each annotation. An object may have marks of many parents: it is gone
// through once for all of them.
func writersOf(live map[string]any) map[string][]string {
	out := map[string][]string{}
	for entry := range apply.Entries(live) {
		by, _ := entry["manager"].(string)
		for name := range effect.At[map[string]any](entry, "fieldsV1", "f:metadata", "f:annotations") {
			if name = strings.TrimPrefix(name, "f:"); apply.FieldsOf(live, by, "").Owns("annotations", name) {
				out[name] = append(out[name], by)
			}
		}
	}
	return out
}

// othersClash says whether a manager, but for these, has a field of want with another value.
func othersClash(want, live map[string]any, but []string) bool {
	for entry := range apply.Entries(live) {
		by, _ := entry["manager"].(string)
		fields, _ := entry["fieldsV1"].(map[string]any)
		if !slices.Contains(but, by) && len(fields) > 0 && len(clashing(want, live, &apply.Fields{Set: fields})) > 0 {
			return true
		}
	}
	return false
}

// clashing are the paths of [clashes].
func clashing(want, live map[string]any, owned *apply.Fields) (out []string) {
	if owned == nil {
		return nil
	}
	clashes("", want, live, owned.Set, func(path string, _, _ any) { out = append(out, "."+path) })
	return out
}

// clashes tells of values of want that are owned so, as a whole, and that live has otherwise.
func clashes(path string, want, live any, owned map[string]any, tell func(path string, want, live any)) {
	if apply.Whole(owned) {
		if !apply.Equal(want, live) {
			tell(path, want, live)
		}
		return
	}
	switch want := want.(type) {
	case map[string]any:
		there, _ := live.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(want)) {
			if fields, has := owned["f:"+key].(map[string]any); has {
				clashes(object.Below(path, key), want[key], there[key], fields, tell)
			}
		}
	case []any:
		there, _ := live.([]any)
		for _, name := range apply.ItemsOf(owned) {
			at, is := slices.IndexFunc(want, name.Names), slices.IndexFunc(there, name.Is)
			if at >= 0 && is >= 0 {
				clashes(fmt.Sprintf("%s[%d]", path, at), want[at], there[is], name.Fields, tell)
			}
		}
	}
}
