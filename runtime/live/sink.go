package live

import (
	"slices"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/drift"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/executor"
	"github.com/starling-operator/starling/runtime/modules"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/watch"
)

// configWatch is the id of the watch on the user's ConfigMap.
const configWatch = "config"

// watchConfig watches the ConfigMap of the instance's name, and all Module objects: those that
// nobody has claimed may be for this instance.
func (d *Driver) watchConfig() {
	d.watches.Start(watch.Spec{
		ID: configWatch, APIVersion: "v1", Kind: "ConfigMap",
		Namespaces: []string{d.o.Namespace}, Names: []string{d.o.Name},
	})
	if d.o.ModuleObjects {
		d.watches.Start(watch.Spec{
			ID: objectsWatch, APIVersion: modules.APIVersion, Kind: modules.Kind, Filter: modules.Filter, FilterID: objectsWatch,
		})
	}
}

// sink turns what watches report into inputs. Its methods never block.
type sink struct{ d *Driver }

func (s sink) Synced(id string, served bool) {
	if id == configWatch {
		s.d.configSeen.Store(true)
		s.d.user.read(s.d.config)
		return
	}
	if id == keptWatch {
		s.d.keptSynced()
		return
	}
	if id == leaseWatch {
		s.d.lookAtLease()
		return
	}
	if id == objectsWatch {
		s.d.user.list(func() ([]watch.Entry, bool, bool) {
			return s.d.watches.Entries(id), served, !served || s.d.watches.Complete(id) // else it has begun anew
		})
		s.d.objects.Changed()
		return
	}
	var entries []watch.Entry
	if drift.IsWatch(id) {
		at := s.d.watches.Positions(id)
		if served {
			entries = s.d.watches.Entries(id)
		}
		s.d.drift.Synced(id, entries, at)
		return
	}
	if a, ok := s.d.watching.Load(id); ok && a.(engine.StartWatch).Each {
		entries = s.d.watches.Entries(id)
		// Of objects that are not in this list nothing is remembered. A watch that has been
		// stopped meanwhile, for what it holds, tells again once it is complete.
		if served && !s.d.watches.Complete(id) {
			return
		}
	}
	s.d.inbox.put(executor.Synced(id, served, entries))
}

func (s sink) Changed(id string, events []watch.Event) {
	if id == configWatch {
		s.d.user.read(s.d.config)
		return
	}
	if id == keptWatch {
		s.d.keptChanged(events)
		return
	}
	if id == leaseWatch {
		s.d.lookAtLease()
		return
	}
	if drift.IsWatch(id) {
		s.d.drift.Changed(id, events)
		return
	}
	if id == objectsWatch {
		s.d.user.change(events)
		s.d.objects.Changed()
		return
	}
	in := executor.Changed(id, events)
	started, _ := s.d.watching.Load(id)
	a, _ := started.(engine.StartWatch)
	if slices.ContainsFunc(in.Events, func(ev builtins.Event) bool { return triggers(a, ev) }) {
		s.d.metrics.changed(engine.WatchHook(id), time.Now())
	}
	s.d.inbox.changed(in, a.Each)
}

// triggers says whether a change brings about a run of the watch's hook.
func triggers(a engine.StartWatch, ev builtins.Event) bool {
	switch {
	case a.Watch == nil:
		return false
	case ev.Lacks:
		return false
	case ev.Same:
		return ev.Deleting && a.Hook.Cleans()
	case a.Each && ev.Type == "deleted":
		return a.Hook.Cleans() // else the object is forgotten
	}
	return a.Watch.Triggers(ev.Type)
}

func (s sink) Failed(id string, err error, lacks bool) {
	if drift.IsWatch(id) {
		if err != nil {
			s.d.o.Log.Warn().Err(err).Msg("changes of others in objects of releases are not seen")
		}
		s.d.drift.Failed(id, err)
		return
	}
	if id == keptWatch {
		if err != nil {
			s.d.o.Log.Warn().Err(err).Msg("this starling stands by and does not see what is kept: it answers no reviews, or by what was kept before")
		}
		return
	}
	if id == leaseWatch {
		if err != nil {
			s.d.o.Log.Debug().Err(err).Msg("a lease that is free is not seen at once")
		}
		return
	}
	if id == objectsWatch {
		if s.d.user.failed(err) && err != nil {
			s.d.o.Log.Warn().Err(err).Msg("Module objects cannot be read: what they said last stays in force")
		}
		return
	}
	reason := ""
	if err != nil {
		reason = err.Error()
		if id != configWatch {
			s.d.metrics.watchFailed(engine.WatchHook(id))
		}
	}
	switch {
	case id != configWatch:
		s.d.inbox.put(executor.Failed(id, err, lacks))
	case err == nil:
		// Before the first sync an empty snapshot does not mean that there
		// is no ConfigMap.
		if s.d.configSeen.Load() {
			s.d.user.read(s.d.config)
		}
	default:
		s.d.user.read(func() *engine.Config { return &engine.Config{State: engine.ConfigUnreadable, Reason: reason} })
	}
}

// config reads the ConfigMap out of its watch.
func (d *Driver) config() *engine.Config {
	if !d.watches.Complete(configWatch) {
		return nil // it has begun anew, and an empty snapshot does not mean that there is none
	}
	var configMap map[string]any
	for _, found := range d.watches.Snapshot(configWatch) {
		configMap = found.(*object.Object).Map() // the watch has no filter
	}
	in := executor.ConfigOf(configMap)
	return &in
}

// addSizes fills in how many objects each snapshot of a hook holds, by the ids of
// its watches, and what the hook has taken.
func (d *Driver) addSizes(h *status.Hook, watches map[string]string) {
	h.Usage = d.metrics.usage.get(h.Module, h.ID)
	for binding, id := range watches {
		h.Usage.Memory += d.watches.Bytes(id)
		if h.Snapshots == nil {
			h.Snapshots = map[string]int{}
		}
		h.Snapshots[binding] = d.watches.Size(id)
	}
}
