package builtins

import (
	"errors"
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// The answers of a controller's desired function.

// Desired is what the desired function of a controller has answered about one parent.
type Desired struct {
	// Hold says that nothing is written and nothing deleted now: the answer was None, waiting(…) or
	// stalled(…). Waiting and Stalled are the reasons of the last two.
	Hold             bool
	Waiting, Stalled string
	// Parts are all children that are wanted, those of rollouts too, as they are listed.
	Parts    []Part
	Rollouts []Rollout
}

// Wanted is what [reconcile.Actions] takes of the answer.
func (d *Desired) Wanted() reconcile.Wanted {
	w := reconcile.Wanted{Parts: slices.Grow([]reconcile.Part(nil), len(d.Parts))} // nil without parts
	for i := range d.Parts {
		w.Parts = append(w.Parts, d.Parts[i].Part)
	}
	for i := range d.Rollouts {
		w.Rollouts = append(w.Rollouts, d.Rollouts[i].Rollout)
	}
	return w
}

// Part is part(…), or set_fields(…).
type Part struct {
	reconcile.Part
	// Object is the object, or what names one with the fields, as plain JSON data.
	Object map[string]any
	// Owner says whether the parent becomes the owner of the object; nil: where it can be.
	Owner *bool
	// Ready is [ReadyAuto] or [ReadyExists]; "" means that ReadyFn says it.
	Ready   string
	ReadyFn starlark.Callable `json:"-"`
	// Fill are values of Object that are made with it. AtCreation are paths of fields that count only then.
	Fill       []Fill
	AtCreation []object.Path
	// Pos is the "file:line" of the call.
	Pos string
}

// Ways to tell whether a part is ready.
const (
	// ReadyAuto: by the status of the object, as kubectl and Helm read it.
	ReadyAuto = "auto"
	// ReadyExists: once it is there.
	ReadyExists = "exists"
)

// Rollout is rolling(…).
type Rollout struct {
	reconcile.Rollout
	// Order takes a child and returns an int or a text: small ones come to a new state first. Nil: as
	// the parts are listed.
	Order starlark.Callable `json:"-"`
	// PauseFn takes ctx, Before the child that comes next; both return why it does not begin now, or None. Nil: nothing
	// stops it.
	PauseFn, Before starlark.Callable `json:"-"`
}

// rolling is the value of rolling(…).
type rolling struct {
	Rollout
	parts []Part
}

// stall is the value of stalled(…): the reason.
type stall string

func desiredSpecs() []spec.Spec {
	return append([]spec.Spec{
		declare("part", spec.InDesired, spec.NoEffect, callPart, spec.Required("obj", spec.Dict),
			spec.Keyword("name", spec.String, "None"), spec.Keyword("after", spec.Strings, "[]"),
			spec.Keyword("ready", spec.Any, `"auto"`), spec.Keyword("update", spec.String, `"apply"`),
			spec.Keyword("owner", spec.Bool, "None"), spec.Keyword("retain", spec.Bool, "False"),
			spec.Keyword("fill", spec.Dict, "{}"), spec.Keyword("at_creation", spec.Strings, "[]")),
		fieldsSpec(),
		declare("rolling", spec.InDesired, spec.NoEffect, callRolling, spec.Required("parts", spec.List),
			spec.Keyword("max_unavailable", spec.Int, "1"), spec.Keyword("order", spec.Function, "None"),
			spec.Keyword("pause", spec.Function, "None"), spec.Keyword("before", spec.Function, "None")),
		declare("stalled", spec.InDesired, spec.NoEffect, callStalled, spec.Required("reason", spec.String)),
		declare("progressing", spec.InDesired, spec.NoEffect, callProgressing, spec.Required("text", spec.String)),
	}, generateSpecs()...)
}

func callProgressing(c *call) (starlark.Value, error) {
	if c.run.Progressing = c.Str("text"); c.run.Progressing == "" {
		return nil, errors.New("text: got no text; say what is under way")
	}
	return starlark.None, nil
}

func callStalled(c *call) (starlark.Value, error) {
	return &declared[stall]{"stalled", stall(c.Str("reason"))}, nil
}

func callRolling(c *call) (starlark.Value, error) {
	r := rolling{Rollout: Rollout{Rollout: reconcile.Rollout{MaxUnavailable: c.IntOr("max_unavailable", 1)}}}
	if r.MaxUnavailable < 1 || r.MaxUnavailable > reconcile.MaxParts {
		return nil, fmt.Errorf("max_unavailable: got %d, want 1 to %d", r.MaxUnavailable, reconcile.MaxParts)
	}
	list := c.Arg("parts").(starlark.Indexable)
	for i := range list.Len() {
		p, ok := list.Index(i).(*declared[Part])
		if !ok || p.val.ID.Fields {
			return nil, fmt.Errorf("parts: element %d: got %s, want part(…)", i, list.Index(i).Type())
		}
		r.parts = append(r.parts, p.val)
	}
	var err error
	if r.Order, err = c.function("order", takesChild); err != nil {
		return nil, err
	}
	if r.Before, err = c.function("before", takesChild); err != nil {
		return nil, err
	}
	r.PauseFn, err = c.function("pause", takesCtx)
	return &declared[rolling]{"rolling", r}, err
}

// DesiredOf reads what desired returned: a list of part(…), set_fields(…) and rolling(…), waiting("…"),
// stalled("…") or None. It refuses lists of more than [reconcile.MaxParts] parts, and those of which two
// are the same or wait for each other.
func DesiredOf(v starlark.Value) (Desired, error) {
	switch v := v.(type) {
	case starlark.NoneType:
		return Desired{Hold: true}, nil
	case *declared[Decision]:
		if v.val.Answer == AnswerWaiting {
			return Desired{Hold: true, Waiting: v.val.Reason}, nil
		}
	case *declared[stall]:
		return Desired{Hold: true, Stalled: string(v.val)}, nil
	case *declared[Part], *declared[rolling]:
		return Desired{}, fmt.Errorf("desired returned one %s; return a list, [%s(…)]", v.Type(), v.Type())
	case *starlark.List, starlark.Tuple:
		return desiredList(v.(starlark.Indexable))
	}
	return Desired{}, fmt.Errorf(`desired returned %s; it must return a list of part(…), set_fields(…) and rolling(…), or waiting("…"), stalled("…") or None`, v.Type())
}

func desiredList(list starlark.Indexable) (d Desired, err error) {
	for i := range list.Len() {
		switch v := list.Index(i).(type) {
		case *declared[Part]:
			d.Parts = append(d.Parts, v.val)
		case *declared[rolling]:
			r := v.val.Rollout
			r.Name = fmt.Sprintf("rolling %d", len(d.Rollouts)+1)
			d.Rollouts = append(d.Rollouts, r)
			for rank, p := range v.val.parts {
				p.Rolling, p.Rank = r.Name, rank
				d.Parts = append(d.Parts, p)
			}
		case *declared[Decision], *declared[stall]:
			return Desired{}, fmt.Errorf("desired returned a list with %s at element %d; return %s(…) alone", v.Type(), i, v.Type())
		default:
			return Desired{}, fmt.Errorf("desired returned a list with %s at element %d; it must hold part(…), set_fields(…) and rolling(…)", v.Type(), i)
		}
	}
	if _, err := reconcile.Layers(d.Wanted().Parts); err != nil {
		return Desired{}, fmt.Errorf("desired: %w", err)
	}
	return d, nil
}

// child makes sure that the controller may have the object as a child.
func (c *call) child(id reconcile.ID, object map[string]any) error {
	ref, in := id.Ref, c.run.Instance
	if !c.run.Free && (in.Owns(ref) || in.LivesIn(ref) || in.OwnsObject(ref.APIVersion, ref.Kind, object)) {
		return c.notCovered("own", ref)
	}
	kind := reconcile.Kind{APIVersion: ref.APIVersion, Kind: ref.Kind}
	if id.Fields {
		if c.run.Fields == nil || slices.Contains(c.run.Fields, kind) {
			return nil
		}
		return fmt.Errorf("%s is of a kind of which the controller has no fields; add owns(%q, %q, fields = True) to owns", ref, ref.APIVersion, ref.Kind)
	}
	if c.run.Owns == nil || slices.Contains(c.run.Owns, kind) {
		return nil
	}
	return fmt.Errorf("%s is of a kind that the controller does not own; add owns(%q, %q) to owns", ref, ref.APIVersion, ref.Kind)
}
