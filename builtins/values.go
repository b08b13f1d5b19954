package builtins

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/object"
)

// The values and the config of a module, as its hooks see them.

func valuesSpecs() []spec.Spec {
	const read = spec.InRun | spec.InEnabled | spec.InReview
	const look = read | spec.InDesired
	path := spec.Required("path", spec.Path)
	value := spec.Required("value", spec.Any)
	dflt := spec.Optional("default", spec.Any, "None")
	return []spec.Spec{
		declare("values.get", look, spec.Reads, callValuesGet, path, dflt),
		declare("values.has", look, spec.Reads, callValuesHas, path),
		declare("values.of", look, spec.Reads, callValuesOf, spec.Required("module", spec.String), path, dflt),
		declare("values.set", spec.InRun, spec.Writes, callValuesSet(effect.OpSet), path, value),
		declare("values.default", spec.InRun, spec.Writes, callValuesSet(effect.OpDefault), path, value),
		declare("values.merge", spec.InRun, spec.Writes, callValuesSet(effect.OpMerge), path,
			spec.Required("value", spec.Dict)),
		declare("values.remove", spec.InRun, spec.Writes, callValuesSet(effect.OpRemove), path),
		declare("values.patch", spec.InRun, spec.Writes, callValuesPatch, spec.Required("ops", spec.List)),
		declare("config.get", read, spec.Reads, callConfigGet, path, dflt),
	}
}

func callValuesGet(c *call) (starlark.Value, error) {
	root, err := c.run.values()
	if err != nil {
		return nil, err
	}
	return c.plainAt(root), nil
}

func callConfigGet(c *call) (starlark.Value, error) { return c.plainAt(c.run.Config), nil }

// plainAt returns what is at path= below root, or default=.
func (c *call) plainAt(root map[string]any) starlark.Value {
	v, _ := c.Path("path").Get(root)
	if v == nil {
		return c.ArgOr("default", starlark.None)
	}
	return object.FromPlain(v)
}

func callValuesHas(c *call) (starlark.Value, error) {
	root, err := c.run.values()
	if err != nil {
		return nil, err
	}
	v, _ := c.Path("path").Get(root)
	return starlark.Bool(v != nil), nil
}

func callValuesSet(kind effect.ValueOpKind) func(*call) (starlark.Value, error) {
	return func(c *call) (starlark.Value, error) {
		shape, err := c.run.shape()
		if err != nil {
			return nil, err
		}
		op := effect.ValueOp{Op: kind, Path: c.Path("path").Resolve(shape), Pos: c.Pos()}
		if kind != effect.OpRemove {
			if op.Value, op.Secrets, err = object.ToPlainMarked(c.Arg("value"), op.Path); err != nil {
				return nil, err
			}
		}
		return nil, c.run.change(op, shape)
	}
}

// valueView is what a run knows of the effective values.
type valueView struct {
	// root is what was composed last, with plain sets made since then put in: as
	// good as the real thing for telling which keys there are. Nil: unknown.
	root map[string]any
	// sets are those that are not put in yet: next to always there is one set per run, and
	// the values of a hook with for_each are large.
	sets []effect.ValueOp
	// exact means that root is what Compose returned for all changes so far.
	exact bool
}

// values returns the effective values with all of the run's changes.
func (r *Run) values() (map[string]any, error) {
	if r.view.exact {
		return r.view.root, nil
	}
	root := map[string]any{}
	if r.Compose != nil {
		composed, err := r.Compose(slices.Clip(r.Effects.Values))
		if err != nil {
			return nil, err
		}
		if composed != nil {
			root = composed
		}
	}
	r.view = valueView{root: root, exact: true}
	return root, nil
}

// shape returns values whose keys are those of the effective ones. Many sets in a row then compose nothing.
func (r *Run) shape() (map[string]any, error) {
	if r.view.root == nil {
		return r.values()
	}
	for _, op := range r.view.sets {
		r.view.root = withValue(r.view.root, op.Path, op.Value)
	}
	r.view.sets = nil
	return r.view.root, nil
}

