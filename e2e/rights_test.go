package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/modules/rbac"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/tree"
)

// All rights that a release lacks are told of at once, before a revision is made: by `rbac --check`, by a plan and by the
// module. Once they are there it goes on, and so does a hook.
func TestRightsThatAReleaseLacks(t *testing.T) {
	t.Parallel()
	f := &fixture{t: t, ns: shared.Namespace(t), name: "starling", modules: t.TempDir()}
	f.write(map[string]string{
		"web/module.star": "module(enabled = True, namespace = \"$NS\", \n" +
			"    installs = [grant(\"rbac.authorization.k8s.io/v1\", \"Role\")])\n",
		"web/Chart.yaml": "{apiVersion: v2, name: web, version: 0.1.0}\n",
		"web/templates/a.yaml": `
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: web}
rules: [{apiGroups: [batch], resources: [cronjobs], verbs: [list]}]
`,
		"hooks/module.star":  "module(enabled = True, namespace = \"$NS\", grants = [grant(\"v1\", \"LimitRange\", verbs = [\"apply\"])])\n",
		"hooks/hooks/a.star": "def f(ctx):\n    k8s.apply({\"apiVersion\": \"v1\", \"kind\": \"LimitRange\", \"metadata\": {\"name\": \"a\"}, \"spec\": {\"limits\": []}})\n\nhook(f, on = [startup()])\n",
	})
	read, err := tree.ReadDir(f.modules, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	needed, err := rbac.Compute(t.Context(), rbac.Options{Tree: read, Namespace: f.ns, Name: f.name})
	if err != nil {
		t.Fatal(err)
	}
	a := cluster.Access{Namespaced: map[string][]rbacv1.PolicyRule{}}
	var missing []rbacv1.PolicyRule
	for _, role := range needed.Roles {
		for _, rule := range policyRules(role.Rules) {
			switch {
			case slices.Contains([]string{"poddisruptionbudgets", "cronjobs", "limitranges"}, rule.Resources[0]):
				missing = append(missing, rule)
			case role.Namespace == "":
				a.Cluster = append(a.Cluster, rule)
			default:
				a.Namespaced[role.Namespace] = append(a.Namespaced[role.Namespace], rule)
			}
		}
	}
	if len(missing) != 3 {
		t.Fatalf("missing are %v", missing)
	}
	f.kube = shared.ServiceAccountKubeconfig(t, f.ns, f.name, a)

	check := func(args ...string) (string, int) {
		cmd := exec.CommandContext(t.Context(), program(), append([]string{"rbac", f.modules, "--check", "--kubeconfig", shared.Kubeconfig, "-n", f.ns, "--name", f.name}, args...)...)
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}
	where := " in namespace " + f.ns
	out, code := check()
	for _, want := range []string{
		"system:serviceaccount:" + f.ns + ":starling lacks:", "create, delete, get, list, patch, watch poddisruptionbudgets.policy" + where + " (chart of web)",
		"list cronjobs.batch" + where, "create, patch limitranges" + where,
	} {
		if code != 2 || !strings.Contains(out, want) {
			t.Errorf("exit code %d, nothing of %q in:\n%s", code, want, out)
		}
	}
	if out, code := check("--as", "system:serviceaccount:"+f.ns+":nobody"); code != 2 || !strings.Contains(out, "configmaps") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	if p, _ := f.plan(shared.Kubeconfig); len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "lacks rights for web: ") || !strings.Contains(p.Warnings[0], "poddisruptionbudgets.policy"+where) {
		t.Errorf("the plan warns of %q", p.Warnings)
	}

	f.start()
	f.waitState("web", status.ModuleFailed, "no revision is made", "create poddisruptionbudgets.policy"+where, "list cronjobs.batch"+where)
	f.waitState("hooks", status.ModuleFailed, "limitranges")
	secrets, err := shared.Client.CoreV1().Secrets(f.ns).List(t.Context(), metav1.ListOptions{LabelSelector: "owner=helm"})
	if err != nil || len(secrets.Items) > 0 {
		t.Errorf("there are %d revisions, %v", len(secrets.Items), err)
	}

	roles := shared.Client.RbacV1()
	_, err1 := roles.Roles(f.ns).Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "more"}, Rules: missing}, metav1.CreateOptions{})
	_, err2 := roles.RoleBindings(f.ns).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "more"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "more"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: f.ns, Name: f.name}},
	}, metav1.CreateOptions{})
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	f.waitState("web", status.ModuleReady)
	f.waitState("hooks", status.ModuleReady)
	if out, code := check(); code != 0 || !strings.Contains(out, "has all rights") {
		t.Errorf("exit code %d:\n%s", code, out)
	}

	// An upgrade that needs one more is refused before it begins.
	f.write(map[string]string{"web/templates/b.yaml": "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: a}\nspec: {podSelector: {}}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 80}]}\n"})
	f.waitState("web", status.ModuleFailed, "create networkpolicies.networking.k8s.io"+where, "create services"+where)
	f.waitRevision(f.ns, "web", 1)

	// A module that left the tree needs the right to delete what its release holds.
	f.stop()
	if err := errors.Join(os.RemoveAll(filepath.Join(f.modules, "web")), roles.Roles(f.ns).Delete(t.Context(), "more", metav1.DeleteOptions{})); err != nil {
		t.Fatal(err)
	}
	if out, code := check(); code != 2 || !strings.Contains(out, "delete, get poddisruptionbudgets.policy"+where+" (release of web, which is in the cluster)") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}
