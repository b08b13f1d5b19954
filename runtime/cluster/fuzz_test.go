package cluster

import (
	"encoding/json"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
)

// A patch that is fenced is the same patch, and claims the state that it was made for;
// what was given stays as it was.
func FuzzFencedPatch(f *testing.F) {
	for _, patch := range []string{`{"metadata": {"labels": {"a": null}, "resourceVersion": "1"}, "spec": {"x": [1]}}`, `{"metadata": 7}`, `{"metadata": null}`, `{}`,
		`[{"op": "add", "path": "/metadata/labels/a", "value": "b"}]`, `[{"op": "remove", "path": "/metadata/resourceVersion"}]`, `[]`} {
		f.Add(patch)
	}
	f.Fuzz(func(t *testing.T, patch string) {
		var body, given any
		if json.Unmarshal([]byte(patch), &body) != nil || json.Unmarshal([]byte(patch), &given) != nil {
			return
		}
		fenced := fencedPatch(body, "u", "7")
		if !cmp.Equal(given, body) {
			t.Fatalf("%s was changed to %v", patch, body)
		}
		switch fenced := fenced.(type) {
		case map[string]any:
			meta := fenced["metadata"].(map[string]any)
			if meta["resourceVersion"] != "7" || meta["uid"] != "u" {
				t.Errorf("%s became %v", patch, fenced)
			}
			for key, v := range given.(map[string]any) {
				if key != "metadata" && !cmp.Equal(v, fenced[key]) {
					t.Errorf("%s: %s became %v", patch, key, fenced[key])
				}
			}
		case []any:
			if before := given.([]any); len(fenced) != len(before)+1 || len(before) > 0 && !cmp.Equal(before, fenced[:len(before)]) {
				t.Errorf("%s became %v", patch, fenced)
			}
			last, err := json.Marshal(fenced[len(fenced)-1:])
			if err != nil {
				t.Fatal(err)
			}
			ops, err := jsonpatch.DecodePatch(last)
			if err != nil {
				t.Fatal(err)
			}
			if out, err := ops.Apply([]byte(`{"metadata": {}}`)); err != nil || string(out) != `{"metadata":{"resourceVersion":"7"}}` {
				t.Errorf("the fence makes %s (%v)", out, err)
			}
		}
	})
}
