package builtins

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// defaultControllerParallel is controller(parallel=).
const defaultControllerParallel = 8

// ControllerDecl is what a controller has beside other hooks with for_each. [HookDecl].Fn is its
// desired function.
type ControllerDecl struct {
	// Owns are the kinds that its children may be of, with a watch each among the bindings, as what it reads.
	Owns []reconcile.Kind
	// Fields are the kinds of objects of others of which it may set fields, with a watch each, too.
	Fields []reconcile.Kind `json:",omitempty"`
	// Adopt has it take over objects that are there before it has made them.
	Adopt bool `json:",omitempty"`
	// Drift says what becomes of changes of others in children: [DriftReport], or else they are put right.
	Drift string `json:",omitempty"`
	// Status takes ctx and the parent, and returns fields of the parent's status; nil: none.
	Status starlark.Callable `json:"-"`
	// Cleanup takes ctx and the parent that is being deleted, and says what must stay for now; nil: nothing.
	Cleanup starlark.Callable `json:"-"`
	// Observes is the id of the controller whose parents the hook observes, "" of a controller itself: then
	// [HookDecl].Fn is its observe function, and Act its act function, nil for none. It observes a parent again after
	// Every.
	Observes string            `json:",omitempty"`
	Act      starlark.Callable `json:"-"`
	Every    time.Duration     `json:",omitempty"`
	// Observed says that the controller has such a hook.
	Observed bool `json:",omitempty"`
}

// FieldsBinding begins the names of the watches of [FieldsOf].
const FieldsBinding = "fields-"

// Owned is owns(…).
type Owned struct {
	reconcile.Kind
	Fields bool
	Pos    string
}

func controllerSpecs() []spec.Spec {
	return []spec.Spec{
		declare("controller", spec.InLoad, spec.NoEffect, callController, spec.Required("name", spec.String),
			spec.Required("parent", spec.Any), spec.Required("desired", spec.Function), spec.Keyword("owns", spec.List, ""),
			spec.Keyword("reads", spec.Dict, "{}"), spec.Keyword("adopt", spec.Bool, "False"),
			spec.Keyword("drift", spec.String, `"repair"`), spec.Keyword("status", spec.Function, "None"),
			spec.Keyword("cleanup", spec.Function, "None"), spec.Keyword("observe", spec.Function, "None"),
			spec.Keyword("every", spec.Duration, `"10s"`).UpTo(maxEvery), spec.Keyword("act", spec.Function, "None"),
			spec.Keyword("parallel", spec.Int, "8"),
			spec.Keyword("timeout", spec.Duration, `"30s"`).UpTo(maxHookTimeout), spec.Keyword("retry", spec.Retry, "None"),
			spec.Keyword("min_interval", spec.Duration, "None")),
		declare("owns", spec.InLoad, spec.NoEffect, callOwns, spec.Required("api_version", spec.String),
			spec.Required("kind", spec.String), spec.Keyword("fields", spec.Bool, "False")),
	}
}

func callOwns(c *call) (starlark.Value, error) {
	o := Owned{Kind: reconcile.Kind{APIVersion: c.Str("api_version"), Kind: c.Str("kind")}, Fields: c.BoolOr("fields", false), Pos: c.Pos()}
	if err := checkKind(o.APIVersion, o.Kind.Kind); err != nil {
		return nil, err
	}
	return &declared[Owned]{"owns", o}, nil
}

