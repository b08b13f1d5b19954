package builtins

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
)

// callValuesPatch turns JSON patch operations into sets and removes.
func callValuesPatch(c *call) (starlark.Value, error) {
	list := c.Arg("ops").(starlark.Indexable)
	for i := range list.Len() {
		if err := c.patchOne(list.Index(i)); err != nil {
			return nil, fmt.Errorf("operation %d: %w", i, err)
		}
	}
	return nil, nil
}

func (c *call) patchOne(v starlark.Value) error {
	plain, err := object.ToPlain(v)
	if err != nil {
		return err
	}
	fields, ok := plain.(map[string]any)
	if !ok {
		return fmt.Errorf("got %s, want a dict with op, path and value", v.Type())
	}
	for k := range fields {
		if k != "op" && k != "path" && k != "value" {
			return fmt.Errorf("unknown field %q", spec.Clip(k))
		}
	}
	op, _ := fields["op"].(string)
	switch op {
	case "add", "replace", "remove":
	case "move", "copy", "test":
		return fmt.Errorf("op %q is not supported; use add, replace or remove", op)
	default:
		return fmt.Errorf("op %q is none; use add, replace or remove", spec.Clip(op))
	}
	pointer, ok := fields["path"].(string)
	if !ok {
		return errors.New(`path is missing; write it as in "/a/b"`)
	}
	keys, err := pointerKeys(pointer)
	if err != nil {
		return err
	}
	value, given := fields["value"]
	if !given && op != "remove" {
		return errors.New("value is missing")
	}
	shape, err := c.run.shape()
	if err != nil {
		return err
	}
	changed, err := patchedOp(shape, op, keys, value)
	if err != nil {
		return fmt.Errorf("path %q: %w", spec.Clip(pointer), err)
	}
	changed.Pos = c.Pos()
	return c.run.change(changed, shape)
}

// patchedOp is the change of values that one operation means. Paths that end in
// a list, or lead through one, set that list.
func patchedOp(shape map[string]any, op string, keys []string, value any) (effect.ValueOp, error) {
	for i := 1; i < len(keys); i++ {
		v, _ := object.Get(shape, keys[:i])
		if list, ok := v.([]any); ok {
			patched, err := patchAny(object.CopyPlain(list), op, keys[i:], value)
			return effect.ValueOp{Op: effect.OpSet, Path: keys[:i], Value: patched}, err
		}
	}
	if _, there := object.Get(shape, keys); !there && op != "add" {
		return effect.ValueOp{}, errors.New("nothing is there")
	}
	if op == "remove" {
		return effect.ValueOp{Op: effect.OpRemove, Path: keys}, nil
	}
	return addBelowNothing(shape, keys, value)
}

// addBelowNothing sets value at keys, and makes what is missing on the way: dicts,
// and for a path that ends in "-" the list that this appends to. A number below
// nothing may mean an index or a key, and is refused.
func addBelowNothing(shape map[string]any, keys []string, value any) (effect.ValueOp, error) {
	last := len(keys) - 1
	for i := 1; i <= last; i++ {
		if above, _ := object.Get(shape, keys[:i]); above != nil {
			continue
		}
		_, err := strconv.Atoi(keys[i])
		switch {
		case keys[i] == "-" && i == last:
			return effect.ValueOp{Op: effect.OpSet, Path: keys[:last], Value: []any{value}}, nil
		case keys[i] == "-", err == nil:
			return effect.ValueOp{}, fmt.Errorf("nothing is above %q, so it may mean a list or a dict; add [] or {} there first", spec.Clip(keys[i]))
		}
	}
	return effect.ValueOp{Op: effect.OpSet, Path: keys, Value: value}, nil
}

// patchAny applies one operation inside v, which it may change.
func patchAny(v any, op string, keys []string, value any) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		old, there := v[keys[0]]
		switch {
		case len(keys) > 1 && !there, op != "add" && !there:
			return nil, errors.New("nothing is there")
		case len(keys) > 1:
			inner, err := patchAny(old, op, keys[1:], value)
			v[keys[0]] = inner
			return v, err
		case op == "remove":
			delete(v, keys[0])
		default:
			v[keys[0]] = value
		}
		return v, nil
	case []any:
		return patchList(v, op, keys, value)
	}
	return nil, errors.New("nothing can be below this value")
}

func patchList(list []any, op string, keys []string, value any) (any, error) {
	adds := op == "add" && len(keys) == 1
	if adds && keys[0] == "-" {
		return append(list, value), nil
	}
	i, err := strconv.Atoi(keys[0])
	if err != nil || i < 0 || i > len(list) || i == len(list) && !adds {
		return nil, fmt.Errorf("%q is no index of a list of %d", spec.Clip(keys[0]), len(list))
	}
	switch {
	case adds:
		return slices.Insert(list, i, value), nil
	case len(keys) > 1:
		list[i], err = patchAny(list[i], op, keys[1:], value)
		return list, err
	case op == "remove":
		return slices.Delete(list, i, i+1), nil
	}
	list[i] = value
	return list, nil
}

// pointerKeys reads a JSON pointer (RFC 6901).
func pointerKeys(pointer string) ([]string, error) {
	if !strings.HasPrefix(pointer, "/") || pointer == "/" {
		return nil, fmt.Errorf(`path %q: write it as in "/a/b"`, spec.Clip(pointer))
	}
	keys := strings.Split(pointer[1:], "/")
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for i, k := range keys {
		keys[i] = unescape.Replace(k)
	}
	return keys, nil
}
