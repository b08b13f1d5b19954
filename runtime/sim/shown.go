package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/executor"
	"github.com/starling-operator/starling/runtime/watch"
)

// These functions answer the questions of the admin API, as those of the driver in a real cluster do. Each fails
// without a process.

// Shown is [World.Status], with the sizes of snapshots.
func (w *World) Shown() (status.Status, error) {
	if w.engine == nil {
		return status.Status{}, errNotStarted
	}
	out := w.engine.Status()
	for i := range out.Hooks {
		h := &out.Hooks[i]
		for binding, id := range w.engine.Watches(h.Module, h.ID) {
			if h.Snapshots == nil {
				h.Snapshots = map[string]int{}
			}
			h.Snapshots[binding] = len(followers{w}.Entries(id))
		}
	}
	return out, nil
}

// Queues returns what waits in the lanes of all modules, and why; since says since when.
func (w *World) Queues(since time.Time) ([]status.Queue, error) {
	if w.engine == nil {
		return nil, errNotStarted
	}
	return executor.ShowQueues(w.engine.Lines(), w.now, func(engine.Line, engine.Waiting) time.Time { return since }), nil
}

// Snapshots returns what the watches of a hook keep, by its id, without secrets.
func (w *World) Snapshots(id string) ([]status.Snapshot, error) {
	h := w.o.Generation.Hook(id)
	switch {
	case w.engine == nil:
		return nil, errNotStarted
	case h == nil:
		return nil, fmt.Errorf("there is no hook %q", id)
	}
	return executor.ShowSnapshots(h, w.engine.Watches(h.Module, id), w.engine.Secrets(h.Module), followers{w})
}

// RunNow has the hooks of a module run, or the one of that id, and settles; it returns the ids of those that were
// asked. The clock moves to that time before, as after a sleep: all that was due meanwhile is due once.
func (w *World) RunNow(ctx context.Context, module, hook string, at time.Time) ([]string, error) {
	if w.engine == nil {
		return nil, errNotStarted
	}
	if at.After(w.now) {
		w.now = at
	}
	in := engine.RunNow{Module: module, Hook: hook}
	hooks, err := w.engine.Runnable(in)
	if err != nil {
		return nil, err
	}
	w.handle(in)
	return hooks, w.Settle(ctx)
}

// Entries implements [executor.Watched].
func (f followers) Entries(id string) []watch.Entry {
	if of := f.w.watches[id]; of != nil {
		return of.local.Entries()
	}
	return nil
}

var _ executor.Watched = followers{}
