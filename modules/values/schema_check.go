package values

import (
	"context"

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
	return capped(s.known.missing(v, ""))
}

// Unknown reports the fields of v that the schema does not have, except below
// x-kubernetes-preserve-unknown-fields and additionalProperties. A field that one of
// several alternatives (oneOf and the like) has is known.
func (s *Schema) Unknown(v map[string]any) []Problem {
	if s == nil {
		return nil
	}
	u := unknowns{work: maxWork}
	u.look(v, "", s.known)
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
