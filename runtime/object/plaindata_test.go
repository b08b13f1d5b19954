package object

import (
	"reflect"
	"testing"
)

func TestChangeComesToEachValueOnce(t *testing.T) {
	in := map[string]any{"a": int64(1), "list": []any{int64(2), map[string]any{"b": int64(3)}}}
	plus := func(v any) any {
		switch v := v.(type) {
		case int64:
			return v + 1
		case []any:
			return map[string]any{"was a list": v}
		}
		return v
	}
	out := Change(CopyPlain(in), plus)
	want := map[string]any{"a": int64(2), "list": map[string]any{"was a list": []any{int64(3), map[string]any{"b": int64(4)}}}}
	if !reflect.DeepEqual(out, want) || in["a"] != int64(1) {
		t.Errorf("%v became %v", in, out)
	}
}

func TestAllValues(t *testing.T) {
	in := map[string]any{"list": []any{int64(1), map[string]any{"a": int64(2)}}, "b": int64(4)}
	sum, holders := int64(0), 0
	for v := range All(in) {
		if n, is := v.(int64); is {
			sum += n
		} else {
			holders++
		}
	}
	if sum != 7 || holders != 3 {
		t.Errorf("numbers make %d, and %d values hold others", sum, holders)
	}
	for range All(in) {
		break // asks for no more
	}
}

func TestWithoutNulls(t *testing.T) {
	in := map[string]any{"a": nil, "b": map[string]any{"c": nil}, "list": []any{nil, map[string]any{"d": nil}}}
	want := map[string]any{"b": map[string]any{}, "list": []any{nil, map[string]any{}}}
	if out := WithoutNulls(in); !reflect.DeepEqual(out, want) || len(in) != 3 {
		t.Errorf("%v became %v", in, out)
	}
}
