package release

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/lane"
)

// mostLacks bounds what is asked about one release, and told.
const mostLacks = 20

// mostGiven bounds the rights of one role that are looked at.
const mostGiven = 10_000

// nowhere is the name of no namespace: only rights in the whole cluster are listed for it.
const nowhere = "-"

// rights refuses a revision that the API server would refuse, and names all rights that are missing: else each of them
// would be a revision that fails. It asks for what a revision does with objects that are new or changed since the
// one that is deployed, by one review for each namespace, and one for each right that is missing there.
func (r *reconcile) rights(p revisionPlan, shown rendering) error {
	if r.m.o.Await != nil { // a simulated API server knows no rights
		return nil
	}
	deployed := p.had()
	asked := rightsOf{m: r.m, ctx: r.ctx, rules: map[string][]authorizationv1.ResourceRule{}, known: map[right]bool{}}
	var made []stored
	for _, name := range slices.Sorted(maps.Keys(shown.files)) {
		objects, unserved, err := r.m.storedObjects(r.t.Ref(), shown.files[name])
		if err != nil || len(unserved) > 0 { // the plan of the revision has said so
			return nil
		}
		made = append(made, objects...)
	}
	asked.need(right{namespace: r.t.Namespace, resource: "secrets"}, "create", "update") // in which revisions are kept
	for _, o := range made {
		asked.toMake(o, deployed[o.key.AnyVersion()], r.t, made)
	}
	if len(asked.lacks) == 0 {
		return nil
	}
	if len(asked.lacks) > mostLacks {
		asked.lacks = append(asked.lacks[:mostLacks], "and more")
	}
	who := ""
	var self authenticationv1.SelfSubjectReview
	if r.m.review(r.ctx, "authentication.k8s.io/v1/selfsubjectreviews", &self) == nil {
		who = ", which acts as " + self.Status.UserInfo.Username
	}
	return &lane.Passing{Err: fmt.Errorf("forbidden: no revision is made, for it needs rights that Starling lacks: %s; give them to its ServiceAccount%s, and the module goes on (`starling rbac` prints all that the tree needs)", strings.Join(asked.lacks, ", "), who)}
}

// right is one that a revision needs for an object, or that a role of the chart gives.
type right struct {
	namespace, group, resource, name, verb string
	// object is that for which a right for it alone is enough.
	object string
}

// rightsOf knows which rights this process has, as far as it was asked.
type rightsOf struct {
	m     *Manager
	ctx   context.Context
	rules map[string][]authorizationv1.ResourceRule
	known map[right]bool
	lacks []string
}

// atInstall are the hooks that run as a release is installed or upgraded.
var atInstall = regexp.MustCompile(`(pre|post)-(install|upgrade)`)

// toMake asks for what is needed to bring an object from what is deployed, nil for nothing, to what it is now; made are
// all objects of the chart.
func (a *rightsOf) toMake(o stored, before *unstructured.Unstructured, t Target, made []stored) {
	of := right{namespace: o.key.Namespace, group: o.mapping.Resource.Group, resource: o.mapping.Resource.Resource, object: o.key.Name}
	hook, isHook := o.obj.GetAnnotations()["helm.sh/hook"]
	switch {
	case isHook && !atInstall.MatchString(hook) && (!t.Test || !strings.Contains(hook, "test")):
		return
	case before != nil && reflect.DeepEqual(before.Object, o.obj.Object):
		return
	case isHook && (o.key.Kind == "Job" || o.key.Kind == "Pod"): // its end is waited for
		a.need(of, "delete", "create", "get")
	case isHook:
		a.need(of, "delete", "create")
	case before != nil:
		a.need(of, "get", "patch")
	case !t.Adopt: // what is taken over may be there
		a.need(of, "get", "create", "patch") // an apply that makes an object is a patch, too
	}
	if of.group != rbacv1.GroupName {
		return
	}
	if o.key.Kind == "RoleBinding" || o.key.Kind == "ClusterRoleBinding" {
		a.toBind(o, made)
	}
	gives := given(o.obj, of.namespace)
	if slices.ContainsFunc(gives, func(r right) bool { return !a.may(r) }) && !a.may(of.to("escalate")) {
		for _, r := range gives {
			a.need(r, r.verb)
		}
	}
}

