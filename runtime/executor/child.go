package executor

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/object"
)

// child is what the watch of a controller keeps of a child: no more than runs look at, packed. A change of
// all else is no event. It is a Starlark value because watches keep nothing else; no script sees it.
type child struct{ packed object.Packed }

// keepChildren has a watch keep children of a controller.
func keepChildren(a engine.StartWatch) (filter func(map[string]any) (starlark.Value, bool, error), id string) {
	manager := effect.Manager(a.Hook.ID)
	return func(obj map[string]any) (starlark.Value, bool, error) {
		return &child{object.Pack(cluster.Pruned(obj, manager))}, true, nil
	}, "children of " + manager
}

// isUID says that runs find children by a key: by the uid of their parent, and not by its name. Keys of
// objects without a namespace are as good.
func isUID(key string) bool { return !strings.Contains(key, "/") }

// unpacked are children as runs see them.
func unpacked(g *generation.Generation, reports func(apiVersion, kind string) bool, rows []starlark.Value) []starlark.Value {
	out := make([]starlark.Value, len(rows))
	for i, row := range rows {
		out[i] = row
		if c, is := row.(*child); is {
			out[i] = object.New(g.Unheard(c.packed.Unpack(), reports))
		}
	}
	return out
}

// Size is about the memory that is taken. See [watch.Sized].
func (c *child) Size() int64 { return 16 + int64(len(c.packed)) }

// Text returns a text in the memory of the child, where it has that. See [watch.Sharing].
func (c *child) Text(s string) string { return c.packed.Text(s) }

// String is for people who debug.
func (c *child) String() string { return fmt.Sprintf("a child in %d bytes", len(c.packed)) }

// Type is the name of the type.
func (c *child) Type() string { return "executor.child" }

// Freeze does nothing: a child is never changed.
func (c *child) Freeze() {}

func (c *child) Truth() starlark.Bool { return true }

// Hash refuses.
func (c *child) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable: %s", c.Type()) }

// CompareSameType says whether runs would see the same.
func (c *child) CompareSameType(op syntax.Token, other starlark.Value, _ int) (bool, error) {
	switch same := c.packed == other.(*child).packed; op {
	case syntax.EQL:
		return same, nil
	case syntax.NEQ:
		return !same, nil
	}
	return false, fmt.Errorf("%s has no order", c.Type())
}
