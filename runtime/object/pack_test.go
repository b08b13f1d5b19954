package object

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	kjson "sigs.k8s.io/json"
)

func TestPack(t *testing.T) {
	for name, obj := range map[string]map[string]any{
		"nothing": {},
		"values": {
			"null": nil, "true": true, "no": false, "": "", "n": int64(0), "min": int64(math.MinInt64), "max": int64(math.MaxInt64), "-1": int64(-1),
			"float": 1.5, "huge": math.MaxFloat64, "list": []any{}, "lists": []any{[]any{nil, "x"}, map[string]any{}},
			"a long text": string(make([]byte, 70_000)), "bytes": "\xff\x00ä",
		},
		"words": {"f:metadata": map[string]any{"f:": map[string]any{}, "f:no word": map[string]any{"kind": "f:kind", "f:.": map[string]any{}}}},
		"again": {"abcd": "abcd", "f:abcd": "f:abcd", `k:{"uid":"abcd"}`: `k:{"uid":"`, `k:{"uid":"f:x"}`: `k:{"uid":""}`, "f:f:abcd": `f:k:{"uid":"kind"}`},
	} {
		if diff := cmp.Diff(obj, Pack(obj).Unpack()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for i, w := range words {
		if wordAt[w] != i {
			t.Errorf("the word %q is there twice", w)
		}
	}
}

func FuzzPack(f *testing.F) {
	f.Add(`{"k:{\\"uid\\":\\"1234\\"}": "1234", "f:f:x": "f:"}`)
	f.Add(`{"apiVersion": "v1", "data": {"a": [1, -2, 1e99, null, true, "f:kind"]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var obj map[string]any
		if kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &obj) != nil || obj == nil {
			return
		}
		packed := Pack(obj)
		again := packed.Unpack()
		if diff := cmp.Diff(obj, again); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if Pack(again) != packed {
			t.Error("the same is packed otherwise")
		}
	})
}
