package cluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Access is what a ServiceAccount may do.
type Access struct {
	// Cluster rules hold in every namespace and for cluster-scoped objects.
	Cluster []rbacv1.PolicyRule
	// Namespaced rules hold in the namespace that is their key, which must exist.
	Namespaced map[string][]rbacv1.PolicyRule
	// ClusterRoles are names of roles that exist, bound for the whole cluster.
	ClusterRoles []string
}

// ServiceAccountKubeconfig makes a ServiceAccount with just this access and
// returns a kubeconfig file with a real token of it, good for a day. It returns
// when the server honours the access. Objects outside namespace ns are removed
// when the test ends.
func (c *Cluster) ServiceAccountKubeconfig(t testing.TB, ns, name string, a Access) string {
	t.Helper()
	_, err := c.Client.CoreV1().ServiceAccounts(ns).Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("make ServiceAccount %s/%s: %v", ns, name, err)
	}
	want, err := c.grant(t, ns, name, a)
	if err != nil {
		t.Fatalf("access of ServiceAccount %s/%s: %v", ns, name, err)
	}
	file, client := c.token(t, ns, name)
	for in, rules := range want {
		Eventually(t, settleTimeout, "the access of ServiceAccount "+ns+"/"+name, func() error {
			return honoured(t.Context(), client, in, rules)
		})
	}
	return file
}

// TokenKubeconfig returns a kubeconfig file with a real token, good for a day, of a
// ServiceAccount that is there.
func (c *Cluster) TokenKubeconfig(t testing.TB, ns, name string) string {
	t.Helper()
	file, _ := c.token(t, ns, name)
	return file
}

// token returns a kubeconfig file of a ServiceAccount, and a client with its token.
func (c *Cluster) token(t testing.TB, ns, name string) (string, kubernetes.Interface) {
	t.Helper()
	token, err := c.Client.CoreV1().ServiceAccounts(ns).CreateToken(t.Context(), name,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(24 * 60 * 60))}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("token of ServiceAccount %s/%s: %v", ns, name, err)
	}

	k := clientcmdapi.NewConfig()
	k.Clusters["e2e"] = &clientcmdapi.Cluster{Server: c.Config.Host, CertificateAuthorityData: c.Config.CAData}
	k.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	k.Contexts["e2e"] = &clientcmdapi.Context{Cluster: "e2e", AuthInfo: name, Namespace: ns}
	k.CurrentContext = "e2e"
	file := filepath.Join(t.TempDir(), name+".kubeconfig")
	if err := clientcmd.WriteToFile(*k, file); err != nil {
		t.Fatalf("kubeconfig of ServiceAccount %s/%s: %v", ns, name, err)
	}

	config := rest.AnonymousClientConfig(c.Config)
	config.BearerToken = token.Status.Token
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatalf("client of ServiceAccount %s/%s: %v", ns, name, err)
	}
	return file, client
}

// grant makes the roles and bindings, and returns the rules to expect by namespace.
func (c *Cluster) grant(t testing.TB, ns, name string, a Access) (map[string][]rbacv1.PolicyRule, error) {
	ctx, rbac := t.Context(), c.Client.RbacV1()
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: name}}
	own := metav1.ObjectMeta{Name: ns + "." + name} // unique in the cluster
	want := map[string][]rbacv1.PolicyRule{ns: slices.Clone(a.Cluster)}

	for in, rules := range a.Namespaced {
		_, err1 := rbac.Roles(in).Create(ctx, &rbacv1.Role{ObjectMeta: own, Rules: rules}, metav1.CreateOptions{})
		_, err2 := rbac.RoleBindings(in).Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: own, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: own.Name},
		}, metav1.CreateOptions{})
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		remove(t, own.Name, rbac.Roles(in).Delete)
		remove(t, own.Name, rbac.RoleBindings(in).Delete)
		want[in] = append(want[in], rules...)
	}

	roles := slices.Clone(a.ClusterRoles)
	for _, role := range a.ClusterRoles {
		r, err := rbac.ClusterRoles().Get(ctx, role, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		want[ns] = append(want[ns], r.Rules...)
	}
	if len(a.Cluster) > 0 {
		if _, err := rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: own, Rules: a.Cluster}, metav1.CreateOptions{}); err != nil {
			return nil, err
		}
		remove(t, own.Name, rbac.ClusterRoles().Delete)
		roles = append(roles, own.Name)
	}
	for _, role := range roles {
		binding := own.Name + "." + role
		_, err := rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: binding}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		}, metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
		remove(t, binding, rbac.ClusterRoleBindings().Delete)
	}
	return want, nil
}

// remove deletes an object when the test ends.
func remove(t testing.TB, name string, del func(context.Context, string, metav1.DeleteOptions) error) {
	t.Cleanup(func() {
		if err := del(context.Background(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("delete %s: %v", name, err)
		}
	})
}

// honoured asks the server whether the client's user has the rules in a namespace:
// the authorizer learns of new bindings a moment after they were made.
func honoured(ctx context.Context, client kubernetes.Interface, ns string, rules []rbacv1.PolicyRule) error {
	review, err := client.AuthorizationV1().SelfSubjectRulesReviews().Create(ctx, &authorizationv1.SelfSubjectRulesReview{
		Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: ns},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	for _, rule := range rules {
		if len(rule.Resources) == 0 { // non-resource URLs
			continue
		}
		want := authorizationv1.ResourceRule{Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames}
		if !slices.ContainsFunc(review.Status.ResourceRules, func(have authorizationv1.ResourceRule) bool { return reflect.DeepEqual(have, want) }) {
			return fmt.Errorf("%v on %v is not granted yet in namespace %s", rule.Verbs, rule.Resources, ns)
		}
	}
	return nil
}
