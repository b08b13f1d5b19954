package builtins

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
)

// Grants bind calls of hooks, at the time of the call. They are how an author
// states, and a reviewer sees, what hooks may touch; RBAC is the boundary.

// guard returns what the grants ask of an object for one verb, nil when nothing, and says which line would do when
// none covers it. word is what people call the verb. made is the object where the call may make it, else nil: its
// labels must suit a grant, too, and where a grant is for owned objects it is marked as the module's.
func (c *call) guard(verb, word string, ref effect.Ref, namespaced bool, made map[string]any) (*effect.Guard, error) {
	if c.run.Free {
		return nil, nil
	}
	if c.run.Instance.Owns(ref) || verb == "delete" && c.run.Instance.LivesIn(ref) || made != nil && c.run.Instance.OwnsObject(ref.APIVersion, ref.Kind, made) {
		return nil, c.notCovered(word, ref)
	}
	var free []string // verbs of the grants that ask for nothing
	var asking []*Grant
	guard := &effect.Guard{}
	for i := range c.run.Grants {
		g := &c.run.Grants[i]
		if !g.covers(ref, namespaced, c.run.Namespace) || g.Names != nil && !contains(g.Names, ref.Name) {
			continue
		}
		if g.Owned && made != nil {
			guard.MarkFor = c.run.Instance.Mark(c.run.Module)
		}
		if g.Labels == "" && !g.Owned {
			free = append(free, g.Verbs...)
		} else {
			asking = append(asking, g)
		}
	}
	others := effect.MayBeOthers(ref) // which the object itself says, once it is written
	if verbAllowed(verb, free) {
		switch {
		case others != "":
			guard.Any, guard.Refused = []effect.Condition{{Labels: others}}, c.notCovered(word, ref).Error()
		case guard.MarkFor == "":
			return nil, nil
		}
		return guard, nil
	}
	var asked []string
	for _, g := range asking {
		if !verbAllowed(verb, slices.Concat(free, g.Verbs)) {
			continue
		}
		condition := effect.Condition{Labels: g.Labels}
		if g.Owned {
			condition.MadeBy = c.run.Instance.Mark(c.run.Module)
		}
		asked = append(asked, g.asks())
		if others != "" {
			condition.Labels = strings.TrimPrefix(condition.Labels+","+others, ",")
		}
		if made == nil || condition.SelectsLabels(made) {
			guard.Any = append(guard.Any, condition)
		}
	}
	why := ""
	if len(asked) > 0 {
		why = ", which is not as its grants ask (" + strings.Join(slices.Compact(asked), ", or ") + ")"
	}
	err := c.refused(verb, word+" "+ref.String(), why, ref, c.elsewhere(ref, namespaced))
	if len(guard.Any) == 0 {
		return nil, err
	}
	guard.Refused = err.Error()
	return guard, nil
}

// notCovered is the error about an object that belongs to Starling itself, as tokens of
// ServiceAccounts in its namespace do.
func (c *call) notCovered(word string, ref effect.Ref) error {
	return spec.Finalf("hook %s/%s may not %s %s: it belongs to Starling itself, and no grant covers that", c.run.Module, c.run.Hook, word, ref)
}

// asks says in words which objects the grant is for.
func (g *Grant) asks() string {
	var parts []string
	if g.Labels != "" {
		parts = append(parts, "labels "+g.Labels)
	}
	if g.Owned {
		parts = append(parts, "made by this module")
	}
	return strings.Join(parts, " and ")
}

// allowedAll reports whether the grants allow a verb on all objects of a kind in one namespace.
func (c *call) allowedAll(verb string, kind effect.Ref) bool {
	if c.run.Free {
		return true
	}
	var verbs []string
	for _, g := range c.run.Grants {
		if g.all() && g.covers(kind, true, c.run.Namespace) {
			verbs = append(verbs, g.Verbs...)
		}
	}
	return verbAllowed(verb, verbs)
}

// all reports whether the grant is for all objects of its kind.
func (g *Grant) all() bool { return g.Names == nil && g.Labels == "" && !g.Owned }

// elsewhere is what a grant for ref needs in its namespaces=: "" for the module's own.
func (c *call) elsewhere(ref effect.Ref, namespaced bool) string {
	if namespaced && ref.Namespace != c.run.Namespace {
		return ref.Namespace
	}
	return ""
}

