// Package rbac works out, without a cluster, which rights one starling needs for a
// module tree: its own, those of hooks, and those of what the charts render.
package rbac

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/modules"
	"github.com/starling-operator/starling/runtime/script"
	"github.com/starling-operator/starling/runtime/sim"
	"github.com/starling-operator/starling/stdlib"
)

// Options configures [Compute].
type Options struct {
	// Tree is what the rights are for.
	Tree *tree.Tree
	// Modules are those of the tree that count, beside the global hooks; empty: all.
	Modules []string
	// Namespace and Name are the instance.
	Namespace, Name string
	// Config is the data of the user's ConfigMap, with which charts are rendered; nil:
	// none.
	Config map[string]string
	// Objects are taken to be in the cluster when hooks look for values; nil: none are.
	// CustomResourceDefinitions among them say what kinds there are.
	Objects []map[string]any
	// Over puts the cluster in which hooks look over a real one, which is only read; nil:
	// it is empty but for Objects.
	Over func(*sim.Options)
	// MakeNamespaces lets Starling make the namespaces of releases. A Role needs its
	// namespace, so the rights of such a release, Helm's Secrets among them, are then
	// for the whole cluster. If not, they are Roles, and the namespaces must be there.
	MakeNamespaces bool
	// Renderer evaluates charts under limits; nil: they are evaluated without any.
	Renderer *chart.Renderer
}

// Result is what one instance needs.
type Result struct {
	// Namespace and Name are the instance; Name is its ServiceAccount's, too.
	Namespace, Name string
	// Modules are those that the rights are for, sorted.
	Modules []string
	// Namespaces are those that must be there before the roles are, beside the
	// instance's own.
	Namespaces []string
	// Roles in the order in which they are printed: Starling's own, what is for the
	// whole cluster, then by namespace.
	Roles []Role
	// ServiceAccount says that [Result.Write] prints it, too.
	ServiceAccount bool
	// Notes are what was not found out, one line each. Incomplete means that rights are
	// missing, or guessed, for what one of them says.
	Notes      []string
	Incomplete bool
}

// Role is a Role with its binding, or a ClusterRole with one.
type Role struct {
	Name string
	// Namespace of a Role; empty: a ClusterRole.
	Namespace string
	// About says in a line what it is for.
	About string
	Rules []Rule
}

// Rule allows verbs on the objects of one resource, or on URLs.
type Rule struct {
	// Group is "" for the core group, "*" for all; Resource may hold a subresource:
	// "pods/eviction".
	Group, Resource string
	// Names of objects; nil: all.
	Names []string
	// URL is set instead of Group and Resource: "/metrics".
	URL string
	// Verbs in the order of [order].
	Verbs []string
	// Why are what needs it, sorted.
	Why []string
}

// Compute works out the rights. A module that does not load is an error, which names
// all of them: its rights would be missing. So is a config with which charts would not be
// rendered.
func Compute(ctx context.Context, o Options) (Result, error) {
	gen := generation.Load(ctx, generation.Options{
		Tree: o.Tree, Std: stdlib.FS, Number: 1, Governor: script.NewGovernor(script.GovernorOptions{}),
	})
	if len(o.Modules) > 0 {
		for _, name := range o.Modules {
			if gen.Modules[name] == nil {
				return Result{}, fmt.Errorf("there is no module %s; the tree has %s", name, strings.Join(gen.Names, ", "))
			}
		}
		gen = gen.Only(o.Modules...)
	}
	var broken []error
	for _, m := range gen.All() {
		broken = append(broken, m.Err)
	}
	if err := errors.Join(broken...); err != nil {
		return Result{}, err
	}
	b := newBuilder(ctx, o, gen)
	b.definitions()
	if err := b.charts(); err != nil {
		return Result{}, err
	}
	b.hooks()
	b.own()
	b.objects()
	if o.Over != nil {
		if err := b.released(); err != nil && ctx.Err() == nil {
			b.lack("the releases in the cluster cannot be read, so what they need to go may be missing: %s", err)
		}
	}
	return b.result(), ctx.Err()
}

// builder collects rules.
type builder struct {
	ctx   context.Context
	o     Options
	gen   *generation.Generation
	kinds *kinds
	calls map[string]calls // by module
	// made are the namespaces that may not be there yet.
	made map[string]bool
	// starling are the rules of Starling itself, tree those of the tree by namespace,
	// "" for the whole cluster.
	starling *rules
	tree     map[string]*rules
	notes    map[string]bool // true: rights are missing
}

func newBuilder(ctx context.Context, o Options, gen *generation.Generation) *builder {
	b := &builder{
		ctx: ctx, o: o, gen: gen, kinds: newKinds(), calls: callsOf(gen),
		made: map[string]bool{}, starling: &rules{}, tree: map[string]*rules{}, notes: map[string]bool{},
	}
	for _, m := range gen.All() {
		if m.Tree.Chart != nil && o.MakeNamespaces {
			b.make(b.namespace(m))
		}
	}
	return b
}

// make notes that a namespace comes with a release.
func (b *builder) make(namespace string) {
	if !b.there(namespace) {
		b.made[namespace] = true
	}
}

