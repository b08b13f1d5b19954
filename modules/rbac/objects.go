package rbac

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
)

const (
	rbacGroup      = "rbac.authorization.k8s.io"
	annotationHook = "helm.sh/hook"
)

// release needs what Helm does whatever the chart holds.
func (b *builder) release(c *charted) {
	why := []string{"release of " + c.module.Name}
	b.add(c.namespace, Rule{Resource: "secrets", Verbs: helmStorage[:], Why: why})
	if b.made[c.namespace] {
		b.add("", Rule{Resource: "namespaces", Names: []string{c.namespace}, Verbs: []string{"get"}, Why: why})
		b.add("", Rule{Resource: "namespaces", Verbs: []string{"create"}, Why: why})
	}
}

// lookups needs what the templates may look up.
func (b *builder) lookups(c *charted) {
	for _, g := range c.module.Decl.Lookup {
		r := b.resource(g.APIVersion, g.Kind)
		namespaces := g.Namespaces
		if namespaces == nil {
			namespaces = []string{c.namespace}
		}
		for _, ns := range places(r, namespaces) {
			b.add(ns, Rule{Group: r.group, Resource: r.plural, Names: g.Names, Verbs: g.Verbs, Why: []string{"lookup of the chart of " + c.module.Name}})
		}
	}
}

// object needs what Helm does with one object of a chart.
func (b *builder) object(c *charted, o object, all []*charted) {
	hooks := strings.Split(strings.ReplaceAll(o.Metadata.Annotations[annotationHook], " ", ""), ",")
	if hooks[0] != "" && !c.module.Decl.Test && !slices.ContainsFunc(hooks, func(h string) bool { return !strings.HasPrefix(h, "test") }) {
		return // runs with `helm test` only
	}
	r := b.resource(o.APIVersion, o.Kind)
	namespace := ""
	if r.namespaced {
		namespace = cmp.Or(o.Metadata.Namespace, c.namespace)
	}
	why := []string{"chart of " + c.module.Name}
	b.add(namespace, Rule{Group: r.group, Resource: r.plural, Verbs: []string{"get", "create", "patch", "delete"}, Why: why})
	if hooks[0] == "" && c.module.Decl.Drift != builtins.DriftIgnore { // changes of others are watched
		b.add(namespace, Rule{Group: r.group, Resource: r.plural, Verbs: []string{"list", "watch"}, Why: why})
	}
	if r.group == rbacGroup {
		b.escalation(c, o, all)
	}
}

// escalation: the API server lets nobody give rights that he does not have himself, so
// Starling needs the rights that the roles of charts hold.
func (b *builder) escalation(c *charted, o object, all []*charted) {
	namespace := ""
	why := []string{o.Kind + " " + o.Metadata.Name + " of " + c.module.Name + ", which gives it"}
	switch o.Kind {
	case "Role":
		namespace = cmp.Or(o.Metadata.Namespace, c.namespace)
	case "ClusterRole":
		if o.Aggregation != nil {
			b.lack("chart of %s: its ClusterRole %s takes in others (aggregationRule), which only an admin may make, or who may escalate all clusterroles; that is not given here", c.module.Name, o.Metadata.Name)
		}
	case "RoleBinding", "ClusterRoleBinding":
		b.bind(c, o, all)
		return
	}
	for _, rule := range o.Rules {
		if slices.Contains(rule.APIGroups, "*") && slices.Contains(rule.Resources, "*") {
			b.note("chart of %s: its %s %s holds rights on everything, which Starling must have to give them", c.module.Name, o.Kind, o.Metadata.Name)
		}
		for _, url := range rule.NonResourceURLs {
			b.add("", Rule{URL: url, Verbs: rule.Verbs, Why: why})
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				b.add(namespace, Rule{Group: group, Resource: resource, Names: rule.ResourceNames, Verbs: rule.Verbs, Why: why})
			}
		}
	}
}

