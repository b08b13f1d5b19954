package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/engine"
)

// ask returns what f makes of the engine, between two inputs.
func ask[T any](ctx context.Context, d *Driver, f func(*engine.Engine) T) (out T, err error) {
	answer := make(chan T, 1) // nobody may be left to take it
	select {
	case d.asks <- func(e *engine.Engine) { answer <- f(e) }:
	case <-d.done:
		return out, errStopped
	case <-ctx.Done():
		return out, ctx.Err()
	}
	select {
	case out = <-answer:
		return out, nil
	case <-d.done:
		return out, errStopped
	case <-ctx.Done():
		return out, ctx.Err()
	}
}

// try is ask for an f that may fail.
func try[T any](ctx context.Context, d *Driver, f func(*engine.Engine) (T, error)) (T, error) {
	type answer struct {
		out T
		err error
	}
	got, err := ask(ctx, d, func(e *engine.Engine) answer {
		out, err := f(e)
		return answer{out, err}
	})
	return got.out, cmp.Or(err, got.err)
}

var errStopped = errors.New("this starling has stopped")

// Status returns what `starling get` shows.
func (d *Driver) Status(ctx context.Context) (status.Status, error) {
	type seen struct {
		status  status.Status
		watches []map[string]string
	}
	s, err := ask(ctx, d, func(e *engine.Engine) seen {
		s := seen{status: e.Status()}
		for _, h := range s.status.Hooks {
			s.watches = append(s.watches, e.Watches(h.Module, h.ID))
		}
		return s
	})
	out := s.status
	if err != nil {
		return out, err
	}
	out.ReloadFailed = d.reloadFailure.Load()
	if !out.Leader {
		is, _ := d.holder.now()
		out.Holder = hostOf(is.name)
	}
	out.Instance, out.Version = d.o.Namespace+"/"+d.o.Name, d.o.Version
	told, _ := d.user.known()
	for i := range out.Modules {
		m := &out.Modules[i]
		if !out.Leader {
			told[m.Name].Tell(d.user.own, m)
		} else if r := m.Release; r != nil && r.Revision == 0 { // this process has not looked at it
			r.Revision = told[m.Name].Revision(d.user.own, *r)
		}
		d.addFound(m)
		if slow := d.slots.problem(m.Name); slow != "" { // it ends by itself, and nobody looks at the Module objects then
			m.Problems = append(m.Problems, slow)
		}
	}
	gen := d.generation.Load()
	for i := range out.Hooks {
		h := &out.Hooks[i]
		d.addSizes(h, s.watches[i])
		d.answers.add(h, gen.Hook(h.ID))
		if h.State == status.HookWaiting && isAsked(gen.Hook(h.ID)) {
			h.Reason = d.o.Webhooks.Unreachable
		}
	}
	return out, nil
}

// addFound adds what the driver knows of a module. Whatever changes it has the Module objects looked at.
func (d *Driver) addFound(m *status.Module) {
	waiting, problems := d.outbox.state(m.Name)
	m.PendingMessages, m.Problems = waiting, slices.Concat(m.Problems, problems, d.releases.Left(m.Name))
	if taken := d.objects.Problem(m.Name); taken != "" {
		m.Problems = append(m.Problems, taken)
	}
}

// Replica returns what this process says of itself. It never waits for the engine.
func (d *Driver) Replica() status.Replica {
	is, _ := d.holder.now()
	r := status.Replica{Leader: is.role >= takesOver, Holder: hostOf(is.name), Version: d.o.Version, Since: d.since}
	r.Name = cmp.Or(os.Getenv(podName), hostOf(d.identity))
	r.Ready, r.Reason = d.Ready()
	r.ReloadFailed = d.reloadFailure.Load()
	if gen := d.generation.Load(); gen != nil {
		r.Generation = gen.Number
	}
	return r
}

// RunNow has the hooks of a module run, or the one of that id, and returns the ids of those that wait for their run
// now. A process that does not lead refuses.
func (d *Driver) RunNow(ctx context.Context, module, hook string) ([]string, error) {
	hooks, err := try(ctx, d, func(e *engine.Engine) ([]string, error) {
		in := engine.RunNow{Module: module, Hook: hook}
		hooks, err := e.Runnable(in)
		if err == nil {
			d.inbox.put(in)
		}
		return hooks, err
	})
	if errors.Is(err, engine.ErrStandsBy) {
		is, _ := d.holder.now()
		err = fmt.Errorf("%w: %s leads; ask that one", engine.ErrStandsBy, cmp.Or(hostOf(is.name), "another one"))
	}
	return hooks, err
}

// Explain returns what the values of a module, or of "global", are made of.
func (d *Driver) Explain(ctx context.Context, module string) (values.ExplainInput, error) {
	in, err := try(ctx, d, func(e *engine.Engine) (values.ExplainInput, error) { return e.Explain(module) })
	in.Process = d.process
	return in, err
}

// Parents returns what the controllers of a module have decided about one of their parents.
func (d *Driver) Parents(ctx context.Context, module, key string) ([]status.Parent, error) {
	return try(ctx, d, func(e *engine.Engine) ([]status.Parent, error) { return e.Parents(module, key) })
}
