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

	"github.com/starling-operator/starling/e2e/proxy"
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

// keepLease gives accounts a right on Leases that revoke leaves alone.
func (w *world) keepLease(accounts ...string) {
	w.t.Helper()
	_, err := w.cluster.Client.RbacV1().Roles(w.ns).Create(w.t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "lease"},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"*"}}}}, metav1.CreateOptions{})
	w.done(err)
	var subjects []rbacv1.Subject
	for _, name := range accounts {
		subjects = append(subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: w.ns, Name: name})
	}
	_, err = w.cluster.Client.RbacV1().RoleBindings(w.ns).Create(w.t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "lease"},
		Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "lease"}}, metav1.CreateOptions{})
	w.done(err)
}

// revoke takes all other rights away from accounts, and returns what gives them back.
func (w *world) revoke(accounts ...string) (giveBack func()) {
	w.t.Helper()
	bindings := w.cluster.Client.RbacV1().ClusterRoleBindings()
	var all []*rbacv1.ClusterRoleBinding
	for _, name := range accounts {
		binding, err := bindings.Get(w.t.Context(), w.ns+"."+name+".cluster-admin", metav1.GetOptions{})
		w.done(err)
		binding.ResourceVersion, binding.UID = "", ""
		all = append(all, binding)
		w.done(bindings.Delete(w.t.Context(), binding.Name, metav1.DeleteOptions{}))
	}
	w.proxy.Cut(proxy.Watches) // they go on with the rights that they had
	return func() {
		w.t.Helper()
		for _, binding := range all {
			_, err := bindings.Create(w.t.Context(), binding, metav1.CreateOptions{})
			w.done(err)
		}
	}
}

// Row 12: all rights but those on the Lease are taken away, and given back, while users work. The status names
// what is missing, and all is done afterwards, by the same process.
func TestRightsThatGoAndCome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.keepLease("starling")
	w.begin()
	for round := range rounds {
		giveBack := w.revoke("starling")
		w.changes(5)
		w.tells("not allowed to")
		w.tells("system:serviceaccount:" + w.ns + ":starling")
		w.changes(5)
		giveBack()
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

// mounted are the files of a token and of an authority, as a pod has them.
type mounted struct {
	account, token, authority string
	took                      func(token string) // hears of each token; nil: nobody does
	revoke                    func()             // revokes the last token
}

// mount has a replica read its token and the authority from files.
func (w *world) mount(r *replica, account string, took func(string)) *mounted {
	w.t.Helper()
	dir := w.t.TempDir()
	k, err := clientcmd.LoadFromFile(r.kube)
	w.done(err)
	m := &mounted{account: account, token: filepath.Join(dir, "token"), authority: filepath.Join(dir, "ca.crt"), took: took}
	for _, c := range k.Clusters {
		w.put(m.authority, c.CertificateAuthorityData)
		c.CertificateAuthorityData, c.CertificateAuthority = nil, m.authority
	}
	for _, u := range k.AuthInfos {
		u.Token, u.TokenFile = "", m.token
	}
	w.giveToken(m)
	r.kube = filepath.Join(dir, "kubeconfig")
	w.done(clientcmd.WriteToFile(*k, r.kube))
	return m
}

// put writes a file at once, as a kubelet does.
func (w *world) put(file string, data []byte) {
	w.t.Helper()
	w.done(os.WriteFile(file+".new", data, 0o600))
	w.done(os.Rename(file+".new", file))
}

// Row 12: the token is revoked and another one put in its place, and the API server shows a certificate of another
// authority, which stands in the file a moment later. The same process goes on.
func TestTokenAndAuthorityThatAreRotated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.mount(w.replicas[0], "starling", nil)
	w.begin()
	var unseen time.Duration
	for range rounds {
		w.renewToken(m)
		w.changes(5)
		unseen = max(unseen, w.stamp())

		shown, err := w.proxy.Rotate()
		w.done(err)
		w.changes(2)
		w.put(m.authority, shown)
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

// renewToken puts a new token into the file, and revokes the one before.
func (w *world) renewToken(m *mounted) {
	w.t.Helper()
	old := m.revoke
	w.giveToken(m)
	old()
}

// giveToken puts a new token into the file.
func (w *world) giveToken(m *mounted) {
	w.t.Helper()
	secret, err := w.cluster.Client.CoreV1().Secrets(w.ns).Create(w.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{GenerateName: "bound-"}}, metav1.CreateOptions{})
	w.done(err)
	token, err := w.cluster.Client.CoreV1().ServiceAccounts(w.ns).CreateToken(w.t.Context(), m.account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Secret", APIVersion: "v1", Name: secret.Name, UID: secret.UID}},
	}, metav1.CreateOptions{})
	w.done(err)
	if m.took != nil {
		m.took(token.Status.Token)
	}
	w.put(m.token, []byte(token.Status.Token))
	m.revoke = func() {
		w.t.Helper()
		w.done(w.cluster.Client.CoreV1().Secrets(w.ns).Delete(w.t.Context(), secret.Name, metav1.DeleteOptions{}))
		w.proxy.Cut(nil)
	}
}
