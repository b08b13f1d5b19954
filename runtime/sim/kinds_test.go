package sim

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
)

// A kind that module.star declares is served, with its defaults and rules.
func TestADeclaredKindIsServed(t *testing.T) {
	read, err := tree.Read(fstest.MapFS{"web/module.star": {Data: []byte(`
module(enabled = True)
crd("example.org/v1", "Lamp", {
    "color": field("string", default = "red", enum = ["red", "blue"]),
    "watts": field("integer", max = 100, immutable = True),
    "bulbs": field([{"name": field("string", required = True), "on": field("boolean", default = True)}], keys = ["name"]),
}, rules = {"self.metadata.name.size() <= 10": "the name is too long"}, versions = {"v1beta1": {"spec": {"color": "string"}}})
`)}}, tree.Options{})
	w := world(t, read, err)
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	lamp := func(version, name string, spec map[string]any) map[string]any {
		obj := map[string]any{"apiVersion": "example.org/" + version, "kind": "Lamp", "metadata": map[string]any{"name": name, "namespace": "default"}}
		if spec != nil {
			obj["spec"] = spec
		}
		return obj
	}
	for _, obj := range []map[string]any{
		lamp("v1", "plain", nil), lamp("v1beta1", "old", map[string]any{"color": "blue"}),
		lamp("v1", "many", map[string]any{"watts": int64(5), "bulbs": []any{map[string]any{"name": "a"}}}),
	} {
		if err := w.Apply(obj); err != nil {
			t.Error(err)
		}
	}
	for field, want := range map[string]any{"plain spec color": "red", "old spec color": "blue", "many spec watts": int64(5)} {
		path := strings.Fields(field)
		got, err := w.Get(effect.Ref{APIVersion: "example.org/v1", Kind: "Lamp", Namespace: "default", Name: path[0]})
		if v, _ := object.Get(got, path[1:]); err != nil || v != want {
			t.Errorf("%s: %v, %v", field, v, err)
		}
	}
	for want, obj := range map[string]map[string]any{
		"the name is too long": lamp("v1", "a-long-name", nil),
		"Unsupported value":    lamp("v1", "plain", map[string]any{"color": "green"}),
		"less than or equal":   lamp("v1", "plain", map[string]any{"watts": int64(500)}),
		"it cannot be changed": lamp("v1", "many", map[string]any{"watts": int64(6)}),
	} {
		if err := w.Apply(obj); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
