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
	ps := resultProblems(s.validator.Validate(v))
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
	return ps
}

// missing is what x-required-for-helm asks for and is not there.
func (s *Schema) missing(v map[string]any) []Problem {
	if s == nil {
		return nil
	}
	return s.helm.check(v, "")
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
