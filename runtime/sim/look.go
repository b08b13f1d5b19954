package sim

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/modules/release"
	"github.com/starling-operator/starling/modules/release/owned"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/sim/store"
)

// These functions return what people see of the world.

// Generation is what the process runs, or the next one would.
func (w *World) Generation() *generation.Generation { return w.o.Generation }

// Use has the next process run another generation.
func (w *World) Use(g *generation.Generation) { w.o.Generation = g }

// Status is what `starling get` would show.
func (w *World) Status() status.Status {
	if w.engine == nil {
		return status.Status{}
	}
	return w.engine.Status()
}

// Problems are what is odd in the module tree and stops nothing.
func (w *World) Problems() []string {
	var out []string
	for _, p := range w.o.Generation.Problems {
		out = append(out, p.String())
	}
	return out
}

// Instance is the world's Starling: its namespace and name.
func (w *World) Instance() types.NamespacedName {
	return types.NamespacedName{Namespace: w.o.Namespace, Name: w.o.Name}
}

// Get returns an object, or nil.
func (w *World) Get(ref effect.Ref) (map[string]any, error) {
	t, _, err := w.target(ref, false)
	if err != nil {
		return nil, err
	}
	obj, err := w.store.Get(t)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return obj, err
}

// Merge puts the fields of obj over the object of its name, and changes nothing; of a
// kind that is not served there is no object.
func (w *World) Merge(obj map[string]any) (store.Merged, error) {
	t, k, err := w.target(effect.RefOf(obj), false)
	if err != nil {
		if gv, bad := schema.ParseGroupVersion(effect.RefOf(obj).APIVersion); bad == nil {
			return store.Merged{}, w.store.Unavailable(gv)
		}
		return store.Merged{}, err
	}
	if k.Namespaced {
		obj = withNamespace(obj, t.Namespace)
	}
	return w.store.Merge(t, obj)
}

// List returns the objects of a kind, by namespace and name; nil namespaces means all.
func (w *World) List(apiVersion, kind string, namespaces []string, labels, fields string) ([]map[string]any, error) {
	t, k, err := w.target(effect.Ref{APIVersion: apiVersion, Kind: kind}, false)
	if err != nil {
		return nil, err
	}
	if !k.Namespaced || namespaces == nil {
		namespaces = []string{""}
	}
	out := []map[string]any{}
	for _, ns := range namespaces {
		t.Namespace = ns
		list, err := w.store.List(t, store.ListOptions{Selection: store.Selection{Labels: labels, Fields: fields}})
		if err != nil {
			return nil, err
		}
		out = append(out, list.Items...)
	}
	return out, nil
}

// Values are those of a module as its hooks see them; nil without a process or such a
// module.
func (w *World) Values(module string) map[string]any {
	if w.engine == nil {
		return nil
	}
	return w.engine.Values(module)
}

// Modules are the names of all modules, sorted, and "global".
func (w *World) Modules() []string {
	return append(slices.Sorted(maps.Keys(w.o.Generation.Modules)), values.GlobalKey)
}

// Hooks are the ids of all hooks, sorted.
func (w *World) Hooks() []string {
	var out []string
	for _, h := range w.o.Generation.Hooks() {
		out = append(out, h.ID)
	}
	slices.Sort(out)
	return out
}

