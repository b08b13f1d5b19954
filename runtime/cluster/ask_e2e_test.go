//go:build e2e

package cluster

import (
	"strings"
	"testing"

	"github.com/rs/zerolog"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/builtins"
	e2e "github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/runtime/effect"
)

// The real API server answers each kind of question, with the rights that starling rbac prints for the grants.
func TestRealQuestions(t *testing.T) {
	t.Parallel()
	w := newRealWorld(t)
	if _, err := shared.Client.CoreV1().ServiceAccounts(w.ns).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "ci"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	client := func(name string, a e2e.Access) *Client {
		config, _, err := LoadConfig(shared.ServiceAccountKubeconfig(t, w.ns, name, a), "")
		if err != nil {
			t.Fatal(err)
		}
		client, err := New(Options{Config: config, Log: zerolog.Nop()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Close)
		return client
	}
	may := client("asks", e2e.Access{
		Cluster: []rbacv1.PolicyRule{
			{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}},
			{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}},
		},
		Namespaced: map[string][]rbacv1.PolicyRule{w.ns: {
			{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"localsubjectaccessreviews"}, Verbs: []string{"create"}},
			{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{"ci"}, Verbs: []string{"create"}},
		}},
	})
	question := func(group, kind, ns string, spec map[string]any) effect.Ask {
		q := effect.Ask{Ref: effect.Ref{APIVersion: group + ".k8s.io/v1", Kind: kind, Namespace: ns}, Object: map[string]any{"apiVersion": group + ".k8s.io/v1", "kind": kind, "spec": spec}}
		if ns != "" {
			q.Object["metadata"] = map[string]any{"namespace": ns}
		}
		return q
	}
	ask := func(group, kind, ns string, spec map[string]any) map[string]any {
		t.Helper()
		status, err := may.Ask(t.Context(), question(group, kind, ns, spec))
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		return status
	}
	token := func(name string) (map[string]any, error) {
		return may.Ask(t.Context(), effect.Ask{
			Ref: effect.Ref{APIVersion: "v1", Kind: "ServiceAccount", Namespace: w.ns, Name: name}, Subresource: "token",
			Object: map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": map[string]any{"expirationSeconds": int64(600)}},
		})
	}
	remove := map[string]any{"verb": "delete", "resource": "namespaces"}
	for user, want := range map[string]bool{"joe": false, "jane": true} {
		spec := map[string]any{"user": user, "resourceAttributes": remove}
		if want {
			spec["groups"] = []any{"system:masters"}
		}
		if got := ask("authorization", "SubjectAccessReview", "", spec); got["allowed"] != want {
			t.Errorf("%s may delete namespaces: %v", user, got)
		}
	}
	if got := ask("authorization", "LocalSubjectAccessReview", w.ns, map[string]any{"user": "joe", "resourceAttributes": map[string]any{"namespace": w.ns, "verb": "get", "resource": "pods"}}); got["allowed"] != false {
		t.Errorf("joe may read Pods: %v", got)
	}
	if got := ask("authorization", "SelfSubjectAccessReview", "", map[string]any{"resourceAttributes": remove}); got["allowed"] != false {
		t.Errorf("we may delete namespaces: %v", got)
	}
	if got := ask("authorization", "SelfSubjectRulesReview", "", map[string]any{"namespace": w.ns}); got["resourceRules"] == nil {
		t.Errorf("our rules: %v", got)
	}
	if got := ask("authentication", "SelfSubjectReview", "", map[string]any{}); got["userInfo"] == nil {
		t.Errorf("who we are: %v", got)
	}
	given, err := token("ci")
	if err != nil {
		t.Fatal(err)
	}
	got := ask("authentication", "TokenReview", "", map[string]any{"token": given["token"]})
	if user, _ := got["user"].(map[string]any); got["authenticated"] != true || user["username"] != "system:serviceaccount:"+w.ns+":ci" {
		t.Errorf("whose the token is: %v", got)
	}
	if _, err := token("other"); !builtins.Unanswered(err) || !strings.Contains(err.Error(), "not allowed to create serviceaccounts/token in namespace "+w.ns) {
		t.Errorf("a token of another ServiceAccount: %v", err)
	}
	_, err = client("asks-not", e2e.Access{}).Ask(t.Context(), question("authorization", "SubjectAccessReview", "", map[string]any{"user": "joe", "resourceAttributes": remove}))
	if !builtins.Unanswered(err) || !strings.Contains(err.Error(), "not allowed to create subjectaccessreviews") {
		t.Errorf("without the right: %v", err)
	}
	if _, err = may.Ask(t.Context(), question("authorization", "SubjectAccessReview", "", map[string]any{"user": "joe"})); err == nil || builtins.Unanswered(err) {
		t.Errorf("a question that lacks its half: %v", err)
	} else {
		t.Log(err)
	}
}