// allowedList is allowed for lists: in all namespaces (nil), or in each given
// one. Grants for some objects of the kind do not count.
func (c *call) allowedList(kind effect.Ref, namespaces []string, namespaced bool) error {
	if c.run.Free {
		return nil
	}
	places := namespaces
	if places == nil {
		places = []string{"*"}
	}
	for _, ns := range places {
		var verbs []string
		for _, g := range c.run.Grants {
			if ref := (effect.Ref{APIVersion: kind.APIVersion, Kind: kind.Kind, Namespace: ns}); g.all() && g.covers(ref, namespaced, c.run.Namespace) {
				verbs = append(verbs, g.Verbs...)
			}
		}
		if verbAllowed("list", verbs) {
			continue
		}
		what, missing := kind.Kind+" in "+ns, ns
		switch {
		case !namespaced:
			what, missing = kind.Kind, ""
		case ns == "*":
			what = kind.Kind + " in all namespaces"
		case ns == c.run.Namespace:
			missing = ""
		}
		return c.refused("list", "list "+what, "", kind, missing)
	}
	return nil
}

// covers compares kind and namespace. The namespace "*" is only covered by "*".
func (g *Grant) covers(ref effect.Ref, namespaced bool, own string) bool {
	if !ref.IsA(g.APIVersion, g.Kind) {
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

// Granted says whether grants allow a verb on objects of a kind, of some namespace and name at least.
func Granted(grants []Grant, verb, apiVersion, kind string) bool {
	var verbs []string
	for _, g := range grants {
		if (effect.Ref{APIVersion: g.APIVersion, Kind: g.Kind}).IsA(apiVersion, kind) {
			verbs = append(verbs, g.Verbs...)
		}
	}
	return verbAllowed(verb, verbs)
}

// GrantedIn is [Granted] for objects in one namespace that is not the module's own; "*" stands for all namespaces. A
// grant without Namespaces does not count.
func GrantedIn(grants []Grant, verb, apiVersion, kind, namespace string) bool {
	there := slices.DeleteFunc(slices.Clone(grants), func(g Grant) bool {
		return !contains(g.Namespaces, "*") && !contains(g.Namespaces, namespace)
	})
	return Granted(there, verb, apiVersion, kind)
}

// verbAllowed reports whether the granted verbs include the one that a call needs: apply is create and patch, write
// is all that change objects, "*" all that are about objects.
func verbAllowed(verb string, granted []string) bool {
	if contains(granted, verb) || contains(granted, "*") && verbsOfKinds[verb] == "" {
		return true
	}
	switch verb {
	case "apply":
		return contains(granted, "write") || contains(granted, "create") && contains(granted, "patch")
	case "create", "patch":
		return contains(granted, "apply") || contains(granted, "write")
	case "delete":
		return contains(granted, "write")
	}
	return false
}

// refused is the error about a missing grant of a verb, with the line to add. what
// is what the hook may not do, and why says more about it.
func (c *call) refused(verb, what, why string, ref effect.Ref, namespace string) error {
	ref.Namespace = namespace
	line := grantLine(ref, "", fmt.Sprintf(", verbs = [%q]", verb))
	return spec.Finalf("hook %s/%s may not %s%s; add to the grants of %s: %s",
		c.run.Module, c.run.Hook, what, why, c.moduleFile(), line)
}

// moduleFile is where the grants of the hook stand.
func (c *call) moduleFile() string {
	if c.run.Global {
		return "global/module.star"
	}
	return "module.star"
}

func contains(list []string, s string) bool { return slices.Contains(list, s) }

// grants returns the grants of a parameter of module().
func (c *call) grants(param string, check func(*Grant) error) (out []Grant, err error) {
	list, ok := c.Arg(param).(starlark.Indexable)
	if !ok {
		return nil, nil
	}
	for i := range list.Len() {
		g, ok := list.Index(i).(*declared[Grant])
		if !ok {
			return nil, fmt.Errorf("%s: element %d: got %s, want grant(…)", param, i, list.Index(i).Type())
		}
		one := g.val
		if err := check(&one); err != nil {
			return nil, fmt.Errorf("%s: element %d, grant(%q, %q): %w", param, i, one.APIVersion, one.Kind, err)
		}
		out = append(out, one)
	}
	return out, nil
}

func forHooks(g *Grant) error {
	if g.Verbs == nil {
		return errors.New(`verbs is missing: verbs = ["get"]`)
	}
	return nil
}

func forInstalls(g *Grant) error {
	if g.Verbs != nil {
		return errors.New("leave verbs out: a release makes, changes and deletes its objects")
	}
	return forChart(g)
}

func forLookup(g *Grant) error {
	if g.Verbs == nil {
		g.Verbs = []string{"get"}
		if g.Names == nil {
			g.Verbs = append(g.Verbs, "list")
		}
	}
	for _, v := range g.Verbs {
		if v != "get" && v != "list" {
			return fmt.Errorf("verbs: a lookup is a get or a list, not %q", v)
		}
	}
	return forChart(g)
}

func forChart(g *Grant) error {
	if g.Labels != "" || g.Owned {
		return errors.New("labels and owned are for hooks; name the objects with names")
	}
	return nil
}
