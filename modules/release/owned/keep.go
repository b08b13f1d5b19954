package owned

import (
	"k8s.io/apimachinery/pkg/runtime"
)

// absent stands for a value that is not there.
type absent struct{}

// Keep gives an object, which is changed, what live has at the paths: a field that live does not
// have is taken away, and one that the object does not have stays so. A comparison of the two
// then finds no difference there. live is nil for an object that is not there.
func Keep(obj, live map[string]any, paths []Path) {
	for _, p := range paths {
		keep(obj, live, p)
	}
}

func keep(obj, live any, p Path) any {
	if len(p) == 0 {
		if _, none := live.(absent); none {
			return live
		}
		return runtime.DeepCopyJSONValue(live)
	}
	switch obj := obj.(type) {
	case map[string]any:
		keepKeys(obj, live, p)
	case []any:
		return keepElements(obj, live, p)
	}
	return obj
}

func keepKeys(obj map[string]any, live any, p Path) {
	there, _ := live.(map[string]any)
	for key, v := range obj {
		if !p[0].Any && p[0].Field != key {
			continue
		}
		other, ok := there[key]
		if !ok {
			other = absent{}
		}
		obj[key] = keep(v, other, p[1:])
		if _, gone := obj[key].(absent); gone {
			delete(obj, key)
		}
	}
}

func keepElements(list []any, live any, p Path) []any {
	there, _ := live.([]any)
	out := make([]any, 0, len(list))
	for i, e := range list {
		if p[0].selects(e) {
			e = keep(e, partner(there, e, i, p[0].Key), p[1:])
		}
		if _, gone := e.(absent); !gone {
			out = append(out, e)
		}
	}
	return out
}

// selects says whether the step goes to an element of a list.
func (s Step) selects(e any) bool {
	m, _ := e.(map[string]any)
	v, ok := m[s.Key]
	return s.Any || s.Key != "" && ok && textOf(v) == s.Value
}

// partner is the element of another list that stands for e: the one of the same name, or else of
// the same place.
func partner(list []any, e any, i int, key string) any {
	if key == "" {
		key = "name"
	}
	if m, is := e.(map[string]any); is && m[key] != nil {
		for _, other := range list {
			if o, is := other.(map[string]any); is && textOf(o[key]) == textOf(m[key]) {
				return other
			}
		}
		return absent{}
	}
	if i < len(list) {
		return list[i]
	}
	return absent{}
}
