package live

import (
	"context"
	"errors"
	"slices"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/engine"
)

// ask runs f on the engine's goroutine, between two inputs.
func (d *Driver) ask(ctx context.Context, f func(*engine.Engine)) error {
	finished := make(chan struct{})
	select {
	case d.asks <- func(e *engine.Engine) { defer close(finished); f(e) }:
		<-finished
		return nil
	case <-d.done:
		return errors.New("this starling has stopped")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Status returns what `starling get` shows.
func (d *Driver) Status(ctx context.Context) (status.Status, error) {
	var out status.Status
	var watches []map[string]string
	if err := d.ask(ctx, func(e *engine.Engine) {
		out = e.Status()
		for _, h := range out.Hooks {
			watches = append(watches, e.Watches(h.Module, h.ID))
		}
	}); err != nil {
		return out, err
	}
	out.ReloadFailed = d.reloads.get()
	out.Instance, out.Version = d.o.Namespace+"/"+d.o.Name, d.o.Version
	for i := range out.Modules {
		m := &out.Modules[i]
		waiting, problems := d.outbox.state(m.Name)
		m.PendingMessages, m.Problems = waiting, slices.Concat(m.Problems, problems)
	}
	for i := range out.Hooks {
		d.addSizes(&out.Hooks[i], watches[i])
	}
	return out, nil
}

// Explain returns what the values of a module, or of "global", are made of.
func (d *Driver) Explain(ctx context.Context, module string) (in values.ExplainInput, err error) {
	if failed := d.ask(ctx, func(e *engine.Engine) { in, err = e.Explain(module) }); failed != nil {
		return in, failed
	}
	in.Process = d.process
	return in, err
}

// Ready answers /readyz.
func (d *Driver) Ready(ctx context.Context) (ready bool, why string) {
	if err := d.ask(ctx, func(e *engine.Engine) { ready, why = e.Ready() }); err != nil {
		return false, err.Error()
	}
	return ready, why
}
