package live

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/record"
	"github.com/starling-operator/starling/runtime/watch"
)

// Snapshots returns what the watches of a hook keep, by its id, without secrets. Errors: there
// is no such hook, or its module is off.
func (d *Driver) Snapshots(ctx context.Context, id string) ([]status.Snapshot, error) {
	gen := d.generation.Load().Hook(id)
	if gen == nil {
		return nil, fmt.Errorf("there is no hook %q", id)
	}
	type seen struct {
		watches map[string]string
		secrets []string
	}
	s, err := ask(ctx, d, func(e *engine.Engine) seen {
		return seen{e.Watches(gen.Module, id), e.Secrets(gen.Module)}
	})
	if err != nil {
		return nil, err
	}
	if s.watches == nil {
		return nil, fmt.Errorf("hook %s has no snapshots: its module runs no hooks now", id)
	}
	entries, results := map[string][]watch.Entry{}, map[string][]starlark.Value{}
	for _, binding := range slices.Sorted(maps.Keys(s.watches)) {
		entries[binding] = d.watches.Entries(s.watches[binding])
		for _, e := range entries[binding] {
			results[binding] = append(results[binding], e.Result)
		}
	}
	shown := record.Shown(s.secrets, record.OfSecrets(gen.Bindings), results)
	out := []status.Snapshot{}
	for _, b := range gen.Bindings {
		if b.Watch == nil {
			continue
		}
		one := status.Snapshot{Hook: id, Binding: b.Name, Kind: b.Watch.APIVersion + "/" + b.Watch.Kind, Objects: []status.SnapshotObject{}}
		one.Complete = d.watches.Complete(s.watches[b.Name])
		for i, e := range entries[b.Name] {
			one.Objects = append(one.Objects, status.SnapshotObject{Namespace: e.Namespace, Name: e.Name, Result: shown[b.Name][i]})
		}
		out = append(out, one)
	}
	return out, nil
}
