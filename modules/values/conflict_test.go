package values

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/starling-operator/starling/runtime/effect"
)

// conflictOfAll is [Conflict] said another way: from the operations of all layers, one by one.
func conflictOfAll(layers []HookLayer, hook string, ops []effect.ValueOp) error {
	others := slices.DeleteFunc(slices.Clone(layers), func(l HookLayer) bool { return l.Hook == hook })
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
