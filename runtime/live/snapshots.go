package live

import (
	"context"
	"fmt"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/executor"
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
	return executor.ShowSnapshots(gen, s.watches, s.secrets, d.watches)
}
