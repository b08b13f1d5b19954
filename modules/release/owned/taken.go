package owned

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// valueAt is the value at a path of the API server; nil: there is none.
func valueAt(v any, path fieldpath.Path) any {
	for _, step := range path {
		switch list, _ := v.([]any); {
		case step.FieldName != nil:
			m, _ := v.(map[string]any)
			v = m[*step.FieldName]
		case step.Index != nil && *step.Index >= 0 && *step.Index < len(list):
			v = list[*step.Index]
		default:
			i := slices.IndexFunc(list, func(e any) bool { return isElement(step, e) })
			if i < 0 {
				return nil
			}
			v = list[i]
		}
	}
	return v
}

// isElement says whether a step selects an element of a list. A key that the element does not give has a default.
func isElement(step fieldpath.PathElement, e any) bool {
	if step.Value != nil {
		return textOf((*step.Value).Unstructured()) == textOf(e)
	}
	m, is := e.(map[string]any)
	return is && step.Key != nil && !slices.ContainsFunc(*step.Key, func(key value.Field) bool {
		v, given := m[key.Name]
		return given && textOf(v) != textOf(key.Value.Unstructured())
	})
}
