package builtins

import (
	"slices"
	"strconv"
	"strings"

	"github.com/starling-operator/starling/runtime/effect"
)

// Grants bind calls of hooks, at the time of the call. They are how an author
// states, and a reviewer sees, what hooks may touch; RBAC is the boundary.

// allowed reports whether a grant covers one verb on one object, and says which
// line would.
func (c *call) allowed(verb string, ref effect.Ref, namespaced bool) error {
	var verbs []string // of all grants that cover the object
	for _, g := range c.run.Grants {
		if g.covers(ref, namespaced, c.run.Namespace) && (g.Names == nil || contains(g.Names, ref.Name)) {
			verbs = append(verbs, g.Verbs...)
		}
	}
	if verbAllowed(verb, verbs) {
		return nil
	}
	var namespaces []string
	if namespaced && ref.Namespace != c.run.Namespace {
		namespaces = []string{ref.Namespace}
	}
	return c.refused(verb, ref.String(), ref, namespaces)
}

// allowedList is allowed for lists: in all namespaces (nil), or in each given
// one. Grants with names do not count.
func (c *call) allowedList(kind effect.Ref, namespaces []string, namespaced bool) error {
	places := namespaces
	if places == nil {
		places = []string{"*"}
	}
	for _, ns := range places {
		var verbs []string
		for _, g := range c.run.Grants {
			if ref := (effect.Ref{APIVersion: kind.APIVersion, Kind: kind.Kind, Namespace: ns}); g.Names == nil && g.covers(ref, namespaced, c.run.Namespace) {
				verbs = append(verbs, g.Verbs...)
			}
		}
		if verbAllowed("list", verbs) {
			continue
		}
		what, missing := kind.Kind+" in "+ns, []string{ns}
		switch {
		case !namespaced:
			what, missing = kind.Kind, nil
		case ns == "*":
			what = kind.Kind + " in all namespaces"
		case ns == c.run.Namespace:
			missing = nil
		}
		return c.refused("list", what, kind, missing)
	}
	return nil
}

// covers compares kind and namespace. The namespace "*" is only covered by "*".
func (g *Grant) covers(ref effect.Ref, namespaced bool, own string) bool {
	if !sameKind(effect.Ref{APIVersion: g.APIVersion, Kind: g.Kind}, ref) {
		return false
	}
	switch {
	case !namespaced:
		return true
	case g.Namespaces == nil:
		return ref.Namespace == own
	}
	return contains(g.Namespaces, "*") || contains(g.Namespaces, ref.Namespace)
}

// verbAllowed reports whether the granted verbs include the one that a call
// needs: apply is create and patch, write is all that change objects.
func verbAllowed(verb string, granted []string) bool {
	if contains(granted, "*") || contains(granted, verb) {
		return true
	}
	switch verb {
	case "apply":
		return contains(granted, "write") || contains(granted, "create") && contains(granted, "patch")
	case "delete":
		return contains(granted, "write")
	}
	return false
}

// refused is the error about a missing grant, with the line to add.
func (c *call) refused(verb, what string, ref effect.Ref, namespaces []string) error {
	line := "grant(" + strconv.Quote(ref.APIVersion) + ", " + strconv.Quote(ref.Kind) + ", verbs = [" + strconv.Quote(verb) + "]"
	if namespaces != nil {
		quoted := make([]string, len(namespaces))
		for i, ns := range namespaces {
			quoted[i] = strconv.Quote(ns)
		}
		line += ", namespaces = [" + strings.Join(quoted, ", ") + "]"
	}
	file := "module.star"
	if c.run.Global {
		file = "global/module.star"
	}
	return finalf("hook %s/%s may not %s %s; add to %s: %s)", c.run.Module, c.run.Hook, verb, what, file, line)
}

func contains(list []string, s string) bool { return slices.Contains(list, s) }
