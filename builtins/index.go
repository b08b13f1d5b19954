package builtins

import (
	"fmt"
	"regexp"
	"slices"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/object"
)

// Index finds the rows of a watch by a value of their objects.
type Index struct {
	Name string
	// Path is where an object has the value, or a list of them.
	Path object.Path `json:"-"`
	// Fn, in the place of Path, takes the object and returns the value, a list of them, or None.
	Fn starlark.Callable `json:"-"`
	// ID is for the index what FilterID is for the filter.
	ID string
}

// WakesByCode says whether a function of the author says whom an event is for.
func (w *WatchBinding) WakesByCode() bool {
	return w.Wakes != nil || slices.ContainsFunc(w.Index, func(x Index) bool { return x.Fn != nil })
}

// identifier is a name that stands behind a dot.
var identifier = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)

// indexes reads index= into w.
func (c *call) indexes(w *WatchBinding) error {
	given, is := c.Arg("index").(starlark.IterableMapping)
	if !is {
		return nil
	}
	for _, item := range given.Items() {
		name, _ := starlark.AsString(item[0])
		if !identifier.MatchString(name) {
			return fmt.Errorf("%s is no name of an index: small letters, digits and _", spec.Clip(item[0].String()))
		}
		x := Index{Name: name}
		if fn, callable := item[1].(starlark.Callable); callable {
			if err := takesOne(fn, "the object"); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			x.Fn, x.ID = fn, filterID(fn)
		} else {
			var err error
			if x.Path, err = object.ParsePath(item[1]); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			x.ID = "path " + x.Path.String()
		}
		w.Index = append(w.Index, x)
	}
	return nil
}

// noIndex refuses watches with index= where nobody looks anything up.
func noIndex(bindings []Binding) error {
	for _, b := range bindings {
		if b.Watch != nil && b.Watch.Index != nil {
			return fmt.Errorf("index: of watch %q: means nothing outside of controller(reads = …)", b.Name)
		}
	}
	return nil
}

// reads reads reads= into bindings.
func (c *call) reads(h *HookDecl) error {
	given, is := c.Arg("reads").(starlark.IterableMapping)
	if !is {
		return nil
	}
	for _, item := range given.Items() {
		name, _ := starlark.AsString(item[0])
		if !identifier.MatchString(name) {
			return fmt.Errorf("%s is no name: small letters, digits and _, for ctx.reads", spec.Clip(item[0].String()))
		}
		b, is := item[1].(*declared[Binding])
		if !is || b.val.Watch == nil {
			return fmt.Errorf("%s: got %s, want k8s.watch(…)", name, item[1].Type())
		}
		w := *b.val.Watch // others may have it, too
		switch {
		case w.Events != nil || w.Quiet || w.NoGate:
			return fmt.Errorf("%s: each change counts; leave events, sync and gate out", name)
		case w.Wakes != nil || w.WakesAll:
			return fmt.Errorf("%s: a change wakes those that have looked there; leave wakes out", name)
		case w.KeepObject || w.Old:
			return fmt.Errorf("%s: nobody sees the events; leave keep and old out", name)
		}
		w.Read = name
		h.Bindings = append(h.Bindings, Binding{Name: readsBinding + name, Watch: &w})
	}
	return nil
}
