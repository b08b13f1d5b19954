package faults

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// tells waits until the status of the process that runs holds a text.
func (w *world) tells(text string) {
	w.t.Helper()
	w.eventually("the status tells of "+text, func() error {
		st, err := w.status()
		if err != nil {
			return err
		}
		if data, _ := json.Marshal(st); !strings.Contains(string(data), text) {
			return fmt.Errorf("it says %s", data)
		}
		return nil
	})
}

// Row 12: all rights but those on the Lease are taken away, and given back, while users work. The status names
// what is missing, and all is done afterwards, by the same process.
func TestRightsThatGoAndCome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.cluster.Client.RbacV1().Roles(w.ns).Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "lease"},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"*"}}}}, metav1.CreateOptions{})
	w.done(err)
	_, err = w.cluster.Client.RbacV1().RoleBindings(w.ns).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "lease"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.ns, Name: "starling"}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "lease"}}, metav1.CreateOptions{})
	w.done(err)
	bindings := w.cluster.Client.RbacV1().ClusterRoleBindings()
	binding, err := bindings.Get(t.Context(), w.ns+".starling.cluster-admin", metav1.GetOptions{})
	w.done(err)
	binding.ResourceVersion, binding.UID = "", ""
	w.begin()
	for round := range rounds {
		w.done(bindings.Delete(t.Context(), binding.Name, metav1.DeleteOptions{}))
		w.inject() // watches go on with the rights that they had
		w.changes(5)
		w.tells("not allowed to")
		w.tells("system:serviceaccount:" + w.ns + ":starling")
		w.changes(5)
		_, err := bindings.Create(t.Context(), binding, metav1.CreateOptions{})
		w.done(err)
		healed := w.settle()
		t.Logf("round %d: all was as it should be %s after the rights were back", round, healed.Round(time.Millisecond))
		if long && healed > mostHealing {
			t.Errorf("it took %s until all was as it should be", healed)
		}
	}
	if w.starts() > 1 {
		t.Errorf("Starling was started %d times", w.starts())
	}
}

// Row 12: the token is revoked and another one put in its place, and the API server shows a certificate of another
// authority, which stands in the file a moment later. The same process goes on.
func TestTokenAndAuthorityThatAreRotated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	k, err := clientcmd.LoadFromFile(w.kube)
	w.done(err)
	authority, token := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "token")
	put := func(file string, data []byte) { // at once, as a kubelet does
		t.Helper()
		w.done(os.WriteFile(file+".new", data, 0o600))
		w.done(os.Rename(file+".new", file))
	}
	for _, c := range k.Clusters {
		put(authority, c.CertificateAuthorityData)
		c.CertificateAuthorityData, c.CertificateAuthority = nil, authority
	}
	for _, u := range k.AuthInfos {
		u.Token, u.TokenFile = "", token
	}
	revoke := w.giveToken(put, token)
	w.replicas[0].kube = filepath.Join(dir, "kubeconfig")
	w.done(clientcmd.WriteToFile(*k, w.replicas[0].kube))
	w.begin()
	var unseen time.Duration
	for range rounds {
		old := revoke
		revoke = w.giveToken(put, token)
		old()
		w.changes(5)
		unseen = max(unseen, w.stamp())

		shown, err := w.proxy.Rotate()
		w.done(err)
		w.changes(2)
		put(authority, shown)
		unseen = max(unseen, w.stamp())
		w.changes(5)
		w.settle()
	}
	t.Logf("%d rounds: a change was unseen for %s at most", rounds, unseen.Round(time.Millisecond))
	if w.starts() > 1 {
		t.Errorf("Starling was started %d times", w.starts())
	}
	if long && unseen > mostUnseen {
		t.Errorf("a change was unseen for %s", unseen)
	}
}

// giveToken puts a new token of the ServiceAccount into a file, and returns what revokes it.
func (w *world) giveToken(put func(string, []byte), file string) (revoke func()) {
	w.t.Helper()
	secret, err := w.cluster.Client.CoreV1().Secrets(w.ns).Create(w.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{GenerateName: "bound-"}}, metav1.CreateOptions{})
	w.done(err)
	token, err := w.cluster.Client.CoreV1().ServiceAccounts(w.ns).CreateToken(w.t.Context(), "starling", &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Secret", APIVersion: "v1", Name: secret.Name, UID: secret.UID}},
	}, metav1.CreateOptions{})
	w.done(err)
	put(file, []byte(token.Status.Token))
	return func() {
		w.t.Helper()
		w.done(w.cluster.Client.CoreV1().Secrets(w.ns).Delete(w.t.Context(), secret.Name, metav1.DeleteOptions{}))
		w.proxy.Cut(nil)
	}
}
