package executor

import (
	"cmp"
	"context"

	"go.starlark.net/starlark"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/hook"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/watch"
)

// WatchSpec is a watch as the engine asks for it. Its filter ends with ctx.
func (x *Executor) WatchSpec(ctx context.Context, a engine.StartWatch) watch.Spec {
	spec := watchSpec(a.ID, a.Watch)
	spec.Finalizer, spec.Each = a.Finalizer, a.Each
	ofChildren := a.Hook.Controller != nil && !a.Each && a.Watch.Read == "" && !a.Watch.HoldsFields
	if ofChildren {
		spec.Labels = x.ofChildren(a)
	}
	spec.Omit = func(obj map[string]any) bool {
		return x.o.Instance.OwnsObject(a.Watch.APIVersion, a.Watch.Kind, obj)
	}
	spec.Apart, spec.Module = a.Watch.Filter != nil || a.Watch.WakesByCode(), a.Hook.Module // programs
	ctx, log := x.metered(ctx, a.Hook.Module), x.o.Log(a.Hook.Module, a.Hook.ID)
	spec.Filter = hook.Filter(ctx, x.host, a.Watch, log)
	if ofChildren {
		spec.Filter, spec.FilterID = keepChildren(a)
		spec.Asked = isUID
	}
	spec.Wakes, spec.WakesID = hook.Wakes(ctx, x.host, a.Hook, a.Watch, log)
	// Not by its id, which is another one after a restart.
	of := " of " + engine.WatchHook(a.ID) + "#" + engine.WatchBinding(a.ID)
	if filter := spec.Filter; a.Watch.Filter != nil {
		spec.Filter = func(obj map[string]any) (kept starlark.Value, keep bool, err error) {
			err = x.marked("the filter"+of, a.Hook.Digest, func() (err error) { kept, keep, err = filter(obj); return err })
			return kept, keep, err
		}
	}
	if wakes := spec.Wakes; a.Watch.WakesByCode() {
		spec.Wakes = func(obj map[string]any) (whom *effect.Wakes, err error) {
			err = x.marked("wakes"+of, a.Hook.Digest, func() (err error) { whom, err = wakes(obj); return err })
			return whom, err
		}
	}
	return spec
}

// watchSpec is a watch as its binding says, all but its filter.
func watchSpec(id string, w *builtins.WatchBinding) watch.Spec {
	return watch.Spec{
		ID: id, APIVersion: w.APIVersion, Kind: w.Kind,
		Namespaces: w.Namespaces, ExcludeNamespaces: w.ExcludeNamespaces, NamespaceLabels: w.NamespaceLabels,
		Names: w.Names, Labels: w.Labels, Fields: w.Fields,
		FilterID: w.FilterID, KeepObject: w.KeepObject, Both: w.KeepBoth, Old: w.Old,
	}
}

// Synced is what the engine hears of a watch that holds all there is. Entries are that, for a watch
// with [engine.StartWatch].Each.
func Synced(id string, served bool, entries []watch.Entry) engine.WatchSynced {
	in := engine.WatchSynced{ID: id, Served: served}
	for _, e := range entries {
		uid := cmp.Or(object.UID(e.Object), object.UID(e.Result))
		in.Objects = append(in.Objects, engine.Object{Namespace: e.Namespace, Name: e.Name, UID: uid, Deleting: e.Marks.Deleting, Held: e.Marks.Held, Lacks: e.Lacks})
	}
	return in
}

// Failed is what the engine hears of a watch with trouble; a nil error says that it is over.
func Failed(id string, err error, lacks bool) engine.WatchFailed {
	in := engine.WatchFailed{ID: id, Lacks: lacks}
	if err != nil {
		in.Reason, in.Refused = err.Error(), apierrors.IsForbidden(err)
	}
	return in
}

// Changed is what the engine hears of changes of a watch: events of the hook that has asked for it.
func Changed(id string, events []watch.Event) engine.WatchChanged {
	in, binding := engine.WatchChanged{ID: id, Events: make([]builtins.Event, len(events))}, engine.WatchBinding(id)
	for i, ev := range events {
		if _, is := ev.Result.(*child); is {
			ev.Result = nil // a run is about the parent that it wakes
		}
		in.Events[i] = builtins.Event{
			Type: string(ev.Type), Binding: binding, Namespace: ev.Namespace, Name: ev.Name, Result: ev.Result, Object: ev.Object, Old: ev.Old, Wakes: ev.Wakes,
			Deleting: ev.Marks.Deleting, Held: ev.Marks.Held, Same: ev.Same, Lacks: ev.Lacks, Cause: ev.Cause,
		}
	}
	return in
}

// Again is a change of an object that has not changed.
func Again(id string, e watch.Entry) engine.WatchChanged {
	return Changed(id, []watch.Event{{Type: watch.Modified, Namespace: e.Namespace, Name: e.Name, Result: e.Result, Object: e.Object, Marks: e.Marks, Lacks: e.Lacks}})
}

// ConfigOf is what the engine hears of the user's ConfigMap; nil: there is none.
func ConfigOf(configMap map[string]any) engine.Config {
	if configMap == nil {
		return engine.Config{State: engine.ConfigMissing}
	}
	in := engine.Config{State: engine.ConfigPresent, Data: map[string]string{}}
	data, _ := configMap["data"].(map[string]any)
	for key, v := range data {
		if text, ok := v.(string); ok {
			in.Data[key] = text
		}
	}
	return in
}
