package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/modules/rbac"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/tree"
)

// grantPrinted gives the instance what `starling rbac` prints for its tree, with each of the
// configs (without one, with none), and rights that are named beside; it makes the
// namespaces that this asks for.
func (f *fixture) grantPrinted(configs ...map[string]string) {
	f.t.Helper()
	f.grantPrintedAnd(nil, configs...)
}

func (f *fixture) grantPrintedAnd(more []rbacv1.PolicyRule, configs ...map[string]string) {
	f.t.Helper()
	read, err := tree.ReadDir(f.modules, tree.Options{})
	if err != nil {
		f.t.Fatal(err)
	}
	a := cluster.Access{Cluster: more, Namespaced: map[string][]rbacv1.PolicyRule{}}
	for _, config := range append([]map[string]string{nil}, configs...) {
		printed, err := rbac.Compute(f.t.Context(), rbac.Options{Tree: read, Namespace: f.ns, Name: f.name, Config: config, MakeNamespaces: true})
		if err != nil {
			f.t.Fatal(err)
		}
		for _, role := range printed.Roles {
			if role.Namespace == "" {
				a.Cluster = append(a.Cluster, policyRules(role.Rules)...)
			} else {
				a.Namespaced[role.Namespace] = append(a.Namespaced[role.Namespace], policyRules(role.Rules)...)
			}
		}
	}
	for name := range a.Namespaced {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := shared.Client.CoreV1().Namespaces().Create(f.t.Context(), ns, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			f.t.Fatal(err)
		}
	}
	f.kube = shared.ServiceAccountKubeconfig(f.t, f.ns, "op-"+f.name, a)
}

func policyRules(printed []rbac.Rule) (rules []rbacv1.PolicyRule) {
	for _, r := range printed {
		rule := rbacv1.PolicyRule{Verbs: r.Verbs, ResourceNames: r.Names}
		if r.URL != "" {
			rule.NonResourceURLs = []string{r.URL}
		} else {
			rule.APIGroups, rule.Resources = []string{r.Group}, []string{r.Resource}
		}
		rules = append(rules, rule)
	}
	return rules
}

