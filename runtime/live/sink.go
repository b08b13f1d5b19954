package live

import (
	"slices"
	"time"

	"github.com/rs/zerolog"

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
	var entries []watch.Entry
	a, own := s.d.watching.Load(id)
	switch {
	case id == configWatch:
		s.d.configSeen.Store(true)
		s.d.user.read(s.d.config)
		return
	case id == keptWatch:
		s.d.keptSynced()
		return
	case id == leaseWatch:
		s.d.lookAtLease()
		return
	case id == objectsWatch:
		s.d.user.list(func() ([]watch.Entry, bool, bool) {
			return s.d.watches.Entries(id), served, !served || s.d.watches.Complete(id) // else it has begun anew
		})
		s.d.objects.Changed()
		return
	case drift.IsWatch(id):
		at := s.d.watches.Positions(id)
		if served {
			entries = s.d.watches.Entries(id)
		}
		s.d.drift.Synced(id, entries, at)
		return
	case own && a.(engine.StartWatch).Each:
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
	switch {
	case id == configWatch:
		s.d.user.read(s.d.config)
	case id == keptWatch:
		s.d.keptChanged(events)
	case id == leaseWatch:
		s.d.lookAtLease()
	case id == objectsWatch:
		s.d.user.change(events)
		s.d.objects.Changed()
	case drift.IsWatch(id):
		s.d.drift.Changed(id, events)
	default:
		in := executor.Changed(id, events)
		started, _ := s.d.watching.Load(id)
		a, _ := started.(engine.StartWatch)
		if slices.ContainsFunc(in.Events, func(ev builtins.Event) bool { return triggers(a, ev) }) {
			s.d.metrics.changed(engine.WatchHook(id), time.Now())
		}
		s.d.inbox.changed(in, a.Each)
	}
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
	log := func(level zerolog.Level, text string) {
		if err != nil {
			s.d.o.Log.WithLevel(level).Err(err).Msg(text)
		}
	}
	switch {
	case drift.IsWatch(id):
		log(zerolog.WarnLevel, "changes of others in objects of releases are not seen")
		s.d.drift.Failed(id, err)
	case id == keptWatch:
		log(zerolog.WarnLevel, "this starling stands by and does not see what is kept: it answers no reviews, or by what was kept before")
	case id == leaseWatch:
		log(zerolog.DebugLevel, "a lease that is free is not seen at once")
	case id == objectsWatch:
		if s.d.user.failed(err) {
			log(zerolog.WarnLevel, "Module objects cannot be read: what they said last stays in force")
		}
	case id != configWatch:
		if err != nil {
			s.d.metrics.watchFailed(engine.WatchHook(id))
		}
		s.d.inbox.put(executor.Failed(id, err, lacks))
	case err != nil:
		s.d.user.read(func() *engine.Config { return &engine.Config{State: engine.ConfigUnreadable, Reason: err.Error()} })
	case s.d.configSeen.Load(): // before the first sync an empty snapshot does not mean that there is no ConfigMap
		s.d.user.read(s.d.config)
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
	h.Usage = d.metrics.used(h.ID)
	for binding, id := range watches {
		h.Usage.Memory += d.watches.Bytes(id)
		if h.Snapshots == nil {
			h.Snapshots = map[string]int{}
		}
		h.Snapshots[binding] = d.watches.Size(id)
	}
}
