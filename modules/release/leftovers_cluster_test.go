//go:build e2e

package release

import (
	"slices"
	"strings"
	"testing"

	helmrelease "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/modules/helm"
)

const agentTemplate = `{{- range .Values.agents }}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: {{ . }}}
spec:
  selector: {matchLabels: {app: {{ . }}}}
  template: {metadata: {labels: {app: {{ . }}}}, spec: {containers: [{name: a, image: a}]}}
{{- end }}
`

// An admission policy that refuses DELETE loses no object: not in an upgrade, not over a
// restart, not in an uninstall.
func TestReleaseDeletesThatARefusalHeldUp(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.makeApps()
	agents := func(names ...any) Target { return f.target(map[string]any{"agents": names}, agentTemplate) }
	there := func(name string) bool {
		_, err := f.kube.AppsV1().DaemonSets(f.apps).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		return err == nil
	}
	f.reconcile(agents("a", "b"))

	allow := f.refuseDeletes("daemonsets")
	f.refused(agents("b"), "DaemonSet a", "not today", "tried again")
	f.wantStatus("web", 2, helmrelease.StatusDeployed)
	f.Manager = f.manager() // restart
	f.refused(agents("b"), "DaemonSet a", "not today")
	if !there("a") {
		t.Fatal("the policy did not refuse")
	}
	refs, err := f.Installed(t.Context())
	if err != nil || len(refs) != 1 {
		t.Fatal(refs, err)
	}
	if done, err := f.Uninstall(t.Context(), refs[0], 0); done || err == nil || !strings.Contains(err.Error(), "not today") {
		t.Errorf("uninstall: %v, %v", done, err)
	}
	if refs, err := f.Installed(t.Context()); err != nil || len(refs) != 1 {
		t.Fatalf("the record has gone while the objects are there: %v, %v", refs, err)
	}
	allow()
	f.reconcile(agents("b"))
	if there("a") || !there("b") {
		t.Errorf("a: %v, b: %v", there("a"), there("b"))
	}
	if n := f.writes.Load(); f.reconcile(agents("b")).Action != ActionUnchanged || f.writes.Load() != n {
		t.Error("a release that is done writes")
	}
	if done, err := f.Uninstall(t.Context(), refs[0], 0); !done || err != nil || there("b") {
		t.Errorf("uninstall: %v, %v, b: %v", done, err, there("b"))
	}
}

// refuseDeletes has an admission policy refuse DELETE in the namespace of the releases; it
// returns once that is in force, and allow once it is not.
func (f *fixture) refuseDeletes(resource string) (allow func()) {
	f.t.Helper()
	ctx, policies, bindings := f.t.Context(), f.kube.AdmissionregistrationV1().ValidatingAdmissionPolicies(), f.kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	fail := admissionv1.Fail
	_, err := policies.Create(ctx, &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: f.apps},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Delete},
					Rule:       admissionv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{resource}},
				},
			}}},
			Validations: []admissionv1.Validation{{Expression: "false", Message: "not today"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	if _, err := bindings.Create(ctx, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: f.apps},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: f.apps, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": f.apps}}},
		},
	}, metav1.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
	refused := func() bool {
		for _, name := range []string{"a", "b"} {
			err := f.kube.AppsV1().DaemonSets(f.apps).Delete(ctx, name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil && !apierrors.IsNotFound(err) {
				return true
			}
		}
		return false
	}
	eventually(f.t, "the policy refuses", refused)
	return func() {
		if err := bindings.Delete(ctx, f.apps, metav1.DeleteOptions{}); err != nil {
			f.t.Fatal(err)
		}
		if err := policies.Delete(ctx, f.apps, metav1.DeleteOptions{}); err != nil {
			f.t.Fatal(err)
		}
		eventually(f.t, "the policy refuses no more", func() bool { return !refused() })
	}
}

// Anybody who may write Secrets can write a revision that names objects of others: these stay, in an upgrade and in an
// uninstall. An object that has lost its annotations is ours while it has the label.
func TestARecordThatSomebodyHasWritten(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.makeApps()
	agents := func(names ...any) Target { return f.target(map[string]any{"agents": names}, agentTemplate) }
	maps, store := f.kube.CoreV1().ConfigMaps(f.apps), driver.NewSecrets(f.kube.CoreV1().Secrets(f.apps))
	for _, uninstall := range []bool{false, true} {
		f.reconcile(agents("a", "b"))
		off := []byte(`{"metadata": {"annotations": {"meta.helm.sh/release-name": null, "meta.helm.sh/release-namespace": null}}}`)
		if _, err := f.kube.AppsV1().DaemonSets(f.apps).Patch(t.Context(), "a", types.MergePatchType, off, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "victim", Labels: map[string]string{"app.kubernetes.io/managed-by": "Helm"}}}, metav1.CreateOptions{}); err != nil && !uninstall {
			t.Fatal(err)
		}
		revisions, err := store.List(func(*helmrelease.Release) bool { return true })
		if err != nil {
			t.Fatal(err)
		}
		last := slices.MaxFunc(revisions, func(a, b *helmrelease.Release) int { return a.Version - b.Version })
		last.Manifest += "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: victim}\n"
		if err := store.Update(helm.Key(last.Name, last.Version), last); err != nil {
			t.Fatal(err)
		}
		f.Manager = f.manager() // restart
		if uninstall {
			refs, err := f.Installed(t.Context())
			if err != nil || len(refs) != 1 {
				t.Fatal(refs, err)
			}
			if done, err := f.Uninstall(t.Context(), refs[0], 0); !done || err != nil {
				t.Fatal(done, err)
			}
		} else {
			f.reconcile(agents("b"))
		}
		if _, err := maps.Get(t.Context(), "victim", metav1.GetOptions{}); err != nil {
			t.Errorf("uninstall %t: an object of others: %v", uninstall, err)
		}
		if _, err := f.kube.AppsV1().DaemonSets(f.apps).Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("uninstall %t: an object of the release without its annotations: %v", uninstall, err)
		}
	}
}
