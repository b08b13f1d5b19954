package builtins

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/data"
	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/object"
)

func callGolden(c *call, t *Test) (starlark.Value, error) {
	name := c.Str("name")
	if name == "" || len(name) > 100 || strings.ContainsAny(name, "/\\") || strings.HasPrefix(name, ".") {
		return nil, fmt.Errorf("name: %q is no name of a file", spec.Clip(name))
	}
	text, ok := starlark.AsString(c.Arg("value"))
	if !ok {
		plain, err := object.ToPlain(c.Arg("value"))
		if err != nil {
			return nil, fmt.Errorf("value: %w", err)
		}
		dropMadeUp(plain)
		if text, err = data.EncodeYAML(plain); err != nil {
			return nil, fmt.Errorf("value: %w", err)
		}
	}
	return nil, c.lenient(t.World.Golden(name, text))
}

// madeUp are the fields of metadata that the API server makes up: they say how many
// writes there were, not what was written.
var madeUp = []string{"uid", "resourceVersion", "creationTimestamp", "managedFields"}

// dropMadeUp takes them out of all objects in fresh plain data, and the uids of owners
// with them.
func dropMadeUp(x any) {
	for v := range object.All(x) {
		obj, _ := v.(map[string]any)
		meta, ok := obj["metadata"].(map[string]any)
		if !ok || obj["kind"] == nil || obj["apiVersion"] == nil {
			continue
		}
		for _, key := range madeUp {
			delete(meta, key)
		}
		owners, _ := meta["ownerReferences"].([]any)
		for _, owner := range owners {
			if owner, ok := owner.(map[string]any); ok {
				delete(owner, "uid")
			}
		}
	}
}
