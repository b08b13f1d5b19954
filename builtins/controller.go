package builtins

import (
	"errors"
	"fmt"
	"strings"

	"go.starlark.net/starlark"

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
}

// FieldsBinding begins the names of the watches of [FieldsOf].
const FieldsBinding = "fields-"

// Owned is owns(…).
type Owned struct {
	reconcile.Kind
	Fields bool
	Pos    string
}

func controllerSpecs() []Spec {
	return []Spec{
		{
			Name: "controller", Phases: PhaseLoad, call: callController,
			Doc: "Registers a controller: each object of parent gets the children that desired returns, and they stay so. One that somebody changes or deletes is put right, one that is not wanted any more is deleted, and all are deleted before the parent goes; a finalizer keeps it until then. Only files under hooks/ register controllers.",
			Params: []Param{
				{Name: "name", Type: TypeString, Doc: "The controller's id, unique among the hooks of its module. Children carry it: under another name it takes them for somebody else's."},
				{Name: "parent", Type: TypeAny, Doc: "The parents: k8s.watch(…), without filter."},
				{Name: "desired", Type: TypeFunction, Doc: "A function that takes ctx and the parent, and returns the list of its part(…), rolling(…) and set_fields(…), or waiting(…), stalled(…) or None. It neither reads nor writes, and knows no time. ctx has .key, .object (the parent), .children (a list of .kind, .namespace, .name, .ready, .reason and .deleting), .reads (see reads=) and .reached(t): whether a time has come, which is a time or text as metadata.creationTimestamp; if not, desired is called again then. It may look at values, too, and is called again when they change."},
				{Name: "owns", Type: TypeList, Keyword: true, Doc: "The kinds that children may be of, and those for set_fields(…): a list of owns(…). They need no grant."},
				{Name: "reads", Type: TypeDict, Default: "{}", Keyword: true, Doc: "Other objects that desired and status look at: a dict of k8s.watch(…) by name. ctx.reads.NAME.get(\"namespace/name\") is a row, what the filter has made of the object, or None; .by(index, value) is a list of those that an index= of the watch finds; .all() is a list of all, sorted by namespace and name. A change wakes those parents that have looked there, also where they found nothing."},
				{Name: "adopt", Type: TypeBool, Default: "False", Keyword: true, Doc: "Takes over an object of a part's name that is there already, and deletes it in the end as any other child. One that has another controller, is of a Helm release or has fill= is left alone all the same."},
				{Name: "drift", Type: TypeString, Default: `"repair"`, Keyword: true, Doc: "How changes of others in a child are treated: \"repair\" puts it right; \"report\" names it in the parent's status and lets it stand until desired wants another state. One that is gone is made anew in any case."},
				{Name: "status", Type: TypeFunction, Default: "None", Keyword: true, Doc: "A function that takes ctx and the parent, as desired does, and returns a dict: fields of the parent's status. Starling writes observedGeneration and the conditions Ready, Reconciling and Stalled beside them. None: those alone, where the module declares the kind of the parents, by crd(…) or in crds/; elsewhere their status is left alone."},
				{Name: "cleanup", Type: TypeFunction, Default: "None", Keyword: true, Doc: "A function that takes ctx and a parent that is being deleted, as desired does. It returns None or [] when it is done: all children go. It returns waiting(…) when nothing may be deleted yet, or a list of part(…) that must be there for now: all others go. It is called again when desired would be, until it is done. Default: all children go."},
				{Name: "parallel", Type: TypeInt, Default: "8", Keyword: true, Doc: "How many parents are looked at side by side, 1 to 100."},
				{Name: "timeout", Type: TypeDuration, Default: `"30s"`, Keyword: true, Doc: "How long desired may take, at most 10m."},
				{Name: "retry", Type: TypeRetry, Default: "None", Keyword: true, Doc: "How often a child is tried again whose write fails; None: retry()."},
				{Name: "min_interval", Type: TypeDuration, Default: "None", Keyword: true, Doc: "Mean time between two looks at parents, of all parents together. Earlier changes of a parent wait, as one look, its deletion too."},
			},
		},
		{
			Name: "owns", Phases: PhaseLoad, call: callOwns, Returns: "a kind, for controller(owns = […])",
			Doc: "A kind of which a controller has children, or sets fields.",
			Params: []Param{
				{Name: "api_version", Type: TypeString, Doc: "API version, as in manifests: \"v1\", \"apps/v1\"."},
				{Name: "kind", Type: TypeString, Doc: "Kind, as in manifests: \"Deployment\"."},
				{Name: "fields", Type: TypeBool, Default: "False", Keyword: true, Doc: "Whether it is a kind for set_fields: objects of others, which are neither made nor deleted. Starling watches all of the kind."},
			},
		},
	}
}