// change checks and records one change of the values.
func (r *Run) change(op effect.ValueOp, shape map[string]any) error {
	if err := r.mayChange(op); err != nil {
		return err
	}
	if err := checkKeys(op.Path, shape); err != nil {
		return err
	}
	if err := r.spend(len(r.Effects.Values), "value changes", object.PlainSize(op.Value)+sizeOf(op.Path)); err != nil {
		return err
	}
	r.Effects.Values = append(r.Effects.Values, op)
	r.view.exact = false
	if op.Op == effect.OpSet {
		r.view.sets = append(r.view.sets, op)
	} else {
		r.view = valueView{}
	}
	return nil
}

// checkKeys says why nothing can be set at a path of values that have this shape.
func checkKeys(path []string, shape map[string]any) error {
	if n := len(path); n > object.MaxDepth { // each level is looked at often, as values are composed
		return fmt.Errorf("path has %d keys, more than %d", n, object.MaxDepth)
	}
	for i, key := range path {
		if key == "" {
			return fmt.Errorf("path %s holds an empty key", object.KeysText(path))
		}
		if i == 0 {
			continue
		}
		if v, _ := object.Get(shape, path[:i]); isSlice(v) {
			return fmt.Errorf("%s is a list; set it as a whole", object.KeysText(path[:i]))
		}
	}
	return nil
}

func isSlice(v any) bool { _, ok := v.([]any); return ok }

func sizeOf(texts []string) int {
	n := 0
	for _, s := range texts {
		n += len(s)
	}
	return n
}

// withValue returns m with v at keys, sharing all that did not change.
func withValue(m map[string]any, keys []string, v any) map[string]any {
	out := make(map[string]any, len(m)+1)
	maps.Copy(out, m)
	if len(keys) == 1 {
		out[keys[0]] = v
		return out
	}
	child, _ := m[keys[0]].(map[string]any)
	out[keys[0]] = withValue(child, keys[1:], v)
	return out
}

// mayChange says which values a hook may write: a module's hooks their own
// section, global hooks global and the switches of modules.
func (r *Run) mayChange(op effect.ValueOp) error {
	first := op.Path[0]
	if !r.Global {
		if first == "global" {
			return fmt.Errorf("only global hooks may set %s; this is a hook of module %s", object.KeysText(op.Path), r.Module)
		}
		if slices.Contains(r.Enabled, first) && len(op.Path) == 1 {
			return fmt.Errorf("only global hooks may set %s, which switches a module; this is a hook of module %s", first, r.Module)
		}
		return nil
	}
	if first == "global" {
		if _, isMap := op.Value.(map[string]any); len(op.Path) == 1 && !isMap && op.Op != effect.OpRemove {
			return errors.New("global must be a dict")
		}
		return nil
	}
	if !slices.Contains(r.Enabled, first) || len(op.Path) > 1 {
		near := message.Nearest(first, append([]string{"global"}, r.Enabled...))
		if near == "" || near == first {
			near = "global." + object.KeysText(op.Path)
		}
		return fmt.Errorf("global hooks may only set global.… and the switches of modules, not %s (did you mean %s?)", object.KeysText(op.Path), near)
	}
	if _, isBool := op.Value.(bool); !isBool && op.Op != effect.OpRemove {
		return fmt.Errorf("%s switches a module; it must be True or False", first)
	}
	return nil
}

// Size is how much memory the effects take, about, in bytes.
func (r *Run) Size() int { return r.bytes }

// spend counts one more effect of a kind of which there are count already.
func (r *Run) spend(count int, what string, size int) error {
	if most := r.Limits.maxWrites(); count >= most {
		return &spec.LimitError{Limit: "effects", Detail: fmt.Sprintf("more than %d %s in one run", most, what)}
	}
	if most := r.Limits.maxBytes(); size > most-r.bytes {
		return &spec.LimitError{Limit: "effects", Detail: fmt.Sprintf("larger than %d bytes together", most)}
	}
	r.bytes += size
	return nil
}