// there says whether a namespace is there before the roles are; "" is the whole cluster.
func (b *builder) there(namespace string) bool {
	always := []string{"", b.o.Namespace, "default", "kube-system", "kube-public", "kube-node-lease"}
	return slices.Contains(always, namespace)
}

// namespace is the one that a module is released to, and that its hooks mean when
// they name none.
func (b *builder) namespace(m *generation.Module) string {
	if m.Decl.Namespace != "" {
		return m.Decl.Namespace
	}
	return b.o.Namespace
}

// add needs something of the tree in a namespace, "" for the whole cluster. A Role
// needs its namespace first, so what is for one that is not there yet is for the whole
// cluster.
func (b *builder) add(namespace string, r Rule) {
	if b.made[namespace] {
		namespace = ""
	}
	at := b.tree[namespace]
	if at == nil {
		at = &rules{}
		b.tree[namespace] = at
	}
	at.add(r)
}

// note tells what a reader should know, lack what rights are missing, or guessed.
func (b *builder) note(format string, args ...any) { b.notes[fmt.Sprintf(format, args...)] = false }
func (b *builder) lack(format string, args ...any) { b.notes[fmt.Sprintf(format, args...)] = true }

// own are the rights that Starling needs for itself, in its namespace.
func (b *builder) own() {
	name, s := b.o.Name, b.starling
	s.add(Rule{Group: "coordination.k8s.io", Resource: "leases", Verbs: []string{"create"}, Why: []string{"one process at a time"}})
	s.add(Rule{Group: "coordination.k8s.io", Resource: "leases", Names: []string{name}, Verbs: []string{"get", "list", "watch", "update"}, Why: []string{"one process at a time"}})
	s.add(Rule{Resource: "configmaps", Names: []string{name}, Verbs: []string{"get", "list", "watch"}, Why: []string{"the user's config"}})
	s.add(Rule{Resource: "pods", Verbs: []string{"list", "patch"}, Why: []string{"a label that says which pod leads"}})
	s.add(Rule{Resource: "configmaps", Verbs: []string{"create"}, Why: []string{"which releases there are"}})
	s.add(Rule{Resource: "configmaps", Names: []string{name + "-releases"}, Verbs: []string{"get", "patch"}, Why: []string{"which releases there are"}})
	s.add(Rule{Group: "apps", Resource: "deployments", Names: []string{name}, Verbs: []string{"get"}, Why: []string{"an Event when a new module tree, or the user's ConfigMap, cannot be used", "whether a rollout is under way"}})
	s.add(Rule{Resource: "events", Verbs: []string{"get", "create", "patch"}, Why: []string{"an Event when a new module tree, or the user's ConfigMap, cannot be used"}})
	s.add(Rule{Resource: "secrets", Verbs: []string{"list", "watch", "create", "patch", "delete"}, Why: []string{"what hooks keep"}})
}

// objects are the rights for Module objects. Their Events are where those of all objects without a
// namespace are.
func (b *builder) objects() {
	why := []string{"Module objects"}
	b.add("", Rule{Group: definitionsGroup, Resource: definitions, Names: []string{modules.DefinitionName}, Verbs: []string{"get", "create", "patch"}, Why: why})
	b.add("", Rule{Group: "starling.dev", Resource: "modules", Verbs: []string{"list", "watch", "create", "patch", "delete"}, Why: why})
	b.add("", Rule{Group: "starling.dev", Resource: "modules/status", Verbs: []string{"patch"}, Why: why})
	b.add("default", Rule{Resource: "events", Verbs: []string{"get", "create", "patch"}, Why: why})
}

// result puts the roles in order.
func (b *builder) result() Result {
	out := Result{Namespace: b.o.Namespace, Name: b.o.Name, Modules: b.gen.Names}
	out.Roles = append(out.Roles, Role{Name: b.o.Name, Namespace: b.o.Namespace, About: "Rights of Starling itself.", Rules: b.starling.reduced(nil)})
	cluster := b.tree[""]
	namespaces := slices.Sorted(maps.Keys(b.tree))
	if i := slices.Index(namespaces, b.o.Namespace); i > 0 { // first, beside Starling's own
		namespaces = slices.Insert(slices.Delete(namespaces, i, i+1), 0, b.o.Namespace)
	}
	for _, ns := range namespaces {
		role := Role{Name: b.o.Namespace + "." + b.o.Name, Namespace: ns, About: "Rights of the modules in namespace " + ns + ", which must be there."}
		above := cluster
		switch ns {
		case "":
			above, role.About = nil, "Rights of the modules in the whole cluster."
		case b.o.Namespace:
			role.Name, role.About = b.o.Name+"-modules", "Rights of the modules beside it."
		}
		if role.Rules = b.tree[ns].reduced(above); len(role.Rules) > 0 {
			out.Roles = append(out.Roles, role)
			if !b.there(ns) {
				out.Namespaces = append(out.Namespaces, ns)
			}
		}
	}
	for note, lacks := range b.notes {
		out.Notes = append(out.Notes, plain(note))
		out.Incomplete = out.Incomplete || lacks
	}
	slices.Sort(out.Notes)
	return out
}
