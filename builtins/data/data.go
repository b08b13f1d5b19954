// Package data is the builtins that work on plain data: texts, numbers, times, lists and dicts, and their encodings.
package data

import (
	"errors"
	"slices"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/object"
)

// Specs are the builtins of this package.
func Specs() []spec.Spec {
	return slices.Concat(plainSpecs(), jsonSpecs(), yamlSpecs(), reSpecs(), encodingSpecs(), gzipSpecs(),
		timeSpecs(), mathSpecs(), semverSpecs(), namesSpecs())
}

// Plain values: struct, dict, copy, equal.

func plainSpecs() []spec.Spec {
	return []spec.Spec{
		spec.Pure("struct", callStruct, spec.Rest("**fields", spec.Any)),
		spec.Pure("dict", callDict, spec.Rest("*args", spec.Any), spec.Rest("**fields", spec.Any)),
		spec.Pure("copy", callCopy, spec.Required("x", spec.Any)),
		spec.Pure("equal", callEqual, spec.Required("a", spec.Any), spec.Required("b", spec.Any)),
	}
}

func callStruct(c *spec.Call) (starlark.Value, error) {
	return starlarkstruct.FromKeywords(starlarkstruct.Default, c.Kwargs), nil
}

func callDict(c *spec.Call) (starlark.Value, error) {
	if len(c.Rest) == 1 {
		if o, ok := c.Rest[0].(*object.Object); ok {
			d := object.DeepDict(o)
			for _, kv := range c.Kwargs {
				if err := d.SetKey(kv[0], kv[1]); err != nil {
					return nil, err
				}
			}
			return d, nil
		}
	}
	if len(c.Rest) == 1 {
		if err := c.Room(starlark.Len(c.Rest[0]) * keyCost); err != nil {
			return nil, err
		}
	}
	universe, ok := starlark.Universe["dict"].(*starlark.Builtin)
	if !ok {
		return nil, errors.New("not available here")
	}
	v, err := universe.CallInternal(c.Thread, c.Rest, c.Kwargs)
	if err != nil {
		return nil, spec.Finalf("%w", err) // it begins with "dict: "
	}
	return v, nil
}

// keyCost is about how many bytes a new dict takes per key.
const keyCost = 140

func callCopy(c *spec.Call) (starlark.Value, error) { return object.Copy(c.Arg("x")) }

func callEqual(c *spec.Call) (starlark.Value, error) {
	same, err := object.Equal(c.Arg("a"), c.Arg("b"))
	return starlark.Bool(same), err
}