// toBind asks whether a binding may be made. Of a role that is not in the chart the API server knows the rules.
func (a *rightsOf) toBind(o stored, made []stored) {
	kind, _, _ := unstructured.NestedString(o.obj.Object, "roleRef", "kind")
	name, _, _ := unstructured.NestedString(o.obj.Object, "roleRef", "name")
	bind := right{namespace: o.key.Namespace, group: rbacv1.GroupName, resource: strings.ToLower(kind) + "s", name: name, verb: "bind"}
	if slices.ContainsFunc(made, func(s stored) bool {
		return s.key.Kind == kind && s.key.Name == name && (kind == "ClusterRole" || s.key.Namespace == o.key.Namespace)
	}) || a.may(bind) {
		return
	}
	_, err := a.m.dynamic.Resource(o.mapping.Resource).Namespace(o.key.Namespace).Create(a.ctx, o.obj.DeepCopy(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if apierrors.IsForbidden(err) && cluster.LacksRight(err) {
		a.need(bind, bind.verb)
	}
}

// need notes the verbs that are lacking.
func (a *rightsOf) need(r right, verbs ...string) {
	for _, verb := range verbs {
		text := r.to(verb).String()
		if len(a.lacks) <= mostLacks && !slices.Contains(a.lacks, text) && !a.may(r.to(verb)) {
			a.lacks = append(a.lacks, text)
		}
	}
}

// may says whether the right is there, or nobody knows. Other authorizers than RBAC list no rules.
func (a *rightsOf) may(r right) bool {
	allowed, known := a.known[r]
	if known {
		return allowed
	}
	all, one := r, r
	all.object, one.object, one.name = "", "", cmp.Or(r.object, r.name)
	switch {
	case slices.ContainsFunc(a.listed(r.namespace), one.in):
		allowed = true
	case all == r:
		allowed = a.allowed(r)
	default:
		allowed = a.may(all) || a.allowed(one)
	}
	a.known[r] = allowed
	return allowed
}

// listed are the rules of RBAC for a namespace.
func (a *rightsOf) listed(namespace string) []authorizationv1.ResourceRule {
	rules, known := a.rules[namespace]
	if !known {
		review := authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: cmp.Or(namespace, nowhere)}}
		if a.m.review(a.ctx, "authorization.k8s.io/v1/selfsubjectrulesreviews", &review) == nil {
			rules = review.Status.ResourceRules
		}
		a.rules[namespace] = rules
	}
	return rules
}

// allowed asks for one right. Without an answer the writes themselves tell.
func (a *rightsOf) allowed(r right) bool {
	resource, sub, _ := strings.Cut(r.resource, "/")
	review := authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Namespace: r.namespace, Group: r.group, Resource: resource, Subresource: sub, Name: r.name, Verb: r.verb,
	}}}
	err := a.m.review(a.ctx, "authorization.k8s.io/v1/selfsubjectaccessreviews", &review)
	return err != nil || review.Status.Allowed || review.Status.EvaluationError != ""
}

// to is the right to do something else.
func (r right) to(verb string) right {
	r.verb = verb
	return r
}

// String is "create poddisruptionbudgets.policy in namespace web".
func (r right) String() string {
	where := "in the whole cluster"
	if r.namespace != "" {
		where = "in namespace " + r.namespace
	}
	what := schema.GroupResource{Group: r.group, Resource: r.resource}.String()
	if r.name != "" {
		what += " " + r.name
	}
	return r.verb + " " + what + " " + where
}

// in says that a rule gives the right.
func (r right) in(rule authorizationv1.ResourceRule) bool {
	has := func(list []string, one string) bool { return slices.Contains(list, one) || slices.Contains(list, "*") }
	return (len(rule.ResourceNames) == 0 || r.name != "" && slices.Contains(rule.ResourceNames, r.name)) &&
		has(rule.Verbs, r.verb) && has(rule.APIGroups, r.group) && has(rule.Resources, r.resource)
}

// given are the rights that a role gives: nobody may give rights that they do not have, without the right to escalate.
func given(role *unstructured.Unstructured, namespace string) (out []right) {
	var of rbacv1.ClusterRole
	if runtime.DefaultUnstructuredConverter.FromUnstructured(role.Object, &of) != nil {
		return nil // the API server says so
	}
	for _, rule := range of.Rules {
		names := append(rule.ResourceNames, "")[:max(1, len(rule.ResourceNames))]
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range names {
						if len(out) == mostGiven {
							return out
						}
						out = append(out, right{namespace: namespace, group: group, resource: resource, name: name, verb: verb})
					}
				}
			}
		}
	}
	return out
}

// review asks the API server about this process; the answer stands in the question.
func (m *Manager) review(ctx context.Context, resource string, question runtime.Object) error {
	return m.core.RESTClient().Post().AbsPath("apis", resource).Body(question).Do(ctx).Into(question)
}
