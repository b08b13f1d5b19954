package builtins

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	startime "go.starlark.net/lib/time"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/message"
)

// CtxOptions is what a hook finds in its argument, ctx.
type CtxOptions struct {
	// Events say why the hook runs, in order. They are hints: the same run may see
	// them twice, or one sync instead of many.
	Events []Event
	// Snapshots holds one list a watch of the hook, by the watch's name, sorted by
	// namespace and name. The values must be frozen; the slices are kept.
	Snapshots map[string][]starlark.Value
	// Lacking names, by watch, an object that its list lacks: to ask for the list is an error then.
	Lacking map[string]string
	// Asked, when not nil, is told of each snapshot that the hook looks at, once.
	Asked func(binding string)
	// Synced tells for each watch whether it has seen all objects there are.
	Synced map[string]bool
	Module ModuleInfo
	// Now is the time of the run.
	Now time.Time
	// Attempt counts the tries of this run, from 1.
	Attempt int
	// Key and Object are what the run of a hook with for_each is about: "ns/name"
	// and what the watch keeps of it. Without: "" and nil.
	Key    string
	Object starlark.Value
	// Request is what a request run answers; nil in any other run.
	Request *Request
}

// ModuleInfo is ctx.module.
type ModuleInfo struct{ Name, Namespace, Release string }

// Event is one reason for a run.
type Event struct {
	// Type is "startup", "schedule", "sync", "added", "modified", "deleted",
	// "requeue", "request", "values" for a controller that has looked at them, or "helm", "delete" and "all" for the stages that Binding names.
	Type string
	// Binding is the name of the binding that triggered.
	Binding string
	// Namespace and Name are those of the object, for added, modified and deleted.
	Namespace, Name string
	// Result is what the watch keeps of the object, for added, modified and deleted; frozen.
	Result starlark.Value
	// Object is the object that Result was made of, with keep="object" or "both"; else nil.
	Object starlark.Value
	// Old is what Result was before, for modified, with old=True; else nil.
	Old starlark.Value
	// Deleting, of a watch with a finalizer: the object is being deleted. Held: it
	// has the finalizer. Same: nothing but these has changed.
	Deleting, Held, Same bool
	// Lacks, of a watch with for_each: the object has no result yet.
	Lacks bool
	// Wakes, of a watch beside that of for_each, says which objects it is for; nil: all. Hooks do not see it.
	Wakes *effect.Wakes
	// Cause says which runs have brought it about; nil: none. Hooks do not see it.
	Cause *effect.Cause
	// Asked: somebody has asked for the run, and nothing has happened. Hooks do not see it.
	Asked bool
	// Request is what somebody asks, for "request". Hooks see it as ctx.request.
	Request *Request
}

// NewCtx returns the value that a hook is called with. It is frozen.
func NewCtx(o CtxOptions) starlark.Value {
	events := make([]starlark.Value, len(o.Events))
	for i, e := range o.Events {
		events[i] = e.value()
	}
	synced := make(map[string]starlark.Value, len(o.Synced))
	for name, done := range o.Synced {
		synced[name] = starlark.Bool(done)
	}
	// A list is made when it is asked for: to freeze it takes a look at each object.
	snapshots := make(map[string]starlark.Value, len(o.Snapshots))
	for name := range o.Snapshots {
		snapshots[name] = nil
	}
	ctx := &withFields{Opaque: "ctx", fields: starlark.StringDict{
		"events":    starlark.NewList(events),
		"snapshots": &watches{"snapshots", snapshots, o.Snapshots, o.Lacking, o.Asked},
		"synced":    &watches{name: "synced", values: synced},
		"module": starlarkstruct.FromStringDict(starlark.String("module"), starlark.StringDict{
			"name":      starlark.String(o.Module.Name),
			"namespace": starlark.String(o.Module.Namespace),
			"release":   starlark.String(o.Module.Release),
		}),
		"now":     startime.Time(o.Now),
		"attempt": starlark.MakeInt(o.Attempt),
		"state":   &namespace{name: "ctx.state", members: members("ctx.state.", stateSpecs())},
		"request": o.Request.value(),
		"key":     starlark.None,
		"object":  starlark.None,
	}}
	if o.Key != "" {
		ctx.fields["key"], ctx.fields["object"] = starlark.String(o.Key), o.Object
	}
	ctx.fields.Freeze()
	return ctx
}

