//go:build e2e

package release

import (
	"strings"
	"testing"

	helmrelease "helm.sh/helm/v3/pkg/release"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