// The output of starling rbac is enough for charts that hold roles, which nobody may give
// who has no such rights himself, and for Helm's own hooks; and for hooks that write
// subresources, evict, tell in Events and keep sets; and for repairs of such charts.
func TestPrintedRights(t *testing.T) {
	t.Parallel()
	f := &fixture{t: t, ns: shared.Namespace(t), name: "starling", modules: t.TempDir()}
	apps := f.ns + "-apps"
	ownNamespaces(t, apps)
	t.Cleanup(func() { deleteRoles(t, f.ns) })
	f.write(trees(map[string]string{
		"web/module.star": `module(
    enabled = True, namespace = "$NS-apps", wait = True,
    installs = [
        grant("rbac.authorization.k8s.io/v1", kind)
        for kind in ["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"]
    ],
    grants = [
        grant("v1", "LimitRange", verbs = ["apply", "delete"], names = ["named", "member"], owned = True),
        grant("v1", "Event", verbs = ["create"]),
        grant("apps/v1", "Deployment", verbs = ["patch"]),
        grant("v1", "Pod", verbs = ["delete"]),
    ],
)
`,
		"web/hooks/web.star": `
def run(ctx):
    if not ctx.snapshots["deployment"]:
        return
    web = ctx.snapshots["deployment"][0]
    k8s.apply({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "named"}, "spec": {"limits": []}})
    k8s.apply_set("all", [{"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "member"}, "spec": {"limits": []}}])
    k8s.event(web, "Seen", "hello")
    k8s.event("v1", "ResourceQuota", "q", reason = "Unread", message = "no right to get it")
    k8s.patch(web, jq = '.metadata.annotations.seen = "yes"')
    k8s.patch(web, merge = {"spec": {"replicas": 2}}, subresource = "scale")
    k8s.evict("v1", "Pod", "not-there")

hook(run, on = [k8s.watch("apps/v1", "Deployment", namespaces = ["$NS-apps"], object_names = ["web"],
                          events = ["added"], sync = False)])
`,
		"web/Chart.yaml": "{apiVersion: v2, name: web, version: 0.1.0}\n",
		"web/templates/web.yaml": `
apiVersion: v1
kind: ServiceAccount
metadata: {name: web}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: registry.k8s.io/pause:3.10}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: before, annotations: {helm.sh/hook: "pre-install,pre-upgrade"}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: web}
rules:
- {apiGroups: ["", apps], resources: [pods, pods/log], verbs: [get, list]}
- {apiGroups: [""], resources: [secrets], resourceNames: [tls], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: web}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: web}
subjects: [{kind: ServiceAccount, name: web, namespace: {{ .Release.Namespace }}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: $NS-web}
rules:
- {apiGroups: [networking.k8s.io], resources: ["*"], verbs: ["*"]}
- {nonResourceURLs: [/metrics], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: $NS-web}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: $NS-web}
subjects: [{kind: ServiceAccount, name: web, namespace: {{ .Release.Namespace }}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: view}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: ServiceAccount, name: web, namespace: {{ .Release.Namespace }}}]
`,
	}, mirror("plain", on)))
	f.grantPrinted()
	f.start()
	f.waitState("plain", status.ModuleReady)
	f.waitState("web", status.ModuleReady)
	f.waitRuns("web/hooks/web.star:run", 1)
	d, err := shared.Client.AppsV1().Deployments(apps).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil || *d.Spec.Replicas != 2 || d.Annotations["seen"] != "yes" {
		t.Errorf("the Deployment is %+v, %v", d, err)
	}
	unread, err := shared.Client.CoreV1().Events(apps).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=Unread"})
	if err != nil || len(unread.Items) != 1 || unread.Items[0].InvolvedObject.Name != "q" {
		t.Errorf("the Event about what may not be read is %+v, %v", unread, err)
	}
	for _, name := range []string{"named", "member"} {
		if _, err := shared.Client.CoreV1().LimitRanges(apps).Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}

	// Roles that somebody deletes or edits are put right.
	roles := shared.Client.RbacV1()
	for _, err := range []error{
		roles.Roles(apps).Delete(t.Context(), "web", metav1.DeleteOptions{}),
		roles.RoleBindings(apps).Delete(t.Context(), "web", metav1.DeleteOptions{}),
		roles.ClusterRoleBindings().Delete(t.Context(), f.ns+"-web", metav1.DeleteOptions{}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := roles.ClusterRoles().Patch(t.Context(), f.ns+"-web", types.MergePatchType, []byte(`{"rules": []}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	f.eventually("the roles are as they were", func() error {
		_, err1 := roles.Roles(apps).Get(t.Context(), "web", metav1.GetOptions{})
		_, err2 := roles.RoleBindings(apps).Get(t.Context(), "web", metav1.GetOptions{})
		_, err3 := roles.ClusterRoleBindings().Get(t.Context(), f.ns+"-web", metav1.GetOptions{})
		role, err4 := roles.ClusterRoles().Get(t.Context(), f.ns+"-web", metav1.GetOptions{})
		if err4 == nil && len(role.Rules) != 2 {
			err4 = fmt.Errorf("the ClusterRole has the rules %v", role.Rules)
		}
		return errors.Join(err1, err2, err3, err4)
	})
	f.waitRevision(apps, "web", 1)
	if strings.Contains(f.said(), "forbidden") {
		t.Errorf("something was not allowed:\n%s", f.said())
	}

	// And to take all of it away again.
	f.configure(map[string]string{"webEnabled": "false"})
	f.waitState("web", status.ModuleOff)
	noRelease(t, apps, "web")
}

// deleteRoles deletes what a test that failed leaves behind.
func deleteRoles(t *testing.T, prefix string) {
	ctx, api := context.Background(), shared.Client.RbacV1() // the test's own has ended
	_ = api.ClusterRoleBindings().Delete(ctx, prefix+"-web", metav1.DeleteOptions{})
	if err := api.ClusterRoles().Delete(ctx, prefix+"-web", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}
