package builtins

import (
	"errors"
	"fmt"
	"slices"

	"go.starlark.net/starlark"

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
	// Fill are values of Object that are made with it.
	Fill []Fill
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
	// PauseFn takes ctx and returns why no part begins now, or None. Nil: nothing stops it.
	PauseFn starlark.Callable `json:"-"`
}

// rolling is the value of rolling(…).
type rolling struct {
	Rollout
	parts []Part
}

// stall is the value of stalled(…): the reason.
type stall string

func desiredSpecs() []Spec {
	const answer = "an answer of desired"
	return append([]Spec{
		{Name: "part", Phases: PhaseDesired, call: callPart, Returns: "a part, for the list that desired returns",
			Doc: "An object that the parent wants to be there. Starling makes it, keeps it so, and deletes it once desired does not list it any more. An object of that name that somebody else has made is left alone, and named as the failure.",
			Params: []Param{
				{Name: "obj", Type: TypeDict, Doc: "The object: apiVersion, kind, metadata.name and the fields that it should have; others may set all other fields. Its kind must be in owns. metadata.namespace defaults to the parent's, or else to the module's."},
				{Name: "name", Type: TypeString, Default: "None", Keyword: true, Doc: "Name of the part, unique in the list, for after= and messages; None: kind, namespace and name, \"Deployment shop/web\"."},
				{Name: "after", Type: TypeStrings, Default: "[]", Keyword: true, Doc: "Names of parts that must be written and ready before this one is made, or comes to a new state. To put back what somebody has changed waits for none of them. Parts are deleted in the reverse order."},
				{Name: "ready", Type: TypeAny, Default: `"auto"`, Keyword: true, Doc: "How to tell that it is ready: \"auto\", by its status; \"exists\", once it is there; or a function that takes the child and returns True or False. The child has .kind, .namespace, .name, .ready and .reason, as \"auto\" tells them, and .deleting; its spec and status are in a row of reads=, which a function inside of desired may look at, too."},
				{Name: "update", Type: TypeString, Default: `"apply"`, Keyword: true, Doc: "How it comes to a new state: \"apply\" changes it; \"recreate\" changes it too, and where the API server refuses that, because a field cannot be changed, deletes it and makes it anew; \"never\" leaves it as it was made."},
				{Name: "owner", Type: TypeBool, Default: "None", Keyword: true, Doc: "Whether the parent becomes its owner, so that Kubernetes deletes it with the parent; None: where that is possible, in the parent's namespace or below a cluster-scoped parent. Without it Starling deletes it, for which a finalizer keeps the parent."},
				{Name: "retain", Type: TypeBool, Default: "False", Keyword: true, Doc: "Whether it stays when desired does not list it any more, and when the parent is deleted."},
				{Name: "fill", Type: TypeDict, Default: "{}", Keyword: true, Doc: "Keys of a Secret's data that Starling makes with the object, and that stay as they are from then on: {\"data.password\": generate.password()}."},
			}},
		fieldsSpec(),
		{Name: "rolling", Phases: PhaseDesired, call: callRolling, Returns: "parts, for the list that desired returns",
			Doc: "Has parts that are there come to a new state a few at a time; those whose turn has not come stay as they are. Parts that are not there are made at once. One that is not ready goes first.",
			Params: []Param{
				{Name: "parts", Type: TypeList, Doc: "The parts: a list of part(…)."},
				{Name: "max_unavailable", Type: TypeInt, Default: "1", Keyword: true, Doc: "How many of them may be on their way, or not ready, at a time."},
				{Name: "order", Type: TypeFunction, Default: "None", Keyword: true, Doc: "A function that takes a child, as that of part(ready=) does, and returns an int or a text; small ones go first. None: as they are listed."},
				{Name: "pause", Type: TypeFunction, Default: "None", Keyword: true, Doc: "A function that takes ctx and returns why no other one begins now, or None."},
			}},
		{Name: "stalled", Phases: PhaseDesired, call: callStalled, Returns: answer,
			Doc:    "Answer of desired: nothing can be done before something changes at which desired has looked, most often the parent. Nothing is written or deleted.",
			Params: []Param{{Name: "reason", Type: TypeString, Doc: "The reason, for people; shown as a failure."}}},
		{Name: "progressing", Phases: PhaseDesired, call: callProgressing,
			Doc:    "Holds back the condition Ready of the parent, which is Unknown with this text, though all children are ready. Children are written all the same. desired and status may call it; the last call counts.",
			Params: []Param{{Name: "text", Type: TypeString, Doc: "Text for people, about what is under way: \"1 of 3 members has joined\"."}}},
	}, generateSpecs()...)
}

func callProgressing(c *call) (starlark.Value, error) {
	if c.run.Progressing = c.str("text"); c.run.Progressing == "" {
		return nil, errors.New("text: got no text; say what is under way")
	}
	return starlark.None, nil
}

func callStalled(c *call) (starlark.Value, error) {
	return &declared[stall]{"stalled", stall(c.str("reason"))}, nil
}

func callRolling(c *call) (starlark.Value, error) {
	r := rolling{Rollout: Rollout{Rollout: reconcile.Rollout{MaxUnavailable: c.intOr("max_unavailable", 1)}}}
	if r.MaxUnavailable < 1 || r.MaxUnavailable > reconcile.MaxParts {
		return nil, fmt.Errorf("max_unavailable: got %d, want 1 to %d", r.MaxUnavailable, reconcile.MaxParts)
	}
	list := c.arg("parts").(starlark.Indexable)
	for i := range list.Len() {
		p, ok := list.Index(i).(*declared[Part])
		if !ok || p.val.ID.Fields {
			return nil, fmt.Errorf("parts: element %d: got %s, want part(…)", i, list.Index(i).Type())
		}
		r.parts = append(r.parts, p.val)
	}
	if fn, given := c.arg("order").(starlark.Callable); given {
		if err := takesOne(fn, "child"); err != nil {
			return nil, fmt.Errorf("order: %w", err)
		}
		r.Order = fn
	}
	if fn, given := c.arg("pause").(starlark.Callable); given {
		if err := takesOne(fn, "ctx"); err != nil {
			return nil, fmt.Errorf("pause: %w", err)
		}
		r.PauseFn = fn
	}
	return &declared[rolling]{"rolling", r}, nil
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
