package object

import (
	"reflect"
	"slices"
)

// Same says whether two values of plain data, or objects decoded from JSON, are the same:
// 1 and 1.0 are, as JSON does not tell them apart.
func Same(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for key, v := range a {
			other, ok := b[key]
			if !ok || !Same(v, other) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, Same)
	case int64:
		f, ok := b.(float64)
		return a == b || ok && f == float64(a) && int64(f) == a
	case float64:
		n, ok := b.(int64)
		return a == b || ok && Same(n, a)
	}
	return reflect.DeepEqual(a, b)
}
