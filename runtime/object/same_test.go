package object

import "testing"

func TestSame(t *testing.T) {
	m := func(v any) any { return map[string]any{"a": []any{v, "x"}} }
	for _, test := range []struct {
		a, b any
		want bool
	}{
		{m(int64(1)), m(int64(1)), true},
		{m(int64(1)), m(1.0), true},
		{m(1.0), m(int64(1)), true},
		{m(1.5), m(int64(1)), false},
		{m(int64(1)), m("1"), false},
		{int64(1<<53 + 1), float64(1 << 53), false},
		{m(nil), m(nil), true},
		{m(nil), map[string]any{}, false},
		{map[string]any{"a": nil}, map[string]any{"b": nil}, false},
		{[]any{}, []any{int64(1)}, false},
		{[]any{}, map[string]any{}, false},
		{true, false, false},
	} {
		if got := Same(test.a, test.b); got != test.want {
			t.Errorf("%v and %v: %v", test.a, test.b, got)
		}
	}
}
