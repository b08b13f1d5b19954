package e2e

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/starling-operator/starling/e2e/cluster"
)

// least is the least role that an instance gets along with. It is made of four
// parts.
//
// In the operator's own namespace, for itself:
//
//	leases (coordination.k8s.io)  create; get, list, watch and update on the one of its name
//	configmaps                    list and watch on the user's, which has its name;
//	                              create; get and patch on "<name>-releases", in which versions
//	                              before had records
//	secrets                       list, watch, create, patch, delete: what is kept for hooks,
//	                              one Secret a module ("<name>-kept-<module>"), and the records
//	                              of releases ("<name>-releases-1")
//
// In each namespace that a module is released to:
//
//	secrets                       get, list, create, update, patch, delete: Helm's storage;
//	                              patch takes the digests off before an uninstall
//	what the chart renders        get, list, watch, create, patch, delete on each kind
//	namespaces                    get and create for one that is made when missing; none
//	                              where it is there already
//
// For hooks: list and watch on each kind that they watch, where they watch it, and
// what their grants say: get and list for live reads, create and patch for apply,
// delete for delete; get on the Secrets that http.receive names.
//
// Hooks with k8s.apply_set also need get and list of what they apply; without list each
// object is read by itself. Hooks with cleanup= need get and patch of the objects of
// for_each, and list of their kind in all namespaces.
//
// For webhooks: list, watch, create, patch and delete on their configurations, get on
// the Secret "<name>-webhooks", and list, watch and patch on customresourcedefinitions
// for conversions, see [webhookRole].
//
// For modules with crds/: get, create and patch on customresourcedefinitions; list to give them back.
//
// Each of these verbs was taken away in turn, and something failed then; but for list
// beside watch, for where a server does not stream lists, and for the
// patch of digests.
//
// This is written by hand, so that it holds `starling rbac` to it; the examples run with
// what that prints: see [fixture.grantPrinted].
//
// Discovery and /version come with the role system:discovery that every
// ServiceAccount has. Nothing else is needed: no right on namespaces, none to list
// Secrets of namespaces without a release, no wildcard.
type least struct {
	// Releases are the rules for what charts render, by the namespace they are
	// released to, which must exist; "$NS" is the operator's own.
	Releases map[string][]rbacv1.PolicyRule
	// Anywhere are the rules of charts whose namespaces do not exist before the
	// first install.
	Anywhere []rbacv1.PolicyRule
	// Hooks are the rules of hooks and of crds/, for the whole cluster.
	Hooks []rbacv1.PolicyRule
	// HooksIn are the rules of hooks by namespace.
	HooksIn map[string][]rbacv1.PolicyRule
}

// access returns the role of instance ns/name.
func (l least) access(ns, name string) cluster.Access {
	a := cluster.Access{
		Namespaced: map[string][]rbacv1.PolicyRule{ns: {
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}},
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{name}, Verbs: []string{"get", "list", "watch", "update"}},
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{name}, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}},
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{name + "-releases"}, Verbs: []string{"get", "patch"}},
			{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list", "watch", "create", "patch", "delete"}},
		}},
		Cluster: l.Hooks,
	}
	for in, rules := range l.Releases {
		in = strings.ReplaceAll(in, "$NS", ns)
		a.Namespaced[in] = append(append(a.Namespaced[in], helmStorage), rules...)
	}
	for in, rules := range l.HooksIn {
		in = strings.ReplaceAll(in, "$NS", ns)
		a.Namespaced[in] = append(a.Namespaced[in], rules...)
	}
	if len(l.Anywhere) > 0 {
		a.Cluster = append(append(a.Cluster, helmStorage, allow("", "namespaces", "get", "create")), l.Anywhere...)
	}
	return a
}

// mirrors is the role of trees of [mirror] modules in the operator's namespace, and
// of [probe].
var mirrors = least{
	Releases: map[string][]rbacv1.PolicyRule{"$NS": {renders("", "configmaps")}},
	HooksIn:  map[string][]rbacv1.PolicyRule{"$NS": {watches("", "configmaps")}},
}

var helmStorage = allow("", "secrets", "get", "list", "create", "update", "patch", "delete")

// allow is a rule for one kind.
func allow(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// renders is the rule for a kind that a chart renders.
func renders(group, resource string) rbacv1.PolicyRule {
	return allow(group, resource, "get", "list", "watch", "create", "patch", "delete")
}

// watches is the rule for a kind that a hook watches.
func watches(group, resource string) rbacv1.PolicyRule {
	return allow(group, resource, "list", "watch")
}
