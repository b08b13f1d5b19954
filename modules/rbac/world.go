package rbac

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/sim"
)

// worldTime bounds what hooks may take to find values.
const worldTime = 30 * time.Second

// world is the cluster in which hooks look.
func (b *builder) world() (*sim.World, error) {
	o := sim.Options{Generation: b.gen, Builtins: b.kinds.builtins, Namespace: b.o.Namespace, Name: b.o.Name, Renderer: b.o.Renderer}
	if b.o.Over != nil {
		b.o.Over(&o)
	}
	return sim.New(o)
}

// found are the values of the modules as their hooks find them, with which charts may
// render to more than without: in an empty cluster, among the given objects, or in a real
// one; and what charts see of that cluster. Values are missing when hooks cannot find their source, or not in time. An error
// says that there is no such cluster.
func (b *builder) found() (map[string]map[string]any, *helm.Capabilities, error) {
	w, err := b.world()
	if err != nil {
		return nil, nil, err
	}
	for _, obj := range b.o.Objects {
		if err := w.Apply(obj); err != nil {
			return nil, nil, err
		}
		if text, err := json.Marshal(obj); err == nil && obj["kind"] == "CustomResourceDefinition" {
			b.kinds.addCRDs(text, true)
		}
	}
	caps, err := w.Capabilities()
	if err != nil {
		return nil, nil, err
	}
	hooks := slices.ContainsFunc(b.gen.All(), func(m *generation.Module) bool { return len(m.Hooks) > 0 })
	charts := slices.ContainsFunc(b.gen.All(), func(m *generation.Module) bool { return m.Tree.Chart != nil })
	if !hooks || !charts {
		return nil, caps, nil
	}
	ctx, cancel := context.WithTimeout(b.ctx, worldTime)
	defer cancel()
	if b.o.Config != nil {
		err = w.Configure(b.o.Config) // else the config is that of the cluster
	}
	if err == nil {
		err = w.SwitchOn(b.gen.Names...)
	}
	if err == nil {
		err = w.Start(ctx)
	}
	if err != nil && b.ctx.Err() == nil {
		b.lack("hooks did not come to an end, so what they find may be missing: %s", err)
	}
	out := map[string]map[string]any{}
	for _, name := range b.gen.Names {
		out[name] = w.Values(name)
	}
	return out, caps, b.ctx.Err()
}
