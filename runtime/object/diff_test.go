package object

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDifferences(t *testing.T) {
	for _, c := range []struct {
		got, want any
		lines     []string
	}{
		{int64(1), int64(1), nil},
		{int64(1), 1.0, nil},
		{int64(1), "1", []string{`got 1, want "1"`}},
		{map[string]any{"a": int64(1), "b.c": nil}, map[string]any{"a": int64(2), "d": []any{}}, []string{"a: got 1, want 2", `["b.c"]: got None, want none`, "d: missing, want []"}},
		{map[string]any{"s": map[string]any{"l": []any{"x", "y"}}}, map[string]any{"s": map[string]any{"l": []any{"x", "z", "w"}}}, []string{`s.l[1]: got "y", want "z"`, `s.l[2]: missing, want "w"`}},
		{[]any{int64(1), int64(2)}, []any{int64(1)}, []string{"[1]: got 2, want none"}},
		{map[string]any{}, []any{}, []string{"got {}, want []"}},
	} {
		if diff := cmp.Diff(c.lines, Differences(FromPlain(c.got), FromPlain(c.want))); diff != "" {
			t.Errorf("%v, %v: %s", c.got, c.want, diff)
		}
	}
}
