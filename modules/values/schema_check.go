package values

import (
	"context"
	"maps"
	"slices"
	"strings"

	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/message"
)

// Validate checks v: kinds, bounds, required fields, CEL rules. With old, the
// values before, rules that use oldSelf are checked too; nil skips them. Unknown
// fields pass, see [Schema.Unknown]. Problems are sorted by path and quote no
// values.
func (s *Schema) Validate(v, old map[string]any) []Problem {
	if s == nil {
		return nil
	}
	if v == nil {
		v = map[string]any{}
	}
	c := check{patterns: s.patterns}
	ps := c.validate(s.spec, v)
	if c.over() {
		return capped(ps)
	}
	for _, e := range listtype.ValidateListSetsAndMaps(nil, s.root, v) {
		ps = append(ps, listProblem(e))
	}
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
	return capped(ps)
}

// missing is what x-required-for-helm asks for and is not there.
func (s *Schema) missing(v map[string]any) []Problem {
	if s == nil {
		return nil
	}
	return capped(s.helm.check(v, ""))
}

// Unknown reports the fields of v that the schema does not have, except below
// x-kubernetes-preserve-unknown-fields and additionalProperties.
func (s *Schema) Unknown(v map[string]any) []Problem {
	if s == nil {
		return nil
	}
	var u unknowns
	u.look(v, s.root, "")
	sortProblems(u.found)
	return capped(u.found)
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
		if out = append(out, ps...); len(out) >= maxProblems {
			break
		}
	}
	return capped(out)
}

// unknowns are fields that a schema does not have.
type unknowns struct{ found []Problem }

func (u *unknowns) look(v any, s *structural.Structural, path string) {
	if s == nil {
		return
	}
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			u.look(e, s.Items, joinIndex(path, i))
		}
	case map[string]any:
		if s.Type != "object" && s.Type != "" {
			return // Validate says that it is no object
		}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if len(u.found) >= maxProblems {
				return
			}
			u.field(v[k], s, path, k)
		}
	}
}

func (u *unknowns) field(v any, s *structural.Structural, path, key string) {
	p := joinKey(path, key)
	if field, ok := s.Properties[key]; ok {
		u.look(v, &field, p)
		return
	}
	switch {
	case s.AdditionalProperties != nil:
		u.look(v, s.AdditionalProperties.Structural, p)
	case s.XPreserveUnknownFields:
	case s.XEmbeddedResource && slices.Contains([]string{"apiVersion", "kind", "metadata"}, key):
	default:
		u.found = append(u.found, Problem{Path: p, Message: unknownMessage(key, s)})
	}
}

func unknownMessage(key string, s *structural.Structural) string {
	names := slices.Sorted(maps.Keys(s.Properties))
	if len(names) == 0 {
		return "unknown field; the schema has no fields here (add properties, additionalProperties or " +
			"x-kubernetes-preserve-unknown-fields: true to it)"
	}
	if hint := message.Nearest(key, names); hint != "" {
		return "unknown field" + didYouMean(hint)
	}
	const few = 8
	if len(names) > few {
		return "unknown field; the schema does not have it"
	}
	return "unknown field; the schema has " + strings.Join(names, ", ")
}
