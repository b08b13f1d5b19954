package object

import (
	"encoding/json"
	"testing"
)

func TestObjects(t *testing.T) {
	for doc, want := range map[string]string{
		`null`:                              `null`,
		`{}`:                                `[{}]`,
		`{"kind": "A", "items": {"a": 1}}`:  `[{"items":{"a":1},"kind":"A"}]`,
		`{"kind": "List", "items": []}`:     `null`,
		`{"kind": "List", "items": [null]}`: `null an item of List is no object`,
		`{"items": [{"a": 1}, 2]}`:          `[{"a":1}] an item of a list is no object`,
		`{"apiVersion": "v1", "kind": "ConfigMap", "items": [{"kind": "Node"}]}`:                             `[{"apiVersion":"v1","kind":"Node"}]`,
		`{"apiVersion": "v1", "kind": "SecretList", "items": [{"a": 1}, {"kind": null, "a": 2}]}`:            `[{"a":1,"apiVersion":"v1","kind":"Secret"},{"a":2,"apiVersion":"v1","kind":"Secret"}]`,
		`{"apiVersion": "v1", "kind": "List", "items": [{"kind": "PodList", "items": [{}]}, {"kind": "B"}]}`: `[{"apiVersion":"v1","kind":"Pod"},{"apiVersion":"v1","kind":"B"}]`,
		`{"kind": "List", "items": [{"kind": "List", "items": ["a"]}, {"kind": "B"}]}`:                       `[{"kind":"B"}] an item of List is no object`,
	} {
		var in map[string]any
		if err := json.Unmarshal([]byte(doc), &in); err != nil {
			t.Fatal(err)
		}
		out, err := Objects(in)
		text, _ := json.Marshal(out)
		got := string(text)
		if err != nil {
			got += " " + err.Error()
		}
		if left, _ := json.Marshal(in); got != want || len(out) > 0 && string(left) != compact(t, doc) {
			t.Errorf("%s:\ngot  %s\nwant %s, left %s", doc, got, want, left)
		}
	}
}

func compact(t *testing.T, doc string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(doc), &v); err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(v)
	return string(text)
}
