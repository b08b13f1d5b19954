package sim

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.starlark.net/starlark"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/executor"
	"github.com/starling-operator/starling/runtime/modules"
	"github.com/starling-operator/starling/runtime/sim/store"
	"github.com/starling-operator/starling/runtime/watch"
)

// follower is one watch. It looks again whenever the cluster has changed.
type follower struct {
	spec    watch.Spec
	each    bool
	local   *watch.Local
	version string // of the cluster as it looked last
	synced  bool   // the engine was told
	served  bool
	failure string
	lacks   bool // objects, of the snapshot
}

func newFollower(spec watch.Spec, each bool) *follower {
	return &follower{spec: spec, each: each, local: watch.NewLocal(spec)}
}

// look tells the engine of what has changed; changed says that there was something.
func (w *World) look() (changed bool) {
	version := w.store.Version()
	if in := w.readConfig(version); in != nil {
		w.handle(*in)
		return true
	}
	for _, id := range w.watchIDs() {
		f := w.watches[id]
		if f == nil || f.version == version {
			continue // stopped by what the one before it has told, or as it was
		}
		f.version = version
		for _, in := range w.follow(f) {
			w.handle(in)
			changed = true
		}
	}
	return w.lookForKinds() || w.lookForDrift() || changed
}

// lookForKinds has the releases looked at again whose charts asked for kinds that have come or gone, or looked up what
// has changed.
func (w *World) lookForKinds() bool {
	var modules []string
	version := w.versionsOf(
		schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"})
	if version != w.answered[0] && w.releases.Asks() {
		w.client.Refresh()
		var all bool
		if modules, all = w.releases.Recheck(context.Background(), false); all { // else the next look asks again
			w.answered[0] = version
		}
	}
	if version = w.versionsOf(w.releases.LookedUp()...); version != w.answered[1] {
		w.answered[1] = version
		changed, _ := w.releases.Recheck(context.Background(), true)
		modules = append(modules, changed...)
	}
	for _, module := range modules {
		w.handle(engine.Reconcile{Module: module})
	}
	return len(modules) > 0
}

// versionsOf is something that differs when objects of these kinds have changed.
func (w *World) versionsOf(kinds ...schema.GroupVersionKind) (version string) {
	for _, k := range kinds {
		version += k.String() + " " + w.store.VersionOf(k) + "\n"
	}
	return version
}

// observe has the watches know whose write they find.
func (w *World) observe(ref effect.Ref, obj map[string]any, cause *effect.Cause, _ time.Time) {
	for _, f := range w.watches {
		f.local.Observe(ref, obj, cause)
	}
}

// known returns an object as a watch that keeps whole objects shows it, or nil.
func (w *World) known(ref effect.Ref) map[string]any {
	for _, id := range w.watchIDs() {
		if f := w.watches[id]; f.spec.APIVersion == ref.APIVersion && f.spec.Kind == ref.Kind {
			if obj := f.local.Whole(ref); obj != nil {
				return obj
			}
		}
	}
	return nil
}

// watchIDs are the ids of all watches, sorted.
func (w *World) watchIDs() []string { return slices.Sorted(maps.Keys(w.watches)) }

// follow returns what one watch has to tell.
func (w *World) follow(f *follower) (out []engine.Input) {
	id, at := f.spec.ID, ""
	if !f.synced {
		at = w.past[f.spec.Kind]
	}
	objects, err := w.list(f.spec, at)
	served := !errors.Is(err, cluster.ErrNotServed)
	if err != nil && served {
		return f.failed(err, f.lacks)
	}
	events := f.local.Replace(objects, w.now)
	failure, lacks := f.local.Failure()
	if lacks { // before a run begins that must not see the snapshot
		out = f.failed(failure, lacks)
	}
	switch {
	case lacks && !f.synced:
	case !f.synced || f.served != served:
		if f.synced && !served && len(events) > 0 {
			out = append(out, executor.Changed(id, events))
		}
		f.synced, f.served = true, served
		if at != "" {
			f.version = "" // the next look shows what is there
		}
		var entries []watch.Entry
		if f.each {
			entries = f.local.Entries()
		}
		out = append(out, executor.Synced(id, served, entries))
	case len(events) > 0:
		out = append(out, executor.Changed(id, events))
	}
	return append(out, f.failed(failure, lacks)...)
}

// failed tells of a failure that is new, or over.
func (f *follower) failed(err error, lacks bool) []engine.Input {
	in := executor.Failed(f.spec.ID, err, lacks)
	if in.Reason == f.failure && lacks == f.lacks {
		return nil
	}
	f.failure, f.lacks = in.Reason, lacks
	return []engine.Input{in}
}

// list returns what a watch is about, at a version of the cluster; "" means now.
func (w *World) list(spec watch.Spec, at string) ([]map[string]any, error) {
	return Selected(w.store, spec, at)
}

// Selected returns the objects of a store that a watch selects, at a version of it; "" means now. The error is
// [cluster.ErrNotServed] for a kind that is not served.
func Selected(s *store.Store, spec watch.Spec, at string) ([]map[string]any, error) {
	gv, err := schema.ParseGroupVersion(spec.APIVersion)
	if err != nil {
		return nil, err
	}
	k, served := s.KindOf(gv.WithKind(spec.Kind))
	if !served {
		return nil, cmp.Or(s.Unavailable(gv), cluster.ErrNotServed)
	}
	namespaces := []string{""}
	if k.Namespaced {
		if len(spec.Namespaces) > 0 && !slices.Contains(spec.Namespaces, "*") {
			namespaces = spec.Namespaces
		}
		if spec.NamespaceLabels != "" {
			if namespaces, err = labelled(s, spec.NamespaceLabels, namespaces); err != nil {
				return nil, err
			}
		}
	}
	// One by one, as a real watch asks: more need not be allowed, nor be read.
	selectors := []string{spec.Fields}
	if names := slices.Compact(slices.Sorted(slices.Values(spec.Names))); len(names) > 0 {
		selectors = nil
		for _, name := range names {
			selectors = append(selectors, strings.TrimPrefix(spec.Fields+",metadata.name="+name, ","))
		}
	}
	var out []map[string]any
	for _, ns := range namespaces {
		for _, fields := range selectors {
			list, err := s.List(store.Target{GVR: k.GVR(), Namespace: ns, Spared: true}, store.ListOptions{
				Selection: store.Selection{Labels: spec.Labels, Fields: fields}, Version: at, Match: matchOf(at),
			})
			if err != nil {
				return nil, err
			}
			out = append(out, list.Items...)
		}
	}
	return out, nil
}

// matchOf is how a list reads a version.
func matchOf(version string) metav1.ResourceVersionMatch {
	if version == "" {
		return ""
	}
	return metav1.ResourceVersionMatchExact
}

func nameOf(obj map[string]any) string {
	meta, _ := obj["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	return name
}

var (
	namespaceResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	configMapResource = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

// labelled returns the namespaces with these labels, of those that are given.
func labelled(s *store.Store, labels string, of []string) ([]string, error) {
	list, err := s.List(store.Target{GVR: namespaceResource, Spared: true}, store.ListOptions{Selection: store.Selection{Labels: labels}})
	if err != nil {
		return nil, err
	}
	var out []string
	for _, obj := range list.Items {
		if name := nameOf(obj); of[0] == "" || slices.Contains(of, name) {
			out = append(out, name)
		}
	}
	return out, nil
}

// readObjects returns the Module objects of the instance. A simulated cluster has them only if a
// test has applied their definition, or if it stands over a real one.
func (w *World) readObjects() (engine.ConfigState, map[string]engine.ConfigObject) {
	list, err := w.list(watch.Spec{APIVersion: modules.APIVersion, Kind: modules.Kind}, "")
	switch {
	case errors.Is(err, cluster.ErrNotServed):
		return "", nil
	case err != nil:
		return engine.ConfigUnreadable, nil
	}
	out := map[string]engine.ConfigObject{}
	w.objects = map[string]modules.Object{}
	for _, obj := range list {
		kept, _, _ := modules.Filter(obj)
		o := modules.Read(kept)
		w.objects[o.Name] = o
		if _, ours := o.Owner(effect.Instance{Namespace: w.o.Namespace, Name: w.o.Name}); ours {
			out[o.Name] = o.Config()
		}
	}
	return engine.ConfigPresent, out
}

// readConfig returns the user's ConfigMap, with the Module objects, when it is not as the engine was told.
func (w *World) readConfig(version string) *engine.Config {
	if version == w.configVersion {
		return nil
	}
	w.configVersion = version
	obj, err := w.store.Get(store.Target{GVR: configMapResource, Namespace: w.o.Namespace, Name: w.o.Name, Spared: true})
	var in engine.Config
	switch {
	case err == nil:
		in = executor.ConfigOf(obj)
	case apierrors.IsNotFound(err):
		in = executor.ConfigOf(nil)
	default:
		in = engine.Config{State: engine.ConfigUnreadable, Reason: err.Error()}
	}
	in.ObjectsState, in.Objects = w.readObjects()
	if w.config != nil && reflect.DeepEqual(*w.config, in) {
		return nil
	}
	w.config = &in
	return &in
}

// followers are the watches as runs see them.
type followers struct{ w *World }

func (f followers) Snapshot(id string) []starlark.Value {
	if one := f.w.watches[id]; one != nil {
		return one.local.Snapshot()
	}
	return nil
}

func (f followers) About(id, key string) []starlark.Value {
	if one := f.w.watches[id]; one != nil {
		return one.local.About(key)
	}
	return nil
}

func (f followers) Complete(id string) bool {
	one := f.w.watches[id]
	return one != nil && one.synced && one.served
}

func (f followers) Find(id, namespace, name string) (watch.Entry, bool, bool) {
	one := f.w.watches[id]
	if one == nil {
		return watch.Entry{}, false, false
	}
	e, there := one.local.Find(namespace, name)
	return e, there, one.synced
}

func (f followers) Lacking(id string) string {
	if one := f.w.watches[id]; one != nil {
		return one.local.Lacking()
	}
	return ""
}

// Kick is not needed: every watch looks again whenever something has changed.
func (f followers) Kick() { f.w.client.Refresh() }
