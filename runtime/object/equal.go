package object

import (
	"errors"
	"slices"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
)

// Equal reports whether a and b hold the same data, whatever holds it: objects,
// dicts and structs are equal when their fields are, lists and tuples when their
// elements are, sets as sets, and 1 equals 1.0. All other values are compared
// with Starlark's ==. Data nested deeper than [MaxDepth], cycles among it, and
// more than two million comparisons are an error.
func Equal(a, b starlark.Value) (bool, error) {
	c := comparison{left: 2 << 20}
	return c.equal(a, b, 0)
}

type comparison struct{ left int }

func (c *comparison) equal(a, b starlark.Value, depth int) (bool, error) {
	if c.left--; c.left < 0 {
		return false, errors.New("too large to compare")
	}
	if depth > MaxDepth {
		return false, errors.New("nested too deeply to compare")
	}
	if x, ok := a.(*Object); ok {
		if y, ok := b.(*Object); ok {
			return plainEqual(x.m, y.m), nil
		}
	}
	if x, ok := fieldsOf(a); ok {
		y, ok := fieldsOf(b)
		if !ok || x.len != y.len {
			return false, nil
		}
		return c.sameFields(x, y, depth)
	}
	if x, ok := sequence(a); ok {
		y, ok := sequence(b)
		if !ok || x.Len() != y.Len() {
			return false, nil
		}
		for i := range x.Len() {
			if same, err := c.equal(x.Index(i), y.Index(i), depth+1); err != nil || !same {
				return false, err
			}
		}
		return true, nil
	}
	return starlark.Equal(a, b)
}

func (c *comparison) sameFields(x, y mapping, depth int) (bool, error) {
	for k, v := range x.all {
		w, found, err := y.get(k)
		if err != nil || !found {
			return false, err
		}
		if same, err := c.equal(v, w, depth+1); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

// mapping is what objects, dicts and structs have in common.
type mapping struct {
	len int
	all func(yield func(k, v starlark.Value) bool)
	get func(k starlark.Value) (starlark.Value, bool, error)
}

func fieldsOf(v starlark.Value) (mapping, bool) {
	switch v := v.(type) {
	case *Object:
		return mapping{v.Len(), starlark.Entries(v), func(k starlark.Value) (starlark.Value, bool, error) {
			name, _ := starlark.AsString(k)
			if f, ok := v.m[name]; ok {
				return lazy(f), true, nil
			}
			return nil, false, nil
		}}, true
	case *starlark.Dict:
		return mapping{v.Len(), starlark.Entries(v), v.Get}, true
	case *starlarkstruct.Struct:
		d := make(starlark.StringDict, v.Len())
		v.ToStringDict(d)
		return mapping{len(d), func(yield func(k, v starlark.Value) bool) {
			for k, f := range d {
				if !yield(starlark.String(k), f) {
					return
				}
			}
		}, func(k starlark.Value) (starlark.Value, bool, error) {
			name, _ := starlark.AsString(k)
			f, ok := d[name]
			return f, ok, nil
		}}, true
	}
	return mapping{}, false
}

func sequence(v starlark.Value) (starlark.Indexable, bool) {
	switch v := v.(type) {
	case *starlark.List:
		return v, true
	case starlark.Tuple:
		return v, true
	}
	return nil, false
}

// plainEqual compares plain data; integers and floats of the same value are
// equal.
func plainEqual(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for k, v := range x {
			w, ok := y[k]
			if !ok || !plainEqual(v, w) {
				return false
			}
		}
		return true
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, plainEqual)
	}
	switch b.(type) {
	case map[string]any, []any:
		return false
	}
	same, err := starlark.Equal(scalar(a), scalar(b))
	return err == nil && same
}
