package owned

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Taken says whether a field to which obj gives a value belongs to others and not to manager, but
// for the paths of ignore and replicas that are autoscaled. Somebody has changed the field and
// given its value back, or another tool had made the object: manager's own write of that same
// value took nothing over, and the digest of [Of] would not show the next change.
func Taken(fields []metav1.ManagedFieldsEntry, manager string, obj map[string]any, ignore []Path) (taken bool) {
	ignore = append(ignore[:len(ignore):len(ignore)], HandedOver(fields)...)
	ours, theirs := fieldpath.NewSet(), fieldpath.NewSet()
	for i := range fields {
		e := &fields[i]
		set := setOf(e)
		switch {
		case set == nil || e.Subresource == "status":
		case e.Manager == manager && e.Subresource == "":
			ours = ours.Union(set)
		default:
			theirs = theirs.Union(set.Leaves())
		}
	}
	theirs.Difference(ours).Iterate(func(at fieldpath.Path) {
		taken = taken || valueAt(obj, at) != nil && below(ours, at).Empty() && !slices.ContainsFunc(ignore, func(p Path) bool { return p.covers(at) })
	})
	return taken
}

// Lacks says whether live has no value for a field to which obj gives one, but for the paths of ignore: somebody
// has taken the field away just before manager's write of other fields, and owns nothing that would tell. Lists
// are not looked into, and the status is the API server's.
func Lacks(live, obj map[string]any, ignore []Path) bool { return lacks(live, obj, nil, ignore) }

func lacks(live, obj map[string]any, at fieldpath.Path, ignore []Path) bool {
	for name, v := range obj {
		here := append(at[:len(at):len(at)], fieldpath.PathElement{FieldName: &name})
		if len(at) == 0 && name == "status" || slices.ContainsFunc(ignore, func(p Path) bool { return p.covers(here) }) {
			continue
		}
		switch v := v.(type) {
		case map[string]any:
			inner, _ := live[name].(map[string]any)
			if lacks(inner, v, here, ignore) {
				return true
			}
		case nil, []any:
		default:
			if live[name] == nil {
				return true
			}
		}
	}
	return false
}

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

// isElement says whether a step selects an element of a list. A key that the element does not
// give has a default.
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
