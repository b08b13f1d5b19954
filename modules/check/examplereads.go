package check

import (
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/executor"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/script"
	"github.com/starling-operator/starling/runtime/sim"
	"github.com/starling-operator/starling/runtime/sim/store"
	"github.com/starling-operator/starling/runtime/watch"
)

// finds returns what the controllers of a module find beside a parent and its children: all objects of examples/.
func (c *checker) finds(m *generation.Module, examples []example, kinds *store.Builtins) map[*generation.Hook]builtins.LookupsOptions {
	out := map[*generation.Hook]builtins.LookupsOptions{}
	var all *store.Store // another one than the children of an example come to: they may have the name of another
	for _, h := range m.Hooks {
		o := builtins.LookupsOptions{Bindings: h.Bindings}
		if len(examples) > 0 && reads(h) {
			if all == nil {
				all = c.server(kinds)
				for _, e := range examples {
					_, _ = create(all, e.Object, false) // its error is told where it is tried
				}
			}
			c.found(m, h, all, &o)
		}
		out[h] = o
	}
	return out
}

// found has a controller find the objects of a server.
func (c *checker) found(m *generation.Module, h *generation.Hook, s *store.Store, o *builtins.LookupsOptions) {
	host := func() *script.Host { return c.gen.Host }
	rows, err := executor.RowsOf(c.ctx, host, h, builtins.Silent{}, time.Unix(0, 0), func(_ string, spec watch.Spec) ([]map[string]any, error) {
		objects, err := sim.Selected(s, spec, "")
		if errors.Is(err, cluster.ErrNotServed) {
			return nil, nil
		}
		return objects, err
	})
	if err != nil {
		c.addError("examples", m.Name, err)
	}
	o.Rows = rows
	o.Namespaced = func(apiVersion, kind string) bool {
		k, known := s.KindOf(schema.FromAPIVersionAndKind(apiVersion, kind))
		return known && k.Namespaced
	}
}

// reads says whether a hook looks at other objects.
func reads(h *generation.Hook) bool {
	return slices.ContainsFunc(h.Bindings, func(b builtins.Binding) bool { return b.Watch != nil && b.Watch.Read != "" })
}
