//go:build e2e

package release

import (
	"testing"

	helmrelease "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/builtins"
)

// A chart holds and reads what its module names, also where it asks for more in a later
// revision only.
func TestReleaseLimits(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.makeApps()
	if _, err := f.kube.CoreV1().Secrets(f.ns).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "theirs"}, StringData: map[string]string{"key": "hidden"},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	role := "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: " + f.apps + "}\nrules: []\n"
	later := func(text string) string { return "{{ if gt .Release.Revision 1 }}" + text + "{{ end }}" }
	secret := "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: stolen}\ndata: {x: {{ (lookup \"v1\" \"Secret\" \"" + f.ns + "\" \"theirs\").data.key }}}\n"
	job := "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: job-{{ .Release.Revision }}}\n"
	color := func(c string) map[string]any { return map[string]any{"color": c} }

	f.refused(f.target(color("red"), configMapTemplate, role), `grant("rbac.authorization.k8s.io/v1", "ClusterRole")`, "module(installs")
	f.refused(f.target(color("red"), configMapTemplate, secret), `grant("v1", "Secret", names = ["theirs"], namespaces = ["`+f.ns+`"])`, "module(lookup")
	f.reconcile(f.target(color("red"), configMapTemplate, job))
	f.refused(f.target(color("blue"), configMapTemplate, later(role)), `"ClusterRole"`, "module(installs")
	f.refused(f.target(color("blue"), configMapTemplate, later(secret)), `"Secret"`, "module(lookup")
	f.wantStatus("web", 1, helmrelease.StatusDeployed)

	f.reconcile(f.target(color("blue"), configMapTemplate, job))
	f.configMap("job-2")
	rel, err := f.store().Last("web")
	if err != nil || len(rel.Chart.Templates) != 2 || string(rel.Chart.Templates[0].Data) != configMapTemplate {
		t.Errorf("the release holds another chart: %v", err)
	}

	named := f.target(color("green"), configMapTemplate, role)
	named.Installs = []builtins.Grant{{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Names: []string{f.apps}}}
	f.reconcile(named)
	if done, err := f.Uninstall(t.Context(), named.Ref(), 0); !done || err != nil {
		t.Fatal(done, err)
	}
	if _, err := f.kube.RbacV1().ClusterRoles().Get(t.Context(), f.apps, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the role: %v", err)
	}
}
