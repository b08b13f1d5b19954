package plan

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/release"
	"github.com/starling-operator/starling/modules/release/owned"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/sim"
	"github.com/starling-operator/starling/runtime/sim/store"
)

// drifted are the objects of the releases that are not as the manifests have them once
// the plan has settled, and what could not be compared: an upgrade puts its objects right,
// so these are the ones that `run` puts right without one, or leaves as they are.
func drifted(ctx context.Context, w *sim.World, releases map[release.Ref]*sim.Release) (out []Object, unread []string, err error) {
	out = []Object{}
	refs, err := w.Installed(ctx)
	if err != nil {
		return nil, nil, err
	}
	rendered, all, err := renderedBy(releases)
	if err != nil {
		return nil, nil, err
	}
	released := map[string]bool{}
	for _, m := range w.Status().Modules {
		released[m.Name] = m.Released
	}
	defer w.ObjectsAhead(all)()
	refused := map[string]bool{} // by kind: one refusal is enough
	for _, ref := range refs {
		r := releases[ref]
		policy, ignore := w.Drift(ref.Module)
		if policy == builtins.DriftIgnore {
			continue
		}
		for _, obj := range rendered[ref] {
			if ctx.Err() != nil {
				return nil, nil, context.Cause(ctx)
			}
			of := effect.RefOf(obj)
			kind := of.APIVersion + " " + of.Kind
			paths, all := owned.Ignored(ignore, of.APIVersion, of.Kind, of.Name)
			if refused[kind] || all {
				continue
			}
			if of.Namespace == "" {
				obj = inNamespace(obj, r.Namespace)
			}
			found, err := w.Merge(obj)
			if lost := w.Store().Lost(); lost != nil {
				return nil, nil, lost
			}
			if err != nil {
				refused[kind] = apierrors.IsForbidden(err)
				unread = append(unread, fmt.Sprintf("release %s: %s cannot be compared with the cluster: %s", r.Name, of, errorText(err)))
				continue
			}
			if o := drift(obj, found, paths, r.Ran); o != nil {
				o.By = []string{"release " + r.Name}
				o.Left = o.Left || policy == builtins.DriftReport || !released[ref.Module]
				gv, _ := schema.ParseGroupVersion(of.APIVersion)
				if k, served := w.Store().KindOf(gv.WithKind(of.Kind)); served && k.Namespaced || !served && of.Namespace != "" {
					o.Namespace = effect.RefOf(obj).Namespace
				}
				out = append(out, *o)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Object) int {
		return strings.Compare(a.APIVersion+" "+a.Ref.String(), b.APIVersion+" "+b.Ref.String())
	})
	return out, unread, nil
}

// renderedBy are the objects of the releases, and where they are.
func renderedBy(releases map[release.Ref]*sim.Release) (rendered map[release.Ref][]map[string]any, all []effect.Ref, err error) {
	rendered = map[release.Ref][]map[string]any{}
	for _, ref := range slices.SortedFunc(maps.Keys(releases), compareRefs) {
		r := releases[ref]
		if r.Status != "deployed" {
			continue // its module says what is wrong
		}
		objects, err := r.Objects()
		if err != nil {
			return nil, nil, err
		}
		for _, obj := range flat(objects) {
			of := effect.RefOf(obj)
			if of.Name == "" {
				continue
			}
			rendered[ref] = append(rendered[ref], obj)
			of.Namespace = cmp.Or(of.Namespace, r.Namespace)
			all = append(all, of)
		}
	}
	return rendered, all, nil
}

func errorText(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}

// drift compares one object of a manifest with what is there, but for fields that are left to
// others; nil: it is as it should be.
func drift(obj map[string]any, found store.Merged, ignore []owned.Path, ran []owned.Span) *Object {
	ref := effect.RefOf(obj)
	out := &Object{Action: Changed, Ref: effect.Ref{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name}}
	if found.Live == nil || deleting(found.Live) {
		if expires(obj) {
			return nil
		}
		out.Action, out.Left = Missing, once(obj)
		return out
	}
	fields := (&unstructured.Unstructured{Object: found.Live}).GetManagedFields()
	out.ChangedBy = owned.Takers(fields, release.FieldManager)
	left := append(owned.Paths(owned.ByRelease(found.Live, obj, fields, release.FieldManager, ran)), ignore...)
	owned.Keep(found.After, found.Before, append(owned.HandedOver(fields), left...))
	d := drifts{known: found.Known, owned: ownership(found.Live)}
	d.maps(nil, d.owned, found.After, found.Before)
	if out.Fields = d.fields; len(d.fields) == 0 {
		return nil
	}
	return out
}

// drifts collects the fields of a manifest that are others in an object. A field that the
// object has beside is none: somebody has added it, or the API server has.
type drifts struct {
	differ
	// known: the fields of the kind are known, so that one that is not there was taken
	// away. Else it may be one that the API server never kept.
	known bool
	owned owner
}

func (d *drifts) maps(path []string, by owner, want, have map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		at := slices.Clip(append(slices.Clip(path), key))
		if bookkeeping(at) || len(at) == 1 && key == "status" || aggregated(at, have) {
			continue
		}
		v, there := have[key]
		switch {
		case there:
			d.values(at, by.field(key), want[key], v)
		case d.known && !empty(want[key]):
			d.leaves(at, want[key], func(path []string, v any) { d.add(path, &v, nil) })
		}
	}
}

