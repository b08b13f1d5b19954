package values

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// branchError is what is wrong with a value as a whole.
type branchError struct{ path, message string }

func (e *branchError) Error() string { return e.path + ": " + e.message }

// alone is a schema without those of other values, and without alternatives.
func alone(s *spec.Schema) *spec.Schema {
	if len(s.AllOf)+len(s.AnyOf)+len(s.OneOf)+len(s.PatternProperties)+len(s.Properties) == 0 && s.Not == nil &&
		s.AdditionalProperties == nil && s.Items == nil {
		return s
	}
	out := *s
	out.AllOf, out.AnyOf, out.OneOf, out.Not, out.Items = nil, nil, nil, nil, nil
	out.Properties, out.PatternProperties, out.AdditionalProperties = nil, nil, nil
	return &out
}

// alternatives adds what allOf, anyOf, oneOf and not say of v. Of alternatives that v does
// not match, the mistakes of the one that comes closest are added.
func (c *check) alternatives(s *spec.Schema, v any, path string, r *validate.Result) {
	fails := func(message string) { r.AddErrors(&branchError{path, message}) }
	// try validates v by one alternative, whose mistakes may be none of v.
	try := func(s *spec.Schema) *validate.Result {
		before := c.mistakes
		r := c.value(s, v, path)
		c.mistakes = before
		return r
	}
	// passing counts the alternatives that v matches, up to enough of them. Of none, the mistakes are those of the one
	// with the fewest for what was looked at.
	passing := func(of []spec.Schema, enough int, message string) {
		var closest *validate.Result
		passed := 0
		for i := range of {
			if part := try(&of[i]); part.IsValid() {
				if passed++; passed == enough {
					break
				}
			} else if closest == nil || part.MatchCount > closest.MatchCount {
				closest = part
			}
		}
		if passed != 1 {
			fails(message)
		}
		if passed == 0 {
			r.Merge(closest)
		}
	}
	if len(s.AnyOf) > 0 {
		passing(s.AnyOf, 1, "must match one of the alternatives in anyOf")
	}
	if len(s.OneOf) > 0 {
		passing(s.OneOf, 2, "must match exactly one of the alternatives in oneOf")
	}
	failed := false
	for i := range s.AllOf {
		part := try(&s.AllOf[i])
		failed = failed || !part.IsValid()
		r.Merge(part)
	}
	if failed {
		fails("must match all parts of allOf")
	}
	if s.Not != nil && try(s.Not).IsValid() {
		fails("must not match what stands under not")
	}
}

// fields adds what is wrong with the fields of a map: named by the schema, matched by a pattern, or neither.
func (c *check) fields(s *spec.Schema, v map[string]any, path string, r *validate.Result) {
	texts := slices.Sorted(maps.Keys(s.PatternProperties))
	for _, key := range slices.Sorted(maps.Keys(v)) {
		below := func(field spec.Schema) { r.Merge(c.value(&field, v[key], path+"."+key)) }
		field, known := s.Properties[key]
		if known {
			below(field)
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
		case !more.Allows && len(texts) > 0:
			r.AddErrors(&branchError{path + "." + key, "is no field of the schema"})
		case !more.Allows:
			r.AddErrors(&branchError{path, fmt.Sprintf("must not have the field %q", key)})
		}
	}
}
