package object

import (
	"math"
	"strings"
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
		"shorter": {
			"uid": "0f2a4c6e-1b3d-5f70-8192-a3b4c5d6e7f8", "digest": "0123456789abcdef0123456789abcdef", "time": "2026-01-01T00:00:00Z", "list": []any{
				map[string]any{"uid": "0f2a4c6e-1b3d-5f70-8192-a3b4c5d6e7f8", "time": "2026-01-01T00:00:00Z", "more": "0123456789abcdef0123456789abcdef"},
				map[string]any{"uid": "0F2A4C6E-1b3d-5f70-8192-a3b4c5d6e7f8", "time": "2026-01-01T00:00:00.5Z"},
				map[string]any{"uid": "0f2a4c6e1b3d5f708192a3b4c5d6e7f8----", "time": "2026-01-01T00:00:00+00:00"},
				map[string]any{"uid": "0f2a4c6e-1b3d-5f70-8192-a3b4c5d6e7fg", "time": "0001-01-01T00:00:00Z"},
				map[string]any{"uid": "0123456789abcdef", "time": "0123456789abcdef0"}, map[string]any{"uid": "", "time": ""},
				map[string]any{"uid": int64(1), "time": map[string]any{}}, map[string]any{"uid": nil, "time": "9999-12-31T23:59:59Z"},
			},
			"none": []any{"0123456789abcdeF", "0123456789abcdef0", "0123456789abcde", "0f2a4c6e-1b3d-5f70-8192-a3b4c5d6e7f9"},
		},
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

// A text that is packed as it is lies in the packed text; any other is returned as it is.
func TestTextsOfPacked(t *testing.T) {
	packed := Pack(map[string]any{"metadata": map[string]any{"annotations": map[string]any{"parent": "shop/web", "of": "0f2a4c6e-1b3d-5f70-8192-a3b4c5d6e7f8"}}})
	for text, lies := range map[string]bool{"shop/web": true, "shop": true, "0f2a4c6e-1b3d-5f70-8192-a3b4c5d6e7f8": true, "nothing": false, "": true} {
		got := packed.Text(text)
		if got != text || strings.Contains(string(packed), text) != lies {
			t.Errorf("%q: got %q", text, got)
		}
	}
}

func FuzzPack(f *testing.F) {
	f.Add(`{"k:{\\"uid\\":\\"1234\\"}": "1234", "f:f:x": "f:"}`)
	f.Add(`{"uid": "0f2a4c6e-1b3d-5f70-8192-a3b4c5d6e7f8", "x": {"time": "2026-01-01T00:00:00Z", "y": "0123456789abcdef"}}`)
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
