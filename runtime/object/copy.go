package object

import (
	"fmt"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
)

// DeepDict returns o as a dict, deeply copied and mutable all the way down: what
// dict(o) is in Starlark.
func DeepDict(o *Object) *starlark.Dict { return thaw(o.m).(*starlark.Dict) }

// Copy returns a deep, mutable copy of v: objects become dicts; dicts, lists,
// tuples, sets and structs are copied with all they hold; everything else is
// immutable and stays. Cycles, data deeper than [MaxDepth] or larger than
// [MaxBytes] are an error.
func Copy(v starlark.Value) (starlark.Value, error) {
	c := converter{left: MaxBytes}
	return c.copy(v)
}

func (c *converter) copy(v starlark.Value) (starlark.Value, error) {
	if err := c.pay(valueCost); err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case starlark.String:
		return v, c.pay(len(v))
	case *Object:
		if err := c.pay(plainSize(v.m, c.left)); err != nil {
			return nil, err
		}
		return DeepDict(v), nil
	case *starlark.Dict, *starlark.List, starlark.Tuple, *starlark.Set, *starlarkstruct.Struct:
		if err := c.enter(v); err != nil {
			return nil, fmt.Errorf("cannot copy: %w", err)
		}
		r, err := c.copyHolder(v)
		c.leave()
		return r, err
	}
	return v, nil
}

// copyHolder copies a value that holds others.
func (c *converter) copyHolder(v starlark.Value) (starlark.Value, error) {
	switch v := v.(type) {
	case *starlark.Dict:
		d := starlark.NewDict(min(v.Len(), c.left/valueCost))
		for k, e := range v.Entries() {
			// A key is hashable, so immutable.
			if key, ok := k.(starlark.String); ok {
				if err := c.pay(len(key)); err != nil {
					return nil, err
				}
			}
			e, err := c.copy(e)
			if err != nil {
				return nil, err
			}
			if err := d.SetKey(k, e); err != nil {
				return nil, err
			}
		}
		return d, nil
	case *starlark.List:
		elems, err := c.copyAll(v)
		return starlark.NewList(elems), err
	case starlark.Tuple:
		elems, err := c.copyAll(v)
		return starlark.Tuple(elems), err
	case *starlark.Set:
		s := starlark.NewSet(v.Len())
		for e := range v.Elements() {
			if err := c.pay(valueCost); err != nil {
				return nil, err
			}
			if err := s.Insert(e); err != nil {
				return nil, err
			}
		}
		return s, nil
	}
	s := v.(*starlarkstruct.Struct)
	fields := starlark.StringDict{}
	for name, f := range s.Entries() {
		e, err := c.copy(f)
		if err != nil {
			return nil, err
		}
		fields[name] = e
	}
	return starlarkstruct.FromStringDict(s.Constructor(), fields), nil
}

func (c *converter) copyAll(v starlark.Sequence) ([]starlark.Value, error) {
	elems := make([]starlark.Value, 0, min(v.Len(), c.left/valueCost))
	for e := range starlark.Elements(v) {
		e, err := c.copy(e)
		if err != nil {
			return nil, err
		}
		elems = append(elems, e)
	}
	return elems, nil
}
