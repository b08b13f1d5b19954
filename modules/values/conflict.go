package values

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/starling-operator/starling/runtime/effect"
)

// Conflict says whether ops, the new layer of hook, and the layer of another hook set the same path: an equal path, or
// one that contains the other. The paths that set and remove name belong to the hook as a whole; of a merge only the
// leaves do, so two hooks may merge different keys into one map. Defaults conflict with defaults only.
//
// The error names both hooks, the path and the place of the call. Layers of hook itself do not count.
func Conflict(layers []HookLayer, hook string, ops []effect.ValueOp) error {
	others := touched(layers, hook, ops)
	slices.SortStableFunc(others, func(a, b HookLayer) int { return strings.Compare(a.Hook, b.Hook) })
	var upper, defaults claims
	for _, l := range others {
		for _, op := range l.Ops {
			claimsOf(op, &upper, &defaults, func(c *claims, path []string) { c.add(path, l.Hook) })
		}
	}
	for _, op := range ops {
		var err error
		claimsOf(op, &upper, &defaults, func(c *claims, path []string) {
			if err != nil {
				return
			}
			if other, at := c.find(path); other != "" {
				err = conflictError(hook, other, path, at, op)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// touched returns the layers of other hooks that set a path that ops set too. There are
// many layers, one per object of a hook with for_each, and next to none is touched.
func touched(layers []HookLayer, hook string, ops []effect.ValueOp) []HookLayer {
	var upper, defaults claims
	for _, op := range ops {
		claimsOf(op, &upper, &defaults, func(c *claims, path []string) { c.add(path, hook) })
	}
	var out []HookLayer
	for _, l := range layers {
		touches := false
		for _, op := range l.Ops {
			claimsOf(op, &upper, &defaults, func(c *claims, path []string) { touches = touches || c.claimed(path) })
		}
		if touches && l.Hook != hook {
			out = append(out, l)
		}
	}
	return out
}

func conflictError(hook, other string, path, at []string, op effect.ValueOp) error {
	pos := ""
	if op.Pos != "" {
		pos = op.Pos + ": "
	}
	what := fmt.Sprintf("hook %s sets it too", other)
	if !slices.Equal(path, at) {
		what = fmt.Sprintf("hook %s sets %s", other, PathString(at))
	}
	return fmt.Errorf("%shook %s may not %s values path %s: %s; one path belongs to one hook",
		pos, hook, op.Op, PathString(path), what)
}

// claimsOf calls f for each path that op owns.
func claimsOf[T any](op effect.ValueOp, upper, defaults T, f func(T, []string)) {
	switch op.Op {
	case effect.OpDefault:
		f(defaults, op.Path)
	case effect.OpMerge:
		if m, ok := op.Value.(map[string]any); ok {
			leaves(op.Path, m, func(path []string) { f(upper, path) })
			return
		}
		f(upper, op.Path)
	default:
		f(upper, op.Path)
	}
}

// leaves calls f for the path of everything in m that is no map.
func leaves(path []string, m map[string]any, f func([]string)) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		p := append(slices.Clip(path), k)
		if child, ok := m[k].(map[string]any); ok {
			leaves(p, child, f)
		} else {
			f(p)
		}
	}
}

// claims is a tree of keys; a node with an owner belongs to it with all below.
type claims struct {
	owner    string
	children map[string]*claims
}

func (c *claims) add(path []string, owner string) {
	for _, k := range path {
		if c.children == nil {
			c.children = map[string]*claims{}
		}
		child := c.children[k]
		if child == nil {
			child = &claims{}
			c.children[k] = child
		}
		c = child
	}
	c.owner = cmp.Or(c.owner, owner)
}

// find returns who owns path, something that contains it, or something in it, and that path.
func (c *claims) find(path []string) (owner string, at []string) {
	for i, k := range path {
		if c.owner != "" {
			return c.owner, path[:i]
		}
		if c = c.children[k]; c == nil {
			return "", nil
		}
	}
	return c.first(path)
}

// claimed says whether somebody owns path, something that contains it, or something in it.
func (c *claims) claimed(path []string) bool {
	for _, k := range path {
		if c.owner != "" {
			return true
		}
		if c = c.children[k]; c == nil {
			return false
		}
	}
	return c.owner != "" || len(c.children) > 0
}

// first returns the first owner at or below the node, in the order of keys.
func (c *claims) first(path []string) (owner string, at []string) {
	if c.owner != "" {
		return c.owner, path
	}
	for _, k := range slices.Sorted(maps.Keys(c.children)) {
		if owner, at := c.children[k].first(append(slices.Clip(path), k)); owner != "" {
			return owner, at
		}
	}
	return "", nil
}
