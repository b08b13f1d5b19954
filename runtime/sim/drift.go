package sim

import (
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/modules/release"
	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/drift"
	"github.com/starling-operator/starling/runtime/watch"
)

// openDrift has the objects of releases followed, as those of hooks are.
func (w *World) openDrift(instance string) {
	w.drifting, w.drifted = map[string]*follower{}, nil
	o := drift.Options{
		Instance: instance, Manager: release.FieldManager,
		Start:   func(spec watch.Spec) { w.drifting[spec.ID] = newFollower(spec, false) },
		Stop:    func(id string) { delete(w.drifting, id) },
		Changed: func(module string) { w.drifted = append(w.drifted, module) },
	}
	if w.o.Origin != nil { // a plan: it finds drift by values, and shows it
		o.Start, o.Changed = func(watch.Spec) {}, func(string) {}
	}
	w.drift = drift.New(o)
}

// lookForDrift tells the engine of objects of releases that somebody has changed; changed says that
// there was something.
func (w *World) lookForDrift() (changed bool) {
	for _, id := range slices.Sorted(maps.Keys(w.drifting)) {
		f := w.drifting[id]
		if f == nil {
			continue // stopped by what the one before it has told
		}
		version := "of " + w.store.VersionOf(schema.FromAPIVersionAndKind(f.spec.APIVersion, f.spec.Kind))
		if f.version != version {
			f.version = version
			w.followDrift(f)
		}
	}
	for len(w.drifted) > 0 {
		module := w.drifted[0]
		w.drifted = w.drifted[1:]
		w.handle(w.drift.Drift(module))
		changed = true
	}
	return changed
}

func (w *World) followDrift(f *follower) {
	id := f.spec.ID
	objects, err := w.list(f.spec, "")
	served := !errors.Is(err, cluster.ErrNotServed)
	if err != nil && served {
		w.drift.Failed(id, err)
		return
	}
	events := f.local.Replace(objects, w.now)
	switch {
	case !f.synced || f.served != served:
		f.synced, f.served = true, served
		w.drift.Synced(id, f.local.Entries(), nil)
	case len(events) > 0:
		w.drift.Changed(id, events)
	}
}