// ChangedSince names what was written after a version of the cluster.
func (w *World) ChangedSince(version string) string {
	var names []string
	for _, k := range w.store.Kinds() {
		list, err := w.store.List(store.Target{GVR: k.GVR(), Spared: true}, store.ListOptions{})
		if err != nil {
			continue
		}
		for _, obj := range list.Items {
			meta, _ := obj["metadata"].(map[string]any)
			if v, _ := meta["resourceVersion"].(string); len(v) > len(version) || len(v) == len(version) && v > version {
				if name := effect.RefOf(obj).String(); !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
	}
	if len(names) == 0 {
		return "something that is gone again, or deletes something"
	}
	return strings.Join(names, ", ")
}

// Release is what Helm knows of a release.
type Release struct {
	Name, Namespace string
	Revision        int
	// Status is Helm's: "deployed".
	Status string
	// Values are those that Starling gave to the chart.
	Values map[string]any
	// Manifest is what the chart has rendered to, hooks of Helm aside.
	Manifest string
	// Ran are the times in which hooks of the chart ran.
	Ran []owned.Span
}

// Installed are the releases that the instance has recorded; a world without a process
// knows none.
func (w *World) Installed(ctx context.Context) ([]release.Ref, error) {
	if w.releases == nil {
		return nil, nil
	}
	return w.releases.Installed(ctx)
}

// ReleasesAhead is [World.Ahead] for what [World.ReleaseOf] reads of some releases.
func (w *World) ReleasesAhead(refs []release.Ref) (done func()) {
	secrets, _ := w.store.KindOf(schema.GroupVersionKind{Version: "v1", Kind: "Secret"})
	var reads []store.Read
	for _, ref := range refs {
		reads = append(reads, store.Read{Kind: secrets, Namespace: ref.Namespace, Selection: store.Selection{Labels: release.RevisionsOf(ref)}})
	}
	return w.Ahead(reads)
}

// ObjectsAhead is [World.Ahead] for what [World.Merge] reads of some objects.
func (w *World) ObjectsAhead(objects []effect.Ref) (done func()) {
	var reads []store.Read
	for _, ref := range objects {
		if t, k, err := w.target(ref, false); err == nil {
			reads = append(reads, store.Read{Kind: k, Namespace: t.Namespace, Name: t.Name})
		}
	}
	return w.Ahead(reads)
}

// ReleaseOf returns a release; nil when it is not there.
func (w *World) ReleaseOf(ctx context.Context, ref release.Ref) (*Release, error) {
	if w.releases == nil {
		return nil, nil
	}
	found, err := w.releases.Last(ctx, ref.Namespace, ref.Name)
	if err != nil || found == nil {
		return nil, err
	}
	return &Release{
		Name: found.Name, Namespace: found.Namespace, Revision: found.Version, Status: string(found.Info.Status),
		Values: found.Config, Manifest: found.Manifest, Ran: release.HooksRan(found),
	}, nil
}

// ModuleRelease returns the release of a module of the tree; nil when it is not there.
func (w *World) ModuleRelease(ctx context.Context, module string) (*Release, error) {
	ref, ok := w.ModuleRef(module)
	if !ok {
		return nil, nil
	}
	return w.ReleaseOf(ctx, ref)
}

// ModuleRef names the release that a module of the tree wants; ok is false when it has
// no chart.
func (w *World) ModuleRef(module string) (ref release.Ref, ok bool) {
	m := w.o.Generation.Modules[module]
	if m == nil || m.Err != nil || m.Tree.Chart == nil {
		return release.Ref{}, false
	}
	return release.Ref{Module: module, Name: m.Decl.Release, Namespace: cmp.Or(m.Decl.Namespace, w.o.Namespace)}, true
}

// Drift is how changes of others in the release of a module are treated, as the user's ConfigMap or
// else the module has it, and what is left to them.
func (w *World) Drift(module string) (policy string, ignore []owned.Ignore) {
	m := w.o.Generation.Modules[module]
	if m == nil || m.Err != nil {
		return "", nil
	}
	said := map[string]string{}
	if data, err := w.UserConfig(); err == nil {
		for _, key := range values.PolicyKeys(m.Key) {
			if text, is := data[key]; is {
				said[key] = text
			}
		}
	}
	config, _ := values.ParseConfig(said, []values.KnownModule{{Name: module, Key: m.Key}})
	object := ""
	if w.config != nil {
		object = w.config.Objects[module].Drift
	}
	return cmp.Or(object, config.Policies[module].Drift, m.Decl.Drift), m.Decl.Ignore
}

// Release is what Helm knows of a module's release: revision, status, values and
// objects; nil without one.
func (w *World) Release(ctx context.Context, module string) (map[string]any, error) {
	found, err := w.ModuleRelease(ctx, module)
	if err != nil || found == nil {
		return nil, err
	}
	objects, err := found.Objects()
	if err != nil {
		return nil, err
	}
	list := []any{}
	for _, obj := range objects {
		list = append(list, obj)
	}
	return map[string]any{
		"name": found.Name, "namespace": found.Namespace, "revision": int64(found.Revision), "status": found.Status,
		"values": found.Values, "objects": list,
	}, nil
}

// Objects are those of the manifest, as Helm reads it: of a key that is there twice the
// last one counts.
func (r *Release) Objects() ([]map[string]any, error) {
	var out []map[string]any
	for _, doc := range object.Documents(r.Manifest) {
		data, err := yaml.YAMLToJSON([]byte(doc + "\n")) // a text at its end had one
		if err != nil {
			return nil, fmt.Errorf("the manifest of release %s: %w", r.Name, err)
		}
		var obj map[string]any
		if err := json.Unmarshal(data, &obj); err == nil && obj != nil {
			out = append(out, obj)
		}
	}
	return out, nil
}
