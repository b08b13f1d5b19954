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
		{Name: "struct", Phases: PhaseAny, Returns: "the struct", call: callStruct,
			Doc:    "Makes a value with the given fields, read as attributes.",
			Params: []Param{{Name: "**fields", Type: TypeAny, Doc: "The fields."}}},
		{Name: "dict", Phases: PhaseAny, Returns: "a new dict", call: callDict,
			Doc: "Makes a dict. Of an object it is a deep copy, which may be changed everywhere; of a dict or of pairs it is shallow, as usual.",
			Params: []Param{
				{Name: "*args", Type: TypeAny, Doc: "At most one: an object, a dict, or pairs of key and value."},
				{Name: "**fields", Type: TypeAny, Doc: "Further keys and values."},
			}},
		{Name: "copy", Phases: PhaseAny, Returns: "the copy", call: callCopy,
			Doc:    "Copies a value deeply, so that the copy may be changed everywhere; objects become dicts.",
			Params: []Param{{Name: "x", Type: TypeAny, Doc: "The value, at most 32 MiB."}}},
		{Name: "equal", Phases: PhaseAny, Returns: "True or False", call: callEqual,
			Doc: "Compares deeply what two values hold: objects, dicts and structs by their fields, lists and tuples by their elements. (object == dict is always False.)",
			Params: []Param{
				{Name: "a", Type: TypeAny, Doc: "One value."},
				{Name: "b", Type: TypeAny, Doc: "The other."},
			}},
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
