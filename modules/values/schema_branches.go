package values

import (
	"maps"
	"slices"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// Alternatives and patterns of keys. The validator has them, too; but it asks nobody for
// the validators below alternatives, and looks at a field of a pattern three times, which
// is 3^n times for patterns below patterns. So it gets schemas without them.

// branchError is what is wrong with a value as a whole.
type branchError struct{ path, message string }

func (e *branchError) Error() string { return e.path + ": " + e.message }

// alone is a schema without alternatives and patterns of keys.
func alone(s *spec.Schema) *spec.Schema {
	if len(s.AllOf)+len(s.AnyOf)+len(s.OneOf)+len(s.PatternProperties) == 0 && s.Not == nil {
		return s
	}
	out := *s
	out.AllOf, out.AnyOf, out.OneOf, out.Not = nil, nil, nil, nil
	if len(out.PatternProperties) > 0 { // else it takes their fields for additional ones
		out.PatternProperties, out.AdditionalProperties = nil, nil
	}
	return &out
}

// alternatives adds what allOf, anyOf, oneOf and not say of v. Of alternatives that v does
// not match, the mistakes of the one that comes closest are added.
func (n *checkedNode) alternatives(v any, r *validate.Result) {
	s := n.schema
	fails := func(message string) { r.AddErrors(&branchError{n.path, message}) }
	if len(s.AnyOf) > 0 {
		if passed, closest := n.passing(s.AnyOf, v, 1); passed == 0 {
			fails("must match one of the alternatives in anyOf")
			r.Merge(closest)
		}
	}
	if len(s.OneOf) > 0 {
		switch passed, closest := n.passing(s.OneOf, v, 2); passed {
		case 0:
			fails("must match exactly one of the alternatives in oneOf")
			r.Merge(closest)
		case 1:
		default:
			fails("must match exactly one of the alternatives in oneOf")
		}
	}
	failed := false
	for i := range s.AllOf {
		part := n.try(&s.AllOf[i], v)
		failed = failed || !part.IsValid()
		r.Merge(part)
	}
	if failed {
		fails("must match all parts of allOf")
	}
	if s.Not != nil && n.try(s.Not, v).IsValid() {
		fails("must not match what stands under not")
	}
}

// passing counts the alternatives that v matches, up to enough of them. Of none, closest is
// the result with the fewest mistakes for what was looked at.
func (n *checkedNode) passing(of []spec.Schema, v any, enough int) (passed int, closest *validate.Result) {
	for i := range of {
		r := n.try(&of[i], v)
		switch {
		case !r.IsValid():
			if closest == nil || r.MatchCount > closest.MatchCount {
				closest = r
			}
		default:
			if passed++; passed == enough {
				return passed, nil
			}
		}
	}
	return passed, closest
}

// try validates v by one alternative, whose mistakes may be none of v.
func (n *checkedNode) try(s *spec.Schema, v any) *validate.Result {
	before := n.check.mistakes
	r := n.check.node(s, n.path, n.formats).Validate(v)
	n.check.mistakes = before
	return r
}

// patterns adds what patternProperties say of the fields of v, and what
// additionalProperties beside them says of all others.
func (n *checkedNode) patterns(v any, r *validate.Result) {
	s, c := n.schema, n.check
	m, isMap := v.(map[string]any)
	if !isMap || len(s.PatternProperties) == 0 {
		return
	}
	texts := slices.Sorted(maps.Keys(s.PatternProperties))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		_, known := s.Properties[key]
		below := func(field spec.Schema) {
			r.Merge(c.node(&field, n.path+"."+key, n.formats).Validate(m[key]))
		}
		for _, text := range texts {
			pattern := c.patterns[text]
			if c.work += pattern.work(key); c.over() {
				return
			}
			if pattern.MatchString(key) {
				known = true
				below(s.PatternProperties[text])
			}
		}
		switch more := s.AdditionalProperties; {
		case known || more == nil:
		case more.Schema != nil:
			below(*more.Schema)
		case !more.Allows:
			r.AddErrors(&branchError{n.path + "." + key, "is no field of the schema"})
		}
	}
}