func callOwns(c *call) (starlark.Value, error) {
	o := Owned{Kind: reconcile.Kind{APIVersion: c.str("api_version"), Kind: c.str("kind")}, Fields: c.boolOr("fields", false), Pos: c.pos()}
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
		Fn: c.arg("desired").(starlark.Callable), Controller: &ControllerDecl{}, Retry: DefaultRetry, Burst: 1,
		Timeout: c.durationOr("timeout", defaultHookTimeout), Parallel: c.intOr("parallel", defaultControllerParallel),
		MinInterval: c.durationOr("min_interval", 0), Pos: c.pos(),
	}
	if r, given := c.arg("retry").(*declared[Retry]); given {
		h.Retry = r.val
	}
	if h.Timeout == 0 || h.Timeout > maxHookTimeout {
		return nil, fmt.Errorf("timeout: %s is not between 0 and %s", h.Timeout, maxHookTimeout)
	}
	if h.Parallel < 1 || h.Parallel > maxParallel {
		return nil, fmt.Errorf("parallel: got %d, want 1 to %d", h.Parallel, maxParallel)
	}
	if err := takesParent(h.Fn); err != nil {
		return nil, fmt.Errorf("desired: %w", err)
	}
	h.Controller.Adopt = c.boolOr("adopt", false)
	var err error
	if h.Controller.Drift, err = oneOf(c.strOr("drift", DriftRepair), []string{DriftRepair, DriftReport}); err != nil {
		return nil, fmt.Errorf("drift: %w", err)
	}
	if h.Controller.Status, err = c.parentFn("status"); err != nil {
		return nil, err
	}
	if h.Controller.Cleanup, err = c.parentFn("cleanup"); err != nil {
		return nil, err
	}
	if err = c.parent(h); err != nil {
		return nil, fmt.Errorf("parent: %w", err)
	}
	if err = c.owns(h); err != nil {
		return nil, fmt.Errorf("owns: %w", err)
	}
	if err := c.reads(h); err != nil {
		return nil, fmt.Errorf("reads: %w", err)
	}
	return nil, c.register(h)
}

// parentFn reads a function of ctx and the parent; nil: none is given.
func (c *call) parentFn(name string) (starlark.Callable, error) {
	fn, given := c.arg(name).(starlark.Callable)
	if !given {
		return nil, nil
	}
	if err := takesParent(fn); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return fn, nil
}

// parent reads parent= into the first binding.
func (c *call) parent(h *HookDecl) error {
	b, is := c.arg("parent").(*declared[Binding])
	switch {
	case !is || b.val.Watch == nil:
		return fmt.Errorf("got %s, want k8s.watch(…)", c.arg("parent").Type())
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
	list := c.arg("owns").(starlark.Indexable)
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
		switch {
		case seen[binding.Name]:
			return fmt.Errorf("element %d: %s %s is there twice", i, kind.APIVersion, kind.Kind)
		case !o.val.Fields && kind.Kind == parent.Kind && groupOf(kind.APIVersion) == groupOf(parent.APIVersion):
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
	id := strings.ToLower(kind.Kind + "." + groupOf(kind.APIVersion))
	return Binding{
		Name:  "children-" + strings.TrimSuffix(id, "."),
		Watch: &WatchBinding{APIVersion: kind.APIVersion, Kind: kind.Kind, FilterID: "object", Pos: pos},
	}
}
