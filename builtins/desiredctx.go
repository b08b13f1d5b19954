package builtins

import (
	"cmp"
	"slices"
	"strings"

	startime "go.starlark.net/lib/time"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// Ctx is the value that the functions of a controller are called with: the key of the parent, the parent as its watch
// keeps it, its children as they are, what was observed, and what they may ask besides (nil: there is nothing). It is
// frozen.
func (q Question) Ctx() starlark.Value {
	lookups, observed, at := q.Lookups, starlark.Value(starlark.None), starlark.Value(starlark.None)
	if lookups == nil {
		lookups = NewLookups(LookupsOptions{})
	}
	if q.Observed != nil {
		observed, at = object.FromPlain(q.Observed.Value), startime.Time(q.Observed.At)
	}
	values := make([]starlark.Value, 0, len(q.Children))
	for _, c := range sortedChildren(q.Children) {
		if c.Foreign == "" && !c.Fields {
			values = append(values, childValue(c))
		}
	}
	ctx := &withFields{Opaque: "ctx", fields: starlark.StringDict{
		"key": starlark.String(q.Key), "object": q.Parent, "children": starlark.NewList(values),
		"observed": observed, "observed_at": at,
		"reads": readsValue{"reads", lookups}, "reached": starlark.NewBuiltin("reached", lookups.reached),
	}}
	ctx.fields.Freeze()
	return ctx
}

// sortedChildren are children by kind, namespace and name: the same ones come in the same order.
// To move a pointer takes less time than to move a child.
func sortedChildren(children []reconcile.Child) []*reconcile.Child {
	out := make([]*reconcile.Child, len(children))
	for i := range children {
		out[i] = &children[i]
	}
	slices.SortFunc(out, func(a, b *reconcile.Child) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return out
}

// childValue is one child, as functions see it.
func childValue(c *reconcile.Child) starlark.Value {
	return starlarkstruct.FromStringDict(starlark.String("child"), starlark.StringDict{
		"kind": starlark.String(c.Kind), "namespace": starlark.String(c.Namespace), "name": starlark.String(c.Name),
		"ready": starlark.Bool(c.Ready), "reason": starlark.String(c.Reason), "deleting": starlark.Bool(c.Deleting),
	})
}
