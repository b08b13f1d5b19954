package builtins

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// Actions asks the functions of the parts, ready= and those of rolling(…), and returns what is done
// about the children. Thread is that of the run; ctx is what desired was called with. The inventory is
// changed. Without Hold only: else nobody may ask.
func (d *Desired) Actions(thread *starlark.Thread, ctx starlark.Value, inventory reconcile.Inventory) ([]reconcile.Action, error) {
	wanted, children := d.Wanted(), map[reconcile.ID]*reconcile.Child{}
	for i := range inventory.Children {
		children[inventory.Children[i].ID] = &inventory.Children[i]
	}
	for i := range d.Parts {
		if c := children[d.Parts[i].ID]; c != nil {
			if err := d.Parts[i].judge(thread, c); err != nil {
				return nil, err
			}
		}
	}
	var failed error
	for i := range d.Rollouts {
		r := &d.Rollouts[i]
		wanted.Rollouts[i].Hold = func(c *reconcile.Child) (why string) {
			if why, failed = r.hold(thread, ctx, c); failed != nil {
				why = "it fails" // nobody sees that
			}
			return why
		}
		if r.Order != nil {
			if err := r.rank(thread, wanted.Parts, children); err != nil {
				return nil, err
			}
		}
	}
	actions, err := reconcile.Actions(wanted, inventory)
	return actions, cmp.Or(failed, err)
}

// judge says whether a child is ready, as its part tells that.
func (p *Part) judge(thread *starlark.Thread, c *reconcile.Child) error {
	switch {
	case c.Deleting || p.Ready == ReadyAuto:
		return nil
	case p.Ready == ReadyExists:
		c.Ready, c.Reason = true, ""
		return nil
	}
	v, err := starlark.Call(thread, p.ReadyFn, starlark.Tuple{childValue(c)}, nil)
	if err != nil {
		return err
	}
	is, ok := v.(starlark.Bool)
	if !ok {
		return fmt.Errorf("ready of part %q returned %s; it must return True or False", p.Name, v.Type())
	}
	if c.Ready = bool(is); c.Ready {
		c.Reason = ""
	} else if c.Reason == "" {
		c.Reason = "ready= of its part says so"
	}
	return nil
}

// hold says why a child that is the next does not come to its new state now, or "".
func (r *Rollout) hold(thread *starlark.Thread, ctx starlark.Value, c *reconcile.Child) (string, error) {
	for _, ask := range []struct {
		name, says string
		fn         starlark.Callable
		arg        starlark.Value
	}{{"pause", "the rollout is paused: ", r.PauseFn, ctx}, {"before", "", r.Before, childValue(c)}} {
		if ask.fn == nil {
			continue
		}
		v, err := starlark.Call(thread, ask.fn, starlark.Tuple{ask.arg}, nil)
		if err != nil {
			return "", err
		}
		if why, ok := starlark.AsString(v); ok && why != "" {
			return ask.says + why, nil
		} else if v != starlark.None {
			return "", fmt.Errorf("%s of rolling(…) returned %s; it must return a reason, or None", ask.name, v.Type())
		}
	}
	return "", nil
}

// rank gives the parts of the rollout that are there their places.
func (r *Rollout) rank(thread *starlark.Thread, parts []reconcile.Part, children map[reconcile.ID]*reconcile.Child) error {
	type place struct {
		part *reconcile.Part
		at   starlark.Value
	}
	var places []place
	for i := range parts {
		c := children[parts[i].ID]
		if c == nil || parts[i].Rolling != r.Name {
			continue
		}
		v, err := starlark.Call(thread, r.Order, starlark.Tuple{childValue(c)}, nil)
		if err != nil {
			return err
		}
		places = append(places, place{&parts[i], v})
	}
	var failed error
	slices.SortStableFunc(places, func(a, b place) int {
		less, err := starlark.Compare(syntax.LT, a.at, b.at)
		more, other := starlark.Compare(syntax.GT, a.at, b.at)
		failed = errors.Join(failed, err, other)
		switch {
		case less:
			return -1
		case more:
			return 1
		}
		return 0
	})
	if failed != nil {
		return errors.New("order of rolling(…) returned values of several types; it must return ints, or texts")
	}
	for i, p := range places {
		p.part.Rank = i
	}
	return nil
}