func (d *drifts) values(path []string, by owner, want, have any) {
	if object.Same(want, have) {
		return
	}
	wm, wIs := want.(map[string]any)
	hm, hIs := have.(map[string]any)
	if wIs && hIs {
		d.maps(path, by, wm, hm)
		return
	}
	wl, wIs := want.([]any)
	hl, hIs := have.([]any)
	if wIs && hIs && d.elements(path, by, wl, hl) {
		return
	}
	if !by.all { // else Starling has written last, and this is what became of it
		d.add(path, &want, &have)
	}
}

// elements compares the elements of two lists, and says whether it could: those that both
// hold stand aside, the others are pairs by their names, or by their places.
func (d *drifts) elements(path []string, by owner, want, have []any) bool {
	want, have = apartFrom(want, have), apartFrom(have, want)
	nw, nh := named(want, "name"), named(have, "name")
	if byName := nw != nil && nh != nil; byName {
		for name := range nh {
			if nw[name] == nil {
				return false
			}
		}
	} else if len(want) != len(have) {
		return false
	}
	for i, e := range want {
		w, is := e.(map[string]any)
		if !is {
			return false
		}
		at, other := fmt.Sprint(i), any(nil)
		if nw != nil && nh != nil {
			at = w["name"].(string)
			other = nh[at]
		} else {
			other = have[i]
		}
		if h, is := other.(map[string]any); is {
			d.maps(element(path, at), by.element(h), w, h)
		} else if other != nil {
			return false
		} else if d.known {
			d.leaves(element(path, at), w, func(path []string, v any) { d.add(path, &v, nil) })
		}
	}
	return true
}

// apartFrom are the elements of a list that another one does not have.
func apartFrom(list, other []any) []any {
	other = slices.Clone(other)
	var out []any
	for _, e := range list {
		if at := slices.IndexFunc(other, func(v any) bool { return object.Same(v, e) }); at >= 0 {
			other = slices.Delete(other, at, at+1)
			continue
		}
		out = append(out, e)
	}
	return out
}

// empty are values that an API server may leave out.
func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		return !slices.ContainsFunc(slices.Collect(maps.Values(v)), func(e any) bool { return !empty(e) })
	case []any:
		return len(v) == 0
	}
	return v == ""
}

// aggregated are the rules of a ClusterRole that a controller fills in.
func aggregated(path []string, obj map[string]any) bool {
	return len(path) == 1 && path[0] == "rules" && obj["aggregationRule"] != nil
}

// expires says that a controller takes the object away when it is done.
func expires(obj map[string]any) bool {
	return obj["kind"] == "Job" && effect.At[any](obj, "spec", "ttlSecondsAfterFinished") != nil
}

// once says that an object which is gone may have done its work.
func once(obj map[string]any) bool {
	policy := effect.At[string](obj, "spec", "restartPolicy")
	return obj["kind"] == "Job" || obj["kind"] == "Pod" && policy != "" && policy != "Always"
}

// flat are the objects of a manifest, those of lists too, without fields that are null.
func flat(list []map[string]any) (out []map[string]any) {
	for _, obj := range list {
		objects, _ := object.Objects(obj)
		for _, one := range objects {
			out = append(out, chart.Applied(object.WithoutNulls(one)))
		}
	}
	return out
}

func inNamespace(obj map[string]any, namespace string) map[string]any {
	meta, _ := obj["metadata"].(map[string]any)
	meta["namespace"] = namespace // the copy that flat has made
	return obj
}
