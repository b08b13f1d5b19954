package builtins

import (
	"errors"
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/object"
)

// Exports of modules stand among the global values: so layers, readers and explanations need
// nothing for them.

// ExportsKey is the key below "global" of what modules export.
const ExportsKey = "exports"

// ExportsPath is where the values that a module exports stand: ["global", "exports", "certManager"].
func ExportsPath(module string) []string {
	return []string{"global", ExportsKey, object.CamelKey(module)}
}

// exports reads exports= of module().
func (c *call) exports() ([]string, error) {
	paths := c.Strings("exports")
	for _, path := range paths {
		switch first, _, _ := strings.Cut(path, "."); {
		case path == "":
			return nil, errors.New("exports: a path is empty")
		case first == "global":
			return nil, fmt.Errorf("exports: %q: all modules see the global values; name values of this one", spec.Clip(path))
		}
	}
	return paths, nil
}

func callValuesOf(c *call) (starlark.Value, error) {
	root, err := c.run.values()
	if err != nil {
		return nil, err
	}
	exported, _ := object.Get(root, ExportsPath(c.Str("module")))
	below, _ := exported.(map[string]any)
	return c.plainAt(below), nil
}
