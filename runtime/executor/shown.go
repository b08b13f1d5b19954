package executor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/record"
	"github.com/starling-operator/starling/runtime/watch"
)

// shownOfQueue is how much of a queue people are shown.
const shownOfQueue = 100

// ShowQueues returns what waits in the lanes of all modules, and why, as people are shown it; since says when
// work was first seen to wait.
func ShowQueues(lines []engine.Line, now time.Time, since func(engine.Line, engine.Waiting) time.Time) []status.Queue {
	out := []status.Queue{}
	for _, l := range lines {
		q := status.Queue{Module: l.Module, Queue: cmp.Or(l.Queue, "main"), Length: len(l.Waiting)}
		for _, id := range l.Taken {
			q.Running = append(q.Running, status.Queued{Hook: id.Group, Key: id.Key}.Name())
		}
		for _, w := range l.Waiting[:min(shownOfQueue, len(l.Waiting))] {
			one := status.Queued{
				Hook: w.ID.Group, Key: w.ID.Key, Request: w.ID.Ask != 0, Failures: w.Failures, Reason: w.Why, Since: since(l, w),
			}
			if w.Next.After(now) {
				one.Next = &w.Next
			}
			q.Waiting = append(q.Waiting, one)
		}
		out = append(out, q)
	}
	return out
}

// Watched is what a watch keeps, and whether all that there is has come.
type Watched interface {
	Entries(id string) []watch.Entry
	Complete(id string) bool
}

// ShowSnapshots returns what the watches of a hook keep, without secrets: those that the module knows, and all that
// the hook has made of Secrets. watches are their ids by binding; nil is an error: the hook does not run.
func ShowSnapshots(h *generation.Hook, watches map[string]string, secrets []string, kept Watched) ([]status.Snapshot, error) {
	if watches == nil {
		return nil, fmt.Errorf("hook %s has no snapshots: its module runs no hooks now", h.ID)
	}
	entries, results := map[string][]watch.Entry{}, map[string][]starlark.Value{}
	for _, binding := range slices.Sorted(maps.Keys(watches)) {
		entries[binding] = kept.Entries(watches[binding])
		for _, e := range entries[binding] {
			results[binding] = append(results[binding], e.Result)
		}
	}
	shown := record.Shown(secrets, record.OfSecrets(h.Bindings), results)
	out := []status.Snapshot{}
	for _, b := range h.Bindings {
		if b.Watch == nil {
			continue
		}
		one := status.Snapshot{Hook: h.ID, Binding: b.Name, Kind: b.Watch.APIVersion + "/" + b.Watch.Kind, Objects: []status.SnapshotObject{}}
		one.Complete = kept.Complete(watches[b.Name])
		for i, e := range entries[b.Name] {
			one.Objects = append(one.Objects, status.SnapshotObject{Namespace: e.Namespace, Name: e.Name, Result: shown[b.Name][i]})
		}
		out = append(out, one)
	}
	return out, nil
}