// bind needs the right to bind a role that no chart of the tree holds: its rights are
// not known here.
func (b *builder) bind(c *charted, o object, all []*charted) {
	namespace := cmp.Or(o.Metadata.Namespace, c.namespace)
	for _, other := range all {
		for _, role := range other.objects {
			if role.Kind != o.RoleRef.Kind || role.Metadata.Name != o.RoleRef.Name {
				continue
			}
			if role.Kind == "ClusterRole" && role.Aggregation == nil || role.Kind == "Role" && cmp.Or(role.Metadata.Namespace, other.namespace) == namespace {
				return
			}
		}
	}
	resource := "clusterroles"
	if o.RoleRef.Kind == "Role" {
		resource = "roles"
	}
	if o.Kind == "ClusterRoleBinding" {
		namespace = ""
	}
	b.add(namespace, Rule{Group: rbacGroup, Resource: resource, Names: []string{o.RoleRef.Name}, Verbs: []string{"bind"}, Why: []string{o.Kind + " " + o.Metadata.Name + " of " + c.module.Name}})
}

// blind reports whether values of the module may come from hooks, which had no objects to
// find them in.
func (b *builder) blind(m *generation.Module) bool {
	if b.o.Over != nil || len(b.o.Objects) > 0 {
		return false
	}
	return len(m.Hooks) > 0 || b.gen.Global != nil && len(b.gen.Global.Hooks) > 0
}

// unrendered tells of objects that templates may render, and were not rendered. Of a chart that does not render, they
// are what there is to go by.
func (b *builder) unrendered(c *charted) {
	rendered := map[effect.Ref]bool{} // rights are the same for all versions
	for _, o := range c.objects {
		rendered[effect.Ref{APIVersion: o.APIVersion, Kind: o.Kind}.AnyVersion()] = true
	}
	var names []kindName
	var unknown []string
	for w, told := range c.written {
		n, kind := kindName{w.APIVersion, w.Kind}, effect.Ref{APIVersion: w.APIVersion, Kind: w.Kind}
		switch {
		case w.Kind == "" && !told:
			unknown = append(unknown, fmt.Sprintf("%s:%d", b.fileOf(c.module, w.File), w.Line))
		case w.Kind != "" && !rendered[kind.AnyVersion()] && !slices.Contains(names, n):
			names = append(names, n)
		}
	}
	slices.SortFunc(names, func(a, b kindName) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.apiVersion, b.apiVersion))
	})
	tell := b.note
	if c.err != nil || b.blind(c.module) {
		tell = b.lack
	}
	if unknown = sorted(unknown); len(unknown) > 0 {
		tell("chart of %s: what kinds these places render cannot be told, and nothing of them is rendered with these values, so nothing allows them: %s", c.module.Name, strings.Join(unknown, ", "))
	}
	if c.err == nil {
		var kinds []string
		for _, n := range names {
			kinds = append(kinds, n.apiVersion+" "+n.kind)
		}
		if len(kinds) > 0 {
			tell("chart of %s: its templates hold kinds that it does not render with these values, so nothing allows them: %s", c.module.Name, strings.Join(kinds, ", "))
		}
		return
	}
	first, _, _ := strings.Cut(c.err.Error(), "\n")
	b.lack("chart of %s: it does not render without values that hooks or users set, so its kinds are taken from the text of its templates (%s)", c.module.Name, first)
	for _, n := range names {
		o := object{APIVersion: n.apiVersion, Kind: n.kind}
		b.object(c, o, nil)
		if effect.GroupOf(n.apiVersion) == rbacGroup {
			b.lack("chart of %s: it holds a %s, whose rights Starling must have itself: they are not known here", c.module.Name, n.kind)
		}
	}
}

// fileOf is where a file of a chart is in the tree, or in a chart that is not a part of it.
func (b *builder) fileOf(m *generation.Module, path string) string {
	for _, p := range []string{m.Tree.Dir + "/" + path, m.Tree.Dir + "/chart/" + path} {
		if _, err := fs.Stat(b.gen.Tree.Files, p); err == nil {
			return p
		}
	}
	return path
}
