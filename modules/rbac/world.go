package rbac

import (
	"context"
	"slices"
	"time"

	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/sim"
)

// worldTime bounds what hooks may take to find values.
const worldTime = 30 * time.Second

// found are the values of the modules as their hooks find them in an empty cluster, with
// which charts may render to more than without. What hooks do not find there, or cannot do
// in time, is missing.
func (b *builder) found() map[string]map[string]any {
	hooks := slices.ContainsFunc(b.gen.All(), func(m *generation.Module) bool { return len(m.Hooks) > 0 })
	charts := slices.ContainsFunc(b.gen.All(), func(m *generation.Module) bool { return m.Tree.Chart != nil })
	if !hooks || !charts {
		return nil
	}
	ctx, cancel := context.WithTimeout(b.ctx, worldTime)
	defer cancel()
	w, err := sim.New(sim.Options{Generation: b.gen, Builtins: b.kinds.builtins, Namespace: b.o.Namespace, Name: b.o.Name, Renderer: b.o.Renderer})
	if err != nil {
		return nil
	}
	if w.Configure(b.o.Config) != nil || w.SwitchOn(b.gen.Names...) != nil || w.Begin(ctx) != nil {
		return nil
	}
	_ = w.Settle(ctx) // what was found before it ended counts
	out := map[string]map[string]any{}
	for _, name := range b.gen.Names {
		out[name] = w.Values(name)
	}
	return out
}
