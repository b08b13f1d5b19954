package rbac

import (
	"slices"
	"strings"

	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/script"
)

// given is what the code of a module says of the rights that its hooks give away: the roles that bindings name, and
// the rules of roles.
type given struct {
	// bound are names of roles by their resources.
	bound map[string][]string
	rules []Rule
	// unnamed says that a binding names its role by no text, unwritten that the rules of a role are not written out.
	unnamed, unwritten bool
}

// see takes in a dict that the code writes out.
func (g *given) see(dict *syntax.DictExpr) {
	fields := fieldsOf(dict)
	if ref := fields["roleRef"]; ref != nil {
		g.bind(ref)
	}
	kind := textOf(fields["kind"])
	if kind != "Role" && kind != "ClusterRole" || fields["roleRef"] != nil || fields["name"] != nil { // with a name it is a roleRef
		return
	}
	rules, written := rulesOf(fields["rules"])
	g.rules, g.unwritten = append(g.rules, rules...), g.unwritten || !written
}

func (g *given) bind(ref syntax.Expr) {
	dict, ok := ref.(*syntax.DictExpr)
	if !ok {
		g.unnamed = true
		return
	}
	fields := fieldsOf(dict)
	resource, name := map[string]string{"Role": "roles", "ClusterRole": "clusterroles"}[textOf(fields["kind"])], textOf(fields["name"])
	switch {
	case resource == "" || name == "":
		g.unnamed = true
	case !slices.Contains(g.bound[resource], name):
		if g.bound == nil {
			g.bound = map[string][]string{}
		}
		g.bound[resource] = append(g.bound[resource], name)
	}
}

// gives needs what the API server asks of those that write roles and bindings: they give no right that they do not
// have, unless they may bind the role.
func (b *builder) gives(m *generation.Module, r resource, namespaces []string) {
	if r.group != rbacGroup {
		return
	}
	g := b.calls[m.Name].given
	says := func(verb string) bool { // a grant says it where the code does not
		return slices.ContainsFunc(m.Decl.Grants, func(g builtins.Grant) bool {
			return effect.GroupOf(g.APIVersion) == rbacGroup && strings.HasSuffix(g.Kind, "Role") && granted(g.Verbs, verb)
		})
	}
	switch r.plural {
	case "rolebindings", "clusterrolebindings":
		for resource, names := range g.bound {
			for _, namespace := range places(r, namespaces) {
				b.add(namespace, Rule{Group: rbacGroup, Resource: resource, Names: names, Verbs: []string{"bind"}, Why: []string{"bindings that hooks of " + m.Name + " make"}})
			}
		}
		if (g.unnamed || len(g.bound) == 0) && !says("bind") {
			b.lack("hooks of %s make %s, and the code does not name the role: write a grant with verbs = [\"bind\"] and its name, or add that verb on the role, in apiGroups %s", m.Name, r.plural, rbacGroup)
		}
	case "roles", "clusterroles":
		for _, rule := range g.rules {
			rule.Why = []string{"roles that hooks of " + m.Name + " make, which give it"}
			for _, namespace := range places(r, namespaces) {
				b.add(namespace, rule)
			}
		}
		if (g.unwritten || len(g.rules) == 0) && !says("escalate") {
			b.lack("hooks of %s make %s, and the code does not write out the rules: Starling must have these rights itself, or the verb escalate on %s, in apiGroups %s", m.Name, r.plural, r.plural, rbacGroup)
		}
	}
}

// rulesOf reads the rules of a role; false: they are not all written out as texts.
func rulesOf(x syntax.Expr) (rules []Rule, written bool) {
	list, ok := x.(*syntax.ListExpr)
	if !ok {
		return nil, false
	}
	for _, element := range list.List {
		dict, ok := element.(*syntax.DictExpr)
		if !ok {
			return nil, false
		}
		fields, texts := fieldsOf(dict), map[string][]string{}
		for name, value := range fields {
			if texts[name], ok = script.TextsOf(value); !ok {
				return nil, false
			}
		}
		for _, url := range texts["nonResourceURLs"] {
			rules = append(rules, Rule{URL: url, Verbs: texts["verbs"]})
		}
		for _, group := range texts["apiGroups"] {
			for _, resource := range texts["resources"] {
				rules = append(rules, Rule{Group: group, Resource: resource, Names: texts["resourceNames"], Verbs: texts["verbs"]})
			}
		}
	}
	return rules, true
}

// fieldsOf are the values of a dict by those keys that are texts.
func fieldsOf(dict *syntax.DictExpr) map[string]syntax.Expr {
	out := map[string]syntax.Expr{}
	for _, x := range dict.List {
		if entry, ok := x.(*syntax.DictEntry); ok {
			out[textOf(entry.Key)] = entry.Value
		}
	}
	return out
}
