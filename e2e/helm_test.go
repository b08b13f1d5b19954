package e2e

import (
	"testing"

	"helm.sh/helm/v3/pkg/action"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/modules/status"
)

// Releases are ordinary ones: Helm lists them, and their Secrets say whose they are.
func TestHelmSeesTheReleases(t *testing.T) {
	t.Parallel()
	apps := shared.Namespace(t)
	role := mirrors
	role.Releases = map[string][]rbacv1.PolicyRule{"$NS": {renders("", "configmaps")}, apps: {renders("", "configmaps")}}
	f := newFixture(t, trees(mirror("web", on), mirror("shop", `module(enabled = True, namespace = "`+apps+`", release = "store")`)), role)
	f.start()
	f.waitRevision(f.ns, "web", 1)
	f.waitRevision(apps, "store", 1)

	for ns, want := range map[string]struct{ release, module string }{f.ns: {"web", "web"}, apps: {"store", "shop"}} {
		list := action.NewList(helm(ns))
		all, err := list.Run()
		if err != nil {
			t.Fatal(err)
		}
		if len(all) != 1 || all[0].Name != want.release || all[0].Namespace != ns || all[0].Chart.Name() != want.module {
			t.Errorf("helm list in %s shows %d releases, want %s of chart %s", ns, len(all), want.release, want.module)
		}
		s, err := shared.Client.CoreV1().Secrets(ns).Get(t.Context(), "sh.helm.release.v1."+want.release+".v1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for label, value := range map[string]string{"starling.dev/instance": f.ns + ".starling", "starling.dev/module": want.module, "owner": "helm"} {
			if s.Labels[label] != value {
				t.Errorf("label %s of the release Secret is %q, want %q", label, s.Labels[label], value)
			}
		}
		for _, label := range []string{"starling.dev/inputs", "starling.dev/manifest"} {
			if s.Labels[label] == "" {
				t.Errorf("the release Secret has no label %s: %v", label, s.Labels)
			}
		}
	}

	f.configure(map[string]string{"shop": "text: later"})
	f.waitRevision(apps, "store", 2)

	// A rollback by hand is undone.
	back := action.NewRollback(helm(apps))
	back.Version = 1
	if err := back.Run("store"); err != nil {
		t.Fatal(err)
	}
	f.waitRevision(apps, "store", 4)
	f.waitState("shop", status.ModuleReady)
}

// An error about a right says which one to give, to whom, and where; the others go on.
func TestRightsThatAreMissing(t *testing.T) {
	t.Parallel()
	apps := shared.Namespace(t)
	f := newFixture(t, trees(mirror("web", on), mirror("shop", `module(enabled = True, namespace = "`+apps+`")`),
		mirror("service", on), mirror("watcher", on), mirror("writer", on), mirror("reader", on), mirror("crds", on), probe(), map[string]string{
			"service/templates/s.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: service}\nspec: {ports: [{port: 80}]}\n",
			"watcher/hooks/a.star":     "\ndef run(ctx):\n    pass\n\nhook(run, on = [k8s.watch(\"v1\", \"Pod\", name = \"pods\")])\n",
			"writer/module.star":       "module(enabled = True, grants = [grant(\"v1\", \"Service\", verbs = [\"apply\"])])\n",
			"writer/hooks/a.star": "\ndef run(ctx):\n    k8s.apply({\"apiVersion\": \"v1\", \"kind\": \"Service\", \"metadata\": {\"name\": \"s\"}, \"spec\": {\"ports\": [{\"port\": 80}]}})\n" +
				"\nhook(run, on = [startup()])\n",
			"reader/hooks/a.star":  "\ndef run(ctx):\n    k8s.get(\"v1\", \"Pod\", \"p\")\n\nhook(run, on = [startup()])\n",
			"crds/crds/lamps.yaml": lamps("color"),
		}))
	who := "system:serviceaccount:" + f.ns + ":op-starling"
	f.start()
	f.waitRevision(f.ns, "web", 1)
	f.waitState("shop", status.ModuleFailed, "secrets", "list", apps, who)
	f.waitState("service", status.ModuleFailed, "services", f.ns, who)
	f.waitState("watcher", status.ModuleFailed, "pods", "watch", who)
	f.waitState("writer", status.ModuleFailed, "writer/hooks/a.star:3", "services", "patch", f.ns, who)
	f.waitState("reader", status.ModuleFailed, "reader/hooks/a.star:3", "grant(\"v1\", \"Pod\"")
	f.waitState("crds", status.ModuleFailed, "customresourcedefinitions", "get", who)
	f.waitReady()
	f.probe()

	// The right is given, and the next try needs no restart.
	_, err := shared.Client.RbacV1().Roles(f.ns).Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "later"}, Rules: []rbacv1.PolicyRule{renders("", "services")}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = shared.Client.RbacV1().RoleBindings(f.ns).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "later"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: f.ns, Name: "op-starling"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "later"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f.waitState("writer", status.ModuleReady)
	f.waitState("service", status.ModuleReady)
}
