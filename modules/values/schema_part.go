package values

import (
	"slices"

	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// part returns what [Schema.Validate] has to look at, once passed was found to be in
// order: values without fields that are the same there, where the schema looks at each
// field for itself. Touched are the edits between the two; nil: they are not known.
func (s *Schema) part(v, passed map[string]any, touched []*edit) map[string]any {
	if s == nil || passed == nil {
		return v
	}
	out, _ := part(s.root, v, passed, touched).(map[string]any)
	return out
}

func part(s *structural.Structural, v, passed any, touched []*edit) any {
	now, isMap := v.(map[string]any)
	before, wasMap := passed.(map[string]any)
	if s == nil || !isMap || !wasMap || looksAtAll(s) || anySets(touched) {
		return v
	}
	edits := editsBetween(now, before, touched)
	if s.ValueValidation != nil {
		for _, k := range s.ValueValidation.Required {
			if _, differs := edits[k]; !differs {
				edits[k] = []*edit{}
			}
		}
	}
	out := map[string]any{}
	for k, below := range edits {
		if e, there := now[k]; there {
			out[k] = part(fieldOf(s, k), e, before[k], below)
		}
	}
	return out
}

// looksAtAll says that the schema has something to say about the fields of an object
// together.
func looksAtAll(s *structural.Structural) bool {
	if len(s.XValidations) > 0 || s.XEmbeddedResource {
		return true
	}
	v := s.ValueValidation
	return v != nil && (v.MinProperties != nil || v.MaxProperties != nil || len(v.Enum) > 0 || v.Not != nil ||
		len(v.AllOf)+len(v.AnyOf)+len(v.OneOf) > 0)
}

// anySets says that one of the edits sets or removes what is at its place.
func anySets(edits []*edit) bool {
	return slices.ContainsFunc(edits, func(e *edit) bool { return e != nil && e.kind != editInner })
}

// childEdits are the children of some edits, by key.
func childEdits(edits []*edit) map[string][]*edit {
	out := map[string][]*edit{}
	for _, e := range edits {
		if e != nil {
			for k, c := range e.children {
				out[k] = append(out[k], c)
			}
		}
	}
	return out
}
