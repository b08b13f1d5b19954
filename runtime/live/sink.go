package live

import (
	"errors"
	"slices"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/watch"
)

// configWatch is the id of the watch on the user's ConfigMap.
const configWatch = "config"

// watchConfig watches the ConfigMap of the instance's name.
func (d *Driver) watchConfig() {
	d.watches.Start(watch.Spec{
		ID: configWatch, APIVersion: "v1", Kind: "ConfigMap",
		Namespaces: []string{d.o.Namespace}, Names: []string{d.o.Name},
	})
}

// sink turns what watches report into inputs. Its methods never block.
type sink struct{ d *Driver }

func (s sink) Synced(id string, served bool) {
	if id == configWatch {
		s.d.configSeen.Store(true)
		s.config()
		return
	}
	in := engine.WatchSynced{ID: id, Served: served}
	if a, ok := s.d.watching.Load(id); ok && a.(engine.StartWatch).Each {
		for _, e := range s.d.watches.Entries(id) {
			in.Objects = append(in.Objects, engine.Object{Namespace: e.Namespace, Name: e.Name, Deleting: e.Marks.Deleting, Held: e.Marks.Held, Lacks: e.Lacks})
		}
		// Of objects that are not in this list nothing is remembered. A watch that has been
		// stopped meanwhile, for what it holds, tells again once it is complete.
		if served && !s.d.watches.Complete(id) {
			return
		}
	}
	s.d.inbox.put(in)
}

func (s sink) Changed(id string, events []watch.Event) {
	if id == configWatch {
		s.config()
		return
	}
	out := make([]builtins.Event, len(events))
	binding := engine.WatchBinding(id)
	for i, ev := range events {
		out[i] = builtins.Event{Type: string(ev.Type), Binding: binding, Namespace: ev.Namespace, Name: ev.Name, Result: ev.Result, Object: ev.Object,
			Deleting: ev.Marks.Deleting, Held: ev.Marks.Held, Same: ev.Same, Lacks: ev.Lacks, Cause: ev.Cause}
	}
	started, _ := s.d.watching.Load(id)
	a, _ := started.(engine.StartWatch)
	if slices.ContainsFunc(out, func(ev builtins.Event) bool { return triggers(a, ev) }) {
		s.d.metrics.changed(engine.WatchHook(id), time.Now())
	}
	s.d.inbox.changed(engine.WatchChanged{ID: id, Events: out}, a.Each)
}

// triggers says whether a change brings about a run of the watch's hook.
func triggers(a engine.StartWatch, ev builtins.Event) bool {
	switch {
	case a.Watch == nil:
		return false
	case ev.Lacks:
		return false
	case ev.Same:
		return ev.Deleting && a.Hook.Cleanup != nil
	case a.Each && ev.Type == "deleted":
		return a.Hook.Cleanup != nil // else the object is forgotten
	}
	return a.Watch.Triggers(ev.Type)
}

func (s sink) Failed(id string, err error, lacks bool) {
	reason := ""
	if err != nil {
		reason = err.Error()
		if id != configWatch {
			s.d.metrics.watchFailed(engine.WatchHook(id))
		}
	}
	switch {
	case id != configWatch:
		s.d.inbox.put(engine.WatchFailed{ID: id, Reason: reason, Lacks: lacks})
	case err == nil:
		// Before the first sync an empty snapshot does not mean that there
		// is no ConfigMap.
		if s.d.configSeen.Load() {
			s.config()
		}
	default:
		s.d.inbox.put(engine.Config{State: engine.ConfigUnreadable, Reason: reason})
	}
}

// config reads the ConfigMap out of its watch.
func (s sink) config() {
	found := s.d.watches.Snapshot(configWatch)
	if len(found) == 0 {
		s.d.inbox.put(engine.Config{State: engine.ConfigMissing})
		return
	}
	data, err := configData(found[0])
	if err != nil {
		s.d.inbox.put(engine.Config{State: engine.ConfigUnreadable, Reason: err.Error()})
		return
	}
	s.d.inbox.put(engine.Config{State: engine.ConfigPresent, Data: data})
}

func configData(v starlark.Value) (map[string]string, error) {
	o, ok := v.(*object.Object)
	if !ok {
		return nil, errors.New("the ConfigMap has an unexpected form")
	}
	out := map[string]string{}
	data, _ := o.Map()["data"].(map[string]any)
	for key, v := range data {
		if text, ok := v.(string); ok {
			out[key] = text
		}
	}
	return out, nil
}

// addSizes fills in how many objects each snapshot of a hook holds, by the ids of
// its watches.
func (d *Driver) addSizes(h *status.Hook, watches map[string]string) {
	for binding, id := range watches {
		if h.Snapshots == nil {
			h.Snapshots = map[string]int{}
		}
		h.Snapshots[binding] = d.watches.Size(id)
	}
}