// actionValues are actions, as a test looks at them.
func actionValues(actions []reconcile.Action) starlark.Value {
	out := make([]any, len(actions))
	for i, a := range actions {
		out[i] = map[string]any{"op": string(a.Op), "child": a.ID.String(), "part": a.Part, "why": a.Why}
	}
	return object.FromPlain(out)
}

// Question is what a controller is asked about one parent.
type Question struct {
	Key    string
	Parent starlark.Value
	// Children are those that there are.
	Children []reconcile.Child
	// Lookups is what they may ask besides.
	Lookups *Lookups
	// Failures are writes of children that have failed.
	Failures []reconcile.Failure
	// Unsynced are kinds of which nobody knows yet which children there are.
	Unsynced []reconcile.Kind
	// Look is told what is wanted and what there is. It returns that with who has changed it, and with the
	// objects of which fields are wanted.
	Look func(*Desired, []reconcile.Child) ([]reconcile.Child, error)
	// Cleanup says that the parent is being deleted: None, or no part, means that all children may go.
	Cleanup bool
	// Observed is what was observed last; nil: nothing yet.
	Observed *Observed
}

// args are those of the functions that a controller is asked by.
func (q Question) args() starlark.Tuple { return starlark.Tuple{q.Ctx(), q.Parent} }

// Decided is what has become of one parent.
type Decided struct {
	Desired
	Actions []reconcile.Action
	// Children are those that there are, as Look and the parts tell of them.
	Children []reconcile.Child
	// Cleaned says that nobody need be asked again about a parent that is being deleted.
	Cleaned bool
}

// Decide returns a function without parameters that has a controller decide about a parent, and puts
// the answer into out. Without fn nothing is wanted any more: the parent goes, and its children before it.
func (q Question) Decide(fn starlark.Callable, out *Decided) starlark.Callable {
	name := "nothing is wanted"
	if fn != nil {
		name = fn.Name()
	}
	return starlark.NewBuiltin(name, func(thread *starlark.Thread, _ *starlark.Builtin, _ starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		args := q.args()
		if fn != nil {
			v, err := starlark.Call(thread, fn, args, nil)
			if err != nil {
				return nil, err
			}
			out.Desired, err = DesiredOf(v)
			if q.Cleanup {
				if err != nil {
					err = errors.New("cleanup" + strings.TrimPrefix(err.Error(), "desired"))
				}
				out.Cleaned = err == nil && len(out.Parts) == 0 && out.Waiting == "" && out.Stalled == ""
				out.Hold = out.Hold && !out.Cleaned
			}
			if err != nil || out.Hold {
				return starlark.None, err
			}
		}
		children, err := q.Look(&out.Desired, q.Children)
		if err != nil {
			return nil, err
		}
		out.Actions, err = out.Desired.Actions(thread, args[0], reconcile.Inventory{Children: children, Failures: q.Failures, Unsynced: q.Unsynced})
		out.Children = children
		return starlark.None, err
	})
}

// Status returns a function without parameters that asks fn, the status function of a controller, for fields
// of the parent's status. Children are ready, or not, as their parts tell that: it comes after Decide.
func (q Question) Status(fn starlark.Callable, out *map[string]any) starlark.Callable {
	return starlark.NewBuiltin(fn.Name(), func(thread *starlark.Thread, _ *starlark.Builtin, _ starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		v, err := starlark.Call(thread, fn, q.args(), nil)
		if err != nil {
			return nil, err
		}
		plain, err := object.ToPlain(v) // no place for secrets
		fields, is := plain.(map[string]any)
		switch {
		case err != nil:
		case !is:
			err = fmt.Errorf("status returned %s; it must return a dict", v.Type())
		case fields["conditions"] != nil || fields["observedGeneration"] != nil:
			err = errors.New("status returned conditions or observedGeneration, which Starling writes: leave them out; a hook sets a condition of yours, with k8s.status")
		default:
			*out = fields
		}
		return starlark.None, err
	})
}
