package values

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/starling-operator/starling/runtime/effect"
)

// Validate checks v: kinds, bounds, required fields, CEL rules. With old, the
// values before, rules that use oldSelf are checked too; nil skips them. Unknown
// fields pass, see [Schema.Unknown]. Problems are sorted by path and quote no
// values.
func (s *Schema) Validate(v, old map[string]any) []Problem {
	if s == nil {
		return nil
	}
	ps := resultProblems(s.validator.Validate(v))
	// Rules assume that the kinds are right, as the API server does.
	if s.rules != nil && len(ps) == 0 {
		var before any
		if old != nil {
			before = old
		}
		errs, _ := s.rules.Validate(context.Background(), nil, s.root, v, before, celconfig.RuntimeCELCostBudget)
		for _, e := range errs {
			ps = append(ps, ruleProblem(e))
		}
	}
	sortProblems(ps)
	return ps
}

// ValidateForHelm is [Schema.Validate], and x-required-for-helm.
func (s *Schema) ValidateForHelm(v map[string]any) []Problem {
	if s == nil {
		return nil
	}
	ps := s.Validate(v, nil)
	ps = append(ps, s.helm.check(v, "")...)
	sortProblems(ps)
	return ps
}

// Unknown reports the fields of v that the schema does not have, except below
// x-kubernetes-preserve-unknown-fields and additionalProperties.
func (s *Schema) Unknown(v map[string]any) []Problem {
	if s == nil {
		return nil
	}
	ps := unknown(v, s.root, "")
	sortProblems(ps)
	return ps
}

// UnknownOps is [Schema.Unknown] for what operations write or remove; File of a
// Problem is the place of the call.
func (s *Schema) UnknownOps(ops []effect.ValueOp) []Problem {
	if s == nil {
		return nil
	}
	var out []Problem
	for _, op := range ops {
		m, ok := nested(op.Path, op.Value).(map[string]any)
		if !ok {
			continue
		}
		ps := s.Unknown(m)
		for i := range ps {
			ps[i].File = op.Pos
		}
		out = append(out, ps...)
	}
	return out
}

func unknown(v any, s *structural.Structural, path string) []Problem {
	if s == nil {
		return nil
	}
	var out []Problem
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			out = append(out, unknown(e, s.Items, joinIndex(path, i))...)
		}
	case map[string]any:
		if s.Type != "object" && s.Type != "" {
			return nil // Validate says that it is no object
		}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			p := joinKey(path, k)
			if field, ok := s.Properties[k]; ok {
				out = append(out, unknown(v[k], &field, p)...)
				continue
			}
			switch {
			case s.AdditionalProperties != nil:
				out = append(out, unknown(v[k], s.AdditionalProperties.Structural, p)...)
			case s.XPreserveUnknownFields:
			case s.XEmbeddedResource && slices.Contains([]string{"apiVersion", "kind", "metadata"}, k):
			default:
				out = append(out, Problem{Path: p, Message: unknownMessage(k, s)})
			}
		}
	}
	return out
}

func unknownMessage(key string, s *structural.Structural) string {
	names := slices.Sorted(maps.Keys(s.Properties))
	if len(names) == 0 {
		return "unknown field; the schema has no fields here (add properties, additionalProperties or " +
			"x-kubernetes-preserve-unknown-fields: true to it)"
	}
	if hint := nearest(key, names); hint != "" {
		return "unknown field" + didYouMean(hint)
	}
	const few = 8
	if len(names) > few {
		return "unknown field; the schema does not have it"
	}
	return "unknown field; the schema has " + strings.Join(names, ", ")
}

// required is x-required-for-helm of a schema, as a tree.
type required struct {
	names  []string
	fields map[string]*required
	rest   *required
	items  *required
}

// requiredForHelm returns nil when nothing is required below.
func requiredForHelm(raw map[string]any) *required {
	r := &required{}
	l, _ := raw["x-required-for-helm"].([]any)
	r.names = texts(l)
	props, _ := raw["properties"].(map[string]any)
	for name, p := range props {
		m, _ := p.(map[string]any)
		if child := requiredForHelm(m); child != nil {
			if r.fields == nil {
				r.fields = map[string]*required{}
			}
			r.fields[name] = child
		}
	}
	if m, ok := raw["additionalProperties"].(map[string]any); ok {
		r.rest = requiredForHelm(m)
	}
	if m, ok := raw["items"].(map[string]any); ok {
		r.items = requiredForHelm(m)
	}
	if len(r.names) == 0 && r.fields == nil && r.rest == nil && r.items == nil {
		return nil
	}
	return r
}

func (r *required) check(v any, path string) []Problem {
	if r == nil {
		return nil
	}
	var out []Problem
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			out = append(out, r.items.check(e, joinIndex(path, i))...)
		}
	case map[string]any:
		for _, name := range r.names {
			if v[name] == nil {
				out = append(out, Problem{
					Path:    joinKey(path, name),
					Message: "is required before the chart can be rendered, and nobody has set it yet",
				})
			}
		}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			child, ok := r.fields[k]
			if !ok {
				child = r.rest
			}
			out = append(out, child.check(v[k], joinKey(path, k))...)
		}
	}
	return out
}

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
	if len(ps) == 0 && schema != nil {
		next := c.WithConfig(config)
		var before map[string]any
		if old != nil {
			before = c.WithConfig(old).configured()
		}
		ps = schema.Validate(next.configured(), before)
		next.blame(ps, "")
	}
	return c.named(ps)
}

// CheckHook checks ops, a candidate for the layer of hook: unknown fields are
// refused, and the values that it makes must pass the schema. Rules that compare
// see the values in force, when the hook has set some before.
func (c *Composer) CheckHook(hook string, ops []effect.ValueOp) []Problem {
	schema := c.section.Schema
	ps := schema.UnknownOps(ops)
	for i := range ps {
		ps[i].Layer = "hook " + hook
	}
	if len(ps) == 0 && schema != nil {
		var old map[string]any
		if slices.ContainsFunc(c.layers, func(l layer) bool { return l.hook == hook }) {
			old = c.Compose()
		}
		next := c.WithHook(hook, ops)
		ps = schema.Validate(next.Compose(), old)
		next.blame(ps, hook)
	}
	return c.named(ps)
}

// CheckHelm checks the values before they go to Helm: what hooks and users have
// not set yet, but templates need, is missing.
func (c *Composer) CheckHelm() []Problem {
	v := c.Compose()
	var ps []Problem
	if c.section.Schema != nil {
		ps = c.section.Schema.ValidateForHelm(v)
	} else {
		ps = c.section.ConfigSchema.ValidateForHelm(v)
	}
	c.blame(ps, "")
	return c.named(ps)
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

// blame finds the highest layer that gave the value of each problem; of hooks,
// the one called first is asked before others.
func (c *Composer) blame(ps []Problem, first string) {
	for i, p := range ps {
		if p.Layer != "" || p.Path == "" {
			continue
		}
		ps[i].Layer, ps[i].File = c.source(splitPath(p.Path), first)
	}
}

func (c *Composer) source(path []string, first string) (layer, file string) {
	var hook string
	for _, h := range c.section.Hooks {
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
