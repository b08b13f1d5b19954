package owned

import (
	"k8s.io/apimachinery/pkg/runtime"
)

// Keep gives an object, which is changed, what live has at the paths: a field that live does not
// have is taken away, and one that the object does not have stays so. A comparison of the two
// then finds no difference there. live is nil for an object that is not there.
func Keep(obj, live map[string]any, paths []Path) { keepKeys(obj, live, paths) }

func keep(obj, live any, paths []Path) any {
	switch obj := obj.(type) {
	case map[string]any:
		there, _ := live.(map[string]any)
		keepKeys(obj, there, paths)
	case []any:
		return keepElements(obj, live, paths)
	}
	return obj
}

func keepKeys(obj, live map[string]any, paths []Path) {
	for key, v := range obj {
		there, has := live[key]
		switch rest, end := restsAt(paths, key); {
		case end && has:
			obj[key] = runtime.DeepCopyJSONValue(there)
		case end:
			delete(obj, key)
		case len(rest) > 0:
			obj[key] = keep(v, there, rest)
		}
	}
}

func keepElements(list []any, live any, paths []Path) []any {
	there, is := live.([]any)
	if !is { // nothing is there
		out := make([]any, 0, len(list))
		for _, e := range list {
			if rest, end := restsOf(paths, e); !end {
				out = append(out, keep(e, nil, rest))
			}
		}
		return out
	}
	return elements(list, list, there, paths, func(e, _, live any, rest []Path) any { return keep(e, live, rest) })
}

// selects says whether the step goes to an element of a list.
func (s Step) selects(e any) bool {
	m, _ := e.(map[string]any)
	v, ok := m[s.Key]
	return s.Any || s.Key != "" && ok && textOf(v) == s.Value
}
