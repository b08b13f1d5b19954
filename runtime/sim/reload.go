package sim

import (
	"cmp"
	"context"
	"errors"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/generation"
)

// Reload puts another generation in force while the process goes on, as `starling run`
// does when its module tree has changed, and settles. The error says what of it is not in
// force, and why: that goes on as it was. Without a process it is [World.Use].
func (w *World) Reload(ctx context.Context, g *generation.Generation) error {
	if w.engine == nil {
		w.Use(g)
		return nil
	}
	w.refused = ""
	w.handle(engine.Reload{Generation: g})
	if err := w.Settle(ctx); err != nil {
		return err
	}
	if reason := cmp.Or(w.refused, w.o.Generation.HeldReason()); reason != "" {
		return errors.New(reason)
	}
	return nil
}

// adopt has all that follows go by a generation.
func (w *World) adopt(g *generation.Generation) {
	w.o.Generation = g
	w.executor.Use(g)
}

// gone takes away what a hook, or a whole module, has set in the metrics.
func (w *World) gone(a engine.Gone) {
	w.Metrics.Unpublish(a.Module, a.Hook, "")
}

// folders are those of the tree in force.
func (w *World) folders() []*tree.Module { return w.o.Generation.Folders() }
