package object

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"
)

// Digests of children are made of these bytes: one that differs has each child written again.
func TestAppendJSON(t *testing.T) {
	values := []any{
		nil, true, false, int64(0), int64(-1), int64(math.MinInt64), int64(math.MaxInt64),
		0.0, math.Copysign(0, -1), 1.5, 1e-7, 1e20, 1e21, -1e21, math.MaxFloat64, math.SmallestNonzeroFloat64, 100.0,
		"", "text", "a b", "\u2028\u2029", "ä€😀", "\xff", "a\xc3", strings.Repeat("x", 5000), "</script>", "\\\"", "\u007f",
		map[string]any(nil), []any(nil), map[string]any{}, []any{}, []any{nil}, []any{[]any{}, map[string]any{}},
		map[string]any{"b": "1", "a": []any{int64(1), 2.5, "x", nil, true}, "": nil, "<&>": "<&>", "Ä": "ä", "a\n": "\n", "B": map[string]any{"z": false}},
		int(7), uint64(math.MaxUint64), big.NewInt(9), json.Number("12"), time.Unix(0, 0).UTC(), []string{"a"},
	}
	for b := range 256 {
		values = append(values, string([]byte{byte(b)}), string(rune(b)))
	}
	many := map[string]any{}
	for i := range 40 {
		many[fmt.Sprint("key", i)] = int64(i)
	}
	values = append(values, many, values)
	for _, v := range values {
		want, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		got, err := AppendJSON([]byte("before "), v)
		if err != nil || string(got) != "before "+string(want) {
			t.Errorf("%#v: got %s and %v, want %s", v, got, err, want)
		}
	}
	for _, v := range []any{math.NaN(), []any{math.Inf(1)}, map[string]any{"a": func() {}}} {
		if _, err := AppendJSON(nil, v); err == nil {
			t.Errorf("%T: got no error", v)
		}
	}
}

// deployment is an object as a controller makes it.
func deployment() map[string]any {
	return map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "blog", "namespace": "shop"},
		"spec": map[string]any{"replicas": int64(2), "selector": map[string]any{"matchLabels": map[string]any{"app": "blog"}}, "template": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"app": "blog"}},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "app", "image": "nginx:1", "ports": []any{map[string]any{"containerPort": int64(80)}}}}},
		}},
	}
}

func BenchmarkToPlain(b *testing.B) {
	v := thaw(deployment())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ToPlain(v); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendJSON(b *testing.B) {
	obj := deployment()
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := AppendJSON(make([]byte, 0, 1024), obj); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("marshal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := json.Marshal(obj); err != nil {
				b.Fatal(err)
			}
		}
	})
}
