package dev

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/sim"
)

// errNoWorld is the answer before the first round has ended.
var errNoWorld = errors.New("the first round of starling dev has not ended; ask again in a moment")

// firstRound is how long a question waits for the first round at most; who asks has a longer patience.
const firstRound = 8 * time.Second

// ask asks the cluster between two changes of it. Before the first round has ended there is none: it waits.
func ask[T any](ctx context.Context, l *Loop, f func(*sim.World) (T, error)) (out T, err error) {
	select {
	case <-l.first:
	case <-ctx.Done():
		return out, errNoWorld
	case <-time.After(l.patience):
		return out, errNoWorld
	}
	if err := l.take(ctx); err != nil {
		return out, err
	}
	defer l.give()
	if l.world == nil {
		return out, fmt.Errorf("starling dev has no simulated cluster yet: %s", l.refused.Load().Reason)
	}
	return f(l.world)
}

// take waits until nobody else works on the cluster.
func (l *Loop) take(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *Loop) give() { <-l.turn }

// Status returns what `starling get` shows. Times at which something is tried again are left out: the clock stands
// still until then.
func (l *Loop) Status(ctx context.Context) (status.Status, error) {
	return ask(ctx, l, func(w *sim.World) (status.Status, error) {
		out, err := w.Shown()
		if err != nil {
			return out, err
		}
		out.Instance, out.Version, out.Simulated = l.o.Namespace+"/"+l.o.Name, l.o.Version, true
		out.ReloadFailed = l.refused.Load()
		for i := range out.Modules {
			out.Modules[i].NextTry, out.Modules[i].Since = nil, time.Time{} // the simulated clock stands still
		}
		for i := range out.Hooks {
			h := &out.Hooks[i]
			h.NextTry, h.NextRun = nil, nil
			if at, is := l.ran[h.ID]; is && h.LastRun != nil {
				h.LastRun = &at
			}
		}
		return out, nil
	})
}

// InForce is the number of the tree that the cluster has, and why that is not the last one; 0: there is no cluster yet.
// It never waits.
func (l *Loop) InForce() (generation int, refused *status.ReloadFailure) {
	if generation = int(l.inForce.Load()); generation > 0 {
		refused = l.refused.Load()
	}
	return generation, refused
}

// noteRuns notes which hooks have run since the last call.
func (l *Loop) noteRuns() {
	l.settled = time.Now()
	for _, run := range l.world.Runs {
		l.ran[run.Hook] = l.settled
	}
	// Nobody asks for what has happened on the way.
	l.world.Runs, l.world.Sent = nil, nil
	maps.DeleteFunc(l.ran, func(hook string, _ time.Time) bool { return l.world.Generation().Hook(hook) == nil })
}

// Queues returns what waits, and why.
func (l *Loop) Queues(ctx context.Context) ([]status.Queue, error) {
	return ask(ctx, l, func(w *sim.World) ([]status.Queue, error) {
		out, err := w.Queues(l.settled)
		for _, q := range out {
			for i := range q.Waiting {
				q.Waiting[i].Next = nil
			}
		}
		return out, err
	})
}

// Explain returns what the values of a module, or of "global", are made of.
func (l *Loop) Explain(ctx context.Context, module string) (values.ExplainInput, error) {
	return ask(ctx, l, func(w *sim.World) (values.ExplainInput, error) { return w.Explain(module) })
}

// Parents returns what the controllers of a module have decided about one of their parents.
func (l *Loop) Parents(ctx context.Context, module, key string) ([]status.Parent, error) {
	return ask(ctx, l, func(w *sim.World) ([]status.Parent, error) {
		out, err := w.Parents(module, key)
		for i := range out {
			out[i].Next = nil
		}
		return out, err
	})
}

// Snapshots returns what the watches of a hook keep, without secrets.
func (l *Loop) Snapshots(ctx context.Context, hook string) ([]status.Snapshot, error) {
	return ask(ctx, l, func(w *sim.World) ([]status.Snapshot, error) { return w.Snapshots(hook) })
}

// RunNow has the hooks of a module run, or the one of that id, and returns the ids of those that were asked. The clock
// of the cluster moves to the time of the machine before, so what waits to be tried again, or for a schedule, runs too.
func (l *Loop) RunNow(ctx context.Context, module, hook string) ([]string, error) {
	return ask(ctx, l, func(w *sim.World) ([]string, error) {
		// Nobody is left with half a run when who has asked goes away.
		hooks, err := w.RunNow(context.WithoutCancel(ctx), module, hook, time.Now())
		l.noteRuns()
		return hooks, err
	})
}

// Refuse notes why the tree as it is now is not at work.
func (l *Loop) Refuse(why error) {
	l.turn <- struct{}{}
	defer l.give()
	l.refuse(why)
}

func (l *Loop) refuse(why error) {
	l.refused.Store(&status.ReloadFailure{Reason: message.Line(why.Error()), Since: time.Now()})
	l.answers()
}

// answers has those go on that wait for the first round.
func (l *Loop) answers() { l.began.Do(func() { close(l.first) }) }

// brokenModules says which modules do not load, and why; nil: all do.
func brokenModules(g *generation.Generation) error {
	var reasons []string
	for _, m := range g.All() {
		if m.Err != nil {
			reasons = append(reasons, "module "+m.Name+": "+message.Line(m.Err.Error()))
		}
	}
	if reasons == nil {
		return nil
	}
	return errors.New(strings.Join(reasons, "; "))
}
