package values

import (
	"fmt"
	"slices"

	"github.com/starling-operator/starling/runtime/effect"
)

// CheckConfig checks config, a candidate for the user's config of the section:
// unknown fields are refused, and the values that it makes with the layers below
// it must pass the config schema. old is the config that is in force, for rules
// that compare; nil when there is none.
func (c *Composer) CheckConfig(config, old map[string]any) []Problem {
	schema := c.section.ConfigSchema
	ps := schema.Unknown(config)
	for i := range ps {
		ps[i].Layer = "config"
	}
	if len(ps) > 0 {
		return c.named(ps)
	}
	next := c.WithConfig(config)
	v, over := next.configured()
	switch {
	case over:
		ps = tooManyDefaults("config")
	case schema != nil:
		var before map[string]any
		if old != nil {
			before, _ = c.WithConfig(old).configured()
		}
		ps = schema.Validate(v, before)
		next.blame(ps, "", false)
	}
	return c.named(ps)
}

// CheckTree is [Composer.CheckConfig] of what the tree has, before the composer is used. A field that is required and
// not there is no mistake of the tree: it is asked for, see [Composer.Unset].
func (c *Composer) CheckTree() []Problem {
	return slices.DeleteFunc(c.CheckConfig(nil, nil), func(p Problem) bool {
		if p.Message != MessageRequired {
			return false
		}
		c.section.asks = append(c.section.asks, p)
		return true
	})
}

// Unset are fields that the config schema requires, and that nobody has set.
func (c *Composer) Unset() []Problem {
	return slices.DeleteFunc(slices.Clone(c.section.asks), func(p Problem) bool {
		_, set := lookup(c.Compose(), splitPath(p.Path))
		return set
	})
}

// CheckHook checks ops, a candidate for the layer of hook: unknown fields are
// refused, and the values that it makes must pass the schema. Rules that compare
// see the values in force, when the hook has set some before. The same again, as after the
// objects of a run were written, costs little while it is the last one that was in order.
func (c *Composer) CheckHook(hook string, ops []effect.ValueOp) []Problem {
	ps := c.section.Schema.UnknownOps(ops)
	for i := range ps {
		ps[i].Layer = "hook " + hook
	}
	if last := c.checked.Load(); len(ps) == 0 && last != nil && last.layer.Hook == hook && Equal(last.layer.Ops, ops) {
		return nil
	}
	if schema := c.hookSchema(); len(ps) == 0 && schema != nil {
		var old map[string]any
		touched := make([]*edit, 0, 4)
		if i, found := c.find(hook); found {
			old = c.Compose()
			touched = append(touched, c.layers[i].upper, c.layers[i].defaults)
		}
		now := newLayer(HookLayer{Hook: hook, Ops: ops})
		touched = append(touched, now.upper, now.defaults)
		next := c.withLayer(now)
		v := next.Compose()
		if next.compute().room.used() {
			return c.named(tooManyDefaults("hook " + hook))
		}
		if !same(c.known(), c.Compose()) || !c.compute().plain() || !next.compute().plain() {
			touched = nil
		}
		ps = schema.Validate(schema.part(v, c.known(), touched), old)
		next.blame(ps, hook, true)
		if len(ps) == 0 {
			next.passed.Store(&v)
			c.checked.Store(&checked{now, next})
		}
	}
	return c.named(ps)
}

// CheckHelm checks the values before they go to Helm: what hooks and users have
// not set yet, but templates need, is missing.
func (c *Composer) CheckHelm() []Problem {
	v := c.Compose()
	if c.compute().room.used() {
		return c.named(tooManyDefaults(""))
	}
	schema := c.hookSchema()
	var ps []Problem
	if !same(c.known(), v) {
		if ps = schema.Validate(schema.part(v, c.known(), nil), nil); len(ps) == 0 {
			c.passed.Store(&v)
		}
	}
	if ps = append(ps, schema.missing(v)...); c.section.Schema != nil {
		ps = append(ps, c.Unset()...)
	}
	sortProblems(ps)
	c.blame(ps, "", true)
	return c.named(ps)
}

// hookSchema is the schema for what hooks set. Which fields there are beyond those of
// the config schema, nobody says when it is the only one.
func (c *Composer) hookSchema() *Schema {
	if c.section.Schema != nil {
		return c.section.Schema
	}
	return c.section.ConfigSchema
}

// known are values that hookSchema has nothing against, or nil.
func (c *Composer) known() map[string]any {
	if p := c.passed.Load(); p != nil {
		return *p
	}
	return nil
}

// tooManyDefaults is the problem of values that make more of the schema than it says.
func tooManyDefaults(layer string) []Problem {
	return []Problem{{Layer: layer, Message: fmt.Sprintf(
		"the schema's defaults would add more than %d values or %d MiB of text to these values; make lists shorter, or the defaults of their items smaller",
		maxDefaults, maxDefaultBytes>>20)}}
}

func (c *Composer) named(ps []Problem) []Problem {
	for i := range ps {
		ps[i].Module = c.section.Name
		if ps[i].Layer == "config" {
			ps[i].Key = c.section.Key
		}
	}
	return ps
}

// blame finds the highest layer that gave the value of each problem. Of hooks,
// which stand above all else, the one called first is asked before others.
func (c *Composer) blame(ps []Problem, first string, hooks bool) {
	for i, p := range ps {
		if p.Layer != "" || p.Path == "" {
			continue
		}
		ps[i].Layer, ps[i].File = c.source(splitPath(p.Path), first, hooks)
	}
}

func (c *Composer) source(path []string, first string, hooks bool) (layer, file string) {
	var hook string
	for _, h := range c.layers {
		if !hooks {
			break
		}
		for _, op := range h.Ops {
			if op.Op == effect.OpDefault || !overlaps(op, path) {
				continue
			}
			if hook == "" || h.Hook == first {
				hook, file = h.Hook, op.Pos
			}
		}
	}
	if hook != "" {
		return fmt.Sprintf("hook %s", hook), file
	}
	if _, ok := lookup(c.section.Config, path); ok {
		return "config", ""
	}
	for _, l := range slices.Backward(c.section.Static) {
		if _, ok := lookup(l.Data, path); ok {
			return l.Name, l.File
		}
	}
	return "", ""
}

// overlaps says that op gives or takes what is at path.
func overlaps(op effect.ValueOp, path []string) bool {
	n := len(op.Path)
	if n > len(path) || !slices.Equal(op.Path, path[:n]) {
		return false
	}
	if op.Op != effect.OpMerge {
		return true
	}
	_, ok := lookup(op.Value, path[n:])
	return ok
}
