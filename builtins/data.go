package builtins

import (
	"errors"
	"fmt"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/starling-operator/starling/runtime/object"
)

// Plain values: struct, dict, copy, equal.

func dataSpecs() []Spec {
	return []Spec{
		{Name: "struct", Phases: PhaseAny, call: callStruct, Params: []Param{rest("**fields", TypeAny)}},
		{Name: "dict", Phases: PhaseAny, call: callDict,
			Params: []Param{rest("*args", TypeAny), rest("**fields", TypeAny)}},
		{Name: "copy", Phases: PhaseAny, call: callCopy, Params: []Param{required("x", TypeAny)}},
		{Name: "equal", Phases: PhaseAny, call: callEqual,
			Params: []Param{required("a", TypeAny), required("b", TypeAny)}},
	}
}

func callStruct(c *call) (starlark.Value, error) {
	return starlarkstruct.FromKeywords(starlarkstruct.Default, c.kwargs), nil
}

func callDict(c *call) (starlark.Value, error) {
	if len(c.rest) == 1 {
		if o, ok := c.rest[0].(*object.Object); ok {
			d := object.DeepDict(o)
			for _, kv := range c.kwargs {
				if err := d.SetKey(kv[0], kv[1]); err != nil {
					return nil, err
				}
			}
			return d, nil
		}
	}
	if len(c.rest) == 1 {
		if err := c.room(starlark.Len(c.rest[0]) * keyCost); err != nil {
			return nil, err
		}
	}
	universe, ok := starlark.Universe["dict"].(*starlark.Builtin)
	if !ok {
		return nil, errors.New("not available here")
	}
	v, err := universe.CallInternal(c.thread, c.rest, c.kwargs)
	if err != nil {
		return nil, finalError{err} // it begins with "dict: "
	}
	return v, nil
}

// keyCost is about how many bytes a new dict takes per key.
const keyCost = 140

func callCopy(c *call) (starlark.Value, error) { return object.Copy(c.arg("x")) }

func callEqual(c *call) (starlark.Value, error) {
	same, err := object.Equal(c.arg("a"), c.arg("b"))
	return starlark.Bool(same), err
}

// maxText is the most bytes of text that a builtin makes or reads.
const maxText = 32 << 20

func checkText(n int) error {
	if n > maxText {
		return fmt.Errorf("the text would be larger than %d MiB", maxText>>20)
	}
	return nil
}
