package builtins

import (
	"cmp"
	"fmt"
	"slices"

	startime "go.starlark.net/lib/time"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// callTestDesired calls a function as a controller does, on the thread of the test.
func callTestDesired(c *call, t *Test) (starlark.Value, error) {
	fn, err := c.function("fn", takesParent)
	if err != nil {
		return nil, err
	}
	parent, err := plainObject(c.Arg("obj"))
	if err != nil {
		return nil, fmt.Errorf("obj: %w", err)
	}
	children, err := childrenOf(c.ArgOr("children", starlark.NewList(nil)))
	if err != nil {
		return nil, fmt.Errorf("children: %w", err)
	}
	lookups, err := c.testLookups(t, fn)
	if err != nil {
		return nil, err
	}
	values, err := c.plainDict("values")
	if err != nil {
		return nil, err
	}
	ref := effect.RefOf(parent)
	key := effect.Key(ref.Namespace, ref.Name)
	run := &Run{
		Module: t.World.Module(), Hook: fn.Name(), Namespace: cmp.Or(ref.Namespace, "default"), Scope: t.World.Scope,
		Compose: func([]effect.ValueOp) (map[string]any, error) { return values, nil },
	}
	desired := *c.ctx
	desired.Phase, desired.Test, desired.Run = spec.InDesired, nil, run
	o := object.New(parent)
	ask := func(do func() error) error {
		Attach(c.Thread, &desired)
		defer Attach(c.Thread, c.ctx)
		return do()
	}
	q, unspent := Question{Key: key, Parent: o, Children: children, Lookups: lookups}, *run
	if observed := c.Arg("observed"); observed != nil && observed != starlark.None {
		q.Observed = &Observed{At: lookups.o.Now}
		if q.Observed.Value, err = object.ToPlainAt(observed, []string{"observed"}); err != nil {
			return nil, err
		}
	}
	answer := &testAnswer{q: q, ask: ask, run: run}
	err = ask(func() error {
		v, err := starlark.Call(c.Thread, fn, q.args(), nil)
		if err == nil {
			answer.Desired, err = DesiredOf(v)
		}
		if err != nil {
			return err
		}
		*run = unspent
		return askAgain(c.Thread, fn, q.args(), &answer.Desired)
	})
	if err != nil {
		return nil, err
	}
	return answer.value(), nil
}

// testLookups is what the functions of a controller find in a test beside the parent and its children.
func (c *call) testLookups(t *Test, fn starlark.Callable) (*Lookups, error) {
	given, err := c.plainDict("reads")
	if err != nil {
		return nil, err
	}
	objects := map[string][]map[string]any{}
	for name, of := range given {
		if objects[name], err = objectsOf(object.FromPlain(of)); err != nil {
			return nil, fmt.Errorf("reads: %s: %w", name, err)
		}
	}
	o, err := t.World.Reading(t.Ctx, fn, objects)
	if err != nil {
		return nil, fmt.Errorf("reads: %w", err)
	}
	o.Now = t.World.Now()
	if now := c.Arg("now"); now != nil && now != starlark.None {
		if o.Now, err = timeOf(now); err != nil {
			return nil, fmt.Errorf("now: %w", err)
		}
	}
	return NewLookups(o), nil
}

// testAnswer is what desired has answered in a test.
type testAnswer struct {
	Desired
	q   Question
	run *Run
	// ask does something in spec.InDesired.
	ask func(func() error) error
}

func plainObject(v starlark.Value) (map[string]any, error) {
	plain, err := object.ToPlain(v)
	if err != nil {
		return nil, err
	}
	obj, is := plain.(map[string]any)
	if !is {
		return nil, fmt.Errorf("got %s, want an object", v.Type())
	}
	if _, err := identity(obj); err != nil {
		return nil, err
	}
	return obj, nil
}

// childrenOf reads a list of objects.
func childrenOf(v starlark.Value) (out []reconcile.Child, err error) {
	list, is := v.(starlark.Indexable)
	if !is {
		return nil, fmt.Errorf("got %s, want a list of objects", v.Type())
	}
	for i := range list.Len() {
		obj, err := plainObject(list.Index(i))
		if err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
		out = append(out, reconcile.ChildOf(obj))
	}
	return out, nil
}

// value is the answer, as a test looks at it.
func (d *testAnswer) value() starlark.Value {
	var parts, objects []starlark.Value
	wanted := d.Wanted()
	layers, _ := reconcile.Layers(wanted.Parts) // as DesiredOf has checked
	for i, p := range d.Parts {
		parts = append(parts, starlarkstruct.FromStringDict(starlark.String("part"), starlark.StringDict{
			"name": starlark.String(p.Name), "object": object.New(p.Object), "after": stringList(p.After),
		}))
		if p.ID.Fields {
			continue
		}
		objects = append(objects, object.New(reconcile.Mark(p.Object, &wanted.Parts[i], layers[i], reconcile.Parent{})))
	}
	due := starlark.Value(starlark.None)
	if _, at := d.q.Lookups.Asked(); !at.IsZero() {
		due = startime.Time(at)
	}
	return starlarkstruct.FromStringDict(starlark.String("desired"), starlark.StringDict{
		"due": due, "parts": starlark.NewList(parts), "objects": starlark.NewList(objects),
		"waiting": textOrNone(d.Waiting), "stalled": textOrNone(d.Stalled), "progressing": textOrNone(d.run.Progressing),
		"actions": starlark.NewBuiltin("actions", func(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			given := starlark.Value(starlark.None)
			if err := starlark.UnpackArgs(b.Name(), args, kwargs, "children?", &given); err != nil {
				return nil, err
			}
			now := d.q.Children
			if given != starlark.None {
				var err error
				if now, err = childrenOf(given); err != nil {
					return nil, fmt.Errorf("actions: children: %w", err)
				}
			}
			return d.actions(thread, slices.Clone(now))
		}),
	})
}

func (d *testAnswer) actions(thread *starlark.Thread, children []reconcile.Child) (starlark.Value, error) {
	var actions []reconcile.Action
	if d.Hold {
		return actionValues(actions), nil
	}
	q := d.q
	q.Children = children
	ctx := q.Ctx()
	for i := range d.Parts { // objects of others, of which it has no fields yet
		id := d.Parts[i].ID
		at := slices.IndexFunc(children, func(c reconcile.Child) bool { return id.Fields && !c.Fields && c.Ref == id.Ref })
		if at >= 0 {
			children = append(children, reconcile.Child{ID: id, UID: children[at].UID, Deleting: children[at].Deleting, Ready: true})
		}
	}
	err := d.ask(func() (err error) {
		actions, err = d.Actions(thread, ctx, reconcile.Inventory{Children: children})
		return err
	})
	return actionValues(actions), err
}

func callTestController(c *call, t *Test) (starlark.Value, error) {
	controller := c.Str("name")
	return starlarkstruct.FromStringDict(starlark.String("controller"), starlark.StringDict{
		"actions": starlark.NewBuiltin("actions", func(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			var key string
			if err := starlark.UnpackArgs(b.Name(), args, kwargs, "key", &key); err != nil {
				return nil, err
			}
			actions, err := t.World.Actions(controller, key)
			return actionValues(actions), err
		}),
	}), nil
}