func callController(c *call) (starlark.Value, error) {
	if c.ctx.File.Role&RoleHooks == 0 {
		return nil, fmt.Errorf("only files under hooks/ register controllers; this is %s", c.ctx.File.Path)
	}
	h := &HookDecl{
		Controller: &ControllerDecl{Adopt: c.BoolOr("adopt", false)}, Retry: DefaultRetry, Burst: 1,
		Timeout: c.DurationOr("timeout", defaultHookTimeout), Parallel: c.IntOr("parallel", defaultControllerParallel),
		MinInterval: c.DurationOr("min_interval", 0), Pos: c.Pos(),
	}
	if r, given := c.Arg("retry").(*declared[Retry]); given {
		h.Retry = r.val
	}
	if h.Parallel < 1 || h.Parallel > maxParallel {
		return nil, fmt.Errorf("parallel: got %d, want 1 to %d", h.Parallel, maxParallel)
	}
	var err error
	if h.Fn, err = c.function("desired", takesParent); err != nil {
		return nil, err
	}
	if h.Controller.Drift, err = c.word("drift", DriftRepair, DriftReport); err != nil {
		return nil, err
	}
	if h.Controller.Status, err = c.function("status", takesParent); err != nil {
		return nil, err
	}
	if h.Controller.Cleanup, err = c.function("cleanup", takesParent); err != nil {
		return nil, err
	}
	for _, part := range []struct {
		param string
		read  func(*HookDecl) error
	}{{"parent", c.parent}, {"owns", c.owns}, {"reads", c.reads}} {
		if err := part.read(h); err != nil {
			return nil, fmt.Errorf("%s: %w", part.param, err)
		}
	}
	if err := c.register(h); err != nil {
		return nil, err
	}
	return nil, c.observer(h)
}

// parent reads parent= into the first binding.
func (c *call) parent(h *HookDecl) error {
	b, is := c.Arg("parent").(*declared[Binding])
	switch {
	case !is || b.val.Watch == nil:
		return fmt.Errorf("got %s, want k8s.watch(…)", c.Arg("parent").Type())
	case b.val.Watch.Filter != nil || b.val.Watch.FilterFields != nil || b.val.Watch.KeepObject || b.val.Watch.Old:
		return errors.New("desired sees the whole object as it is; leave filter, keep and old out")
	case b.val.Watch.Events != nil || b.val.Watch.Quiet:
		return errors.New("each change of a parent counts; leave events and sync out")
	case b.val.Watch.Index != nil:
		return errors.New("index is for reads; leave it out")
	}
	if b.val.Name == "" {
		b.val.Name = b.val.defaultName()
	}
	h.ForEach, h.Bindings = b.val.Name, []Binding{b.val}
	return nil
}

// owns reads owns= into bindings: a watch a kind, of children alone.
func (c *call) owns(h *HookDecl) error {
	list := c.Arg("owns").(starlark.Indexable)
	if list.Len() == 0 {
		return errors.New("the list is empty, so there could be no child")
	}
	parent := h.Bindings[0].Watch
	seen := map[string]bool{}
	for i := range list.Len() {
		o, is := list.Index(i).(*declared[Owned])
		if !is {
			return fmt.Errorf("element %d: got %s, want owns(…)", i, list.Index(i).Type())
		}
		kind := o.val.Kind
		binding, to := ChildrenOf(kind, o.val.Pos), &h.Controller.Owns
		if o.val.Fields {
			binding, to = FieldsOf(kind, o.val.Pos), &h.Controller.Fields
		}
		sameGroup := effect.GroupOf(kind.APIVersion) == effect.GroupOf(parent.APIVersion)
		switch {
		case seen[binding.Name]:
			return fmt.Errorf("element %d: %s %s is there twice", i, kind.APIVersion, kind.Kind)
		case !o.val.Fields && kind.Kind == parent.Kind && sameGroup:
			return fmt.Errorf("element %d: the parents are of that kind", i)
		}
		seen[binding.Name] = true
		*to = append(*to, kind)
		h.Bindings = append(h.Bindings, binding)
	}
	return nil
}

// FieldsOf is the watch of all objects of a kind of which a controller sets fields; pos is where that stands.
func FieldsOf(kind reconcile.Kind, pos string) Binding {
	b := ChildrenOf(kind, pos)
	b.Name = FieldsBinding + strings.TrimPrefix(b.Name, "children-")
	b.Watch.FilterID, b.Watch.HoldsFields = "fields", true
	return b
}

// ChildrenOf is the watch of the children of a kind; pos is where that stands.
func ChildrenOf(kind reconcile.Kind, pos string) Binding {
	id := strings.ToLower(kind.Kind + "." + effect.GroupOf(kind.APIVersion))
	return Binding{
		Name:  "children-" + strings.TrimSuffix(id, "."),
		Watch: &WatchBinding{APIVersion: kind.APIVersion, Kind: kind.Kind, FilterID: "object", Pos: pos},
	}
}
