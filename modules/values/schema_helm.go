package values

import (
	"maps"
	"slices"
)

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