func (e Event) value() starlark.Value {
	fields := starlark.StringDict{"type": starlark.String(e.Type), "binding": starlark.String(e.Binding)}
	switch e.Type {
	case "added", "modified", "deleted":
		fields["namespace"] = starlark.String(e.Namespace)
		fields["name"] = starlark.String(e.Name)
		fields["result"] = starlark.None
		if e.Result != nil {
			fields["result"] = e.Result
		}
		if e.Object != nil {
			fields["object"] = e.Object
		}
		if e.Old != nil {
			fields["old"] = e.Old
		} else if e.Type == "modified" {
			fields["old"] = starlark.None
		}
	}
	return starlarkstruct.FromStringDict(starlark.String("event"), fields)
}

// withFields is a value that is shown as a whole, and has fields: ctx.
type withFields struct {
	spec.Opaque
	fields starlark.StringDict
	// shown is its text; "": its type.
	shown string
	// late are further fields, made when they are looked at: most are not. Made ones are in known.
	late  []string
	make  func(name string) (starlark.Value, error)
	known map[string]starlark.Value
}

var _ starlark.HasAttrs = (*withFields)(nil)

func (v *withFields) String() string      { return cmp.Or(v.shown, v.Opaque.String()) }
func (v *withFields) AttrNames() []string { return append(v.fields.Keys(), v.late...) }

// Attr leaves the error about an absent field to go.starlark.net, which suggests.
func (v *withFields) Attr(name string) (starlark.Value, error) {
	if !slices.Contains(v.late, name) {
		return v.fields[name], nil
	}
	if v.known[name] == nil {
		made, err := v.make(name)
		if err != nil {
			return nil, err
		}
		if v.known == nil {
			v.known = map[string]starlark.Value{}
		}
		v.known[name] = made
	}
	return v.known[name], nil
}

// watches is ctx.snapshots or ctx.synced: one value for each watch of the hook.
type watches struct {
	name   string
	values map[string]starlark.Value
	// lists become those of values that are nil, frozen, when they are asked for.
	lists map[string][]starlark.Value
	// lacking names an object that a list lacks.
	lacking map[string]string
	// asked is told when that happens; may be nil.
	asked func(name string)
}

func (w *watches) value(name string) starlark.Value {
	v := w.values[name]
	if v == nil {
		v = starlark.NewList(w.lists[name])
		v.Freeze()
		w.values[name] = v
		if w.asked != nil {
			w.asked(name)
		}
	}
	return v
}

var (
	_ starlark.IterableMapping = (*watches)(nil)
	_ starlark.Sequence        = (*watches)(nil)
)

func (w *watches) String() string        { return "<ctx." + w.name + ">" }
func (w *watches) Type() string          { return w.name }
func (w *watches) Truth() starlark.Bool  { return len(w.values) > 0 }
func (w *watches) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable type: %s", w.name) }
func (w *watches) Len() int              { return len(w.values) }

// Freeze does nothing: what a watches holds is frozen, or will be.
func (w *watches) Freeze() {}

// Get returns the value of a watch; an unknown one is an error with a suggestion.
func (w *watches) Get(k starlark.Value) (starlark.Value, bool, error) {
	name, ok := starlark.AsString(k)
	if !ok {
		return nil, false, fmt.Errorf("ctx.%s: got %s, want the name of a watch", w.name, k.Type())
	}
	if object := w.lacking[name]; object != "" {
		return nil, false, fmt.Errorf("ctx.snapshots[%q] lacks %s: the filter fails on it and has given no result yet; mend the object or the filter, or use ctx.object alone", name, object)
	}
	if _, ok := w.values[name]; ok {
		return w.value(name), true, nil
	}
	names := slices.Sorted(maps.Keys(w.values))
	hint := message.DidYouMean(name, names, "the hook watches "+strings.Join(names, ", "))
	if len(names) == 0 {
		hint = "the hook has no watch"
	}
	return nil, false, fmt.Errorf("ctx.%s has no %q (%s)", w.name, spec.Clip(name), hint)
}

// Iterate goes over the names of the watches, sorted.
func (w *watches) Iterate() starlark.Iterator {
	var names []starlark.Value
	for _, name := range slices.Sorted(maps.Keys(w.values)) {
		names = append(names, starlark.String(name))
	}
	return starlark.Tuple(names).Iterate()
}

// Items returns the watches with their values, sorted by name; None for a list that lacks an object.
func (w *watches) Items() []starlark.Tuple {
	var items []starlark.Tuple
	for _, name := range slices.Sorted(maps.Keys(w.values)) {
		v := starlark.Value(starlark.None)
		if w.lacking[name] == "" {
			v = w.value(name)
		}
		items = append(items, starlark.Tuple{starlark.String(name), v})
	}
	return items
}
