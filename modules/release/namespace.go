package release

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EnsureNamespace makes the namespace of a first install. It is never deleted.
// Without the right to look, the install itself will tell.
func (m *Manager) EnsureNamespace(ctx context.Context, name string) error {
	if name == m.o.Namespace {
		return nil
	}
	found, err := m.core.Namespaces().Get(ctx, name, metav1.GetOptions{})
	if err == nil && found.DeletionTimestamp != nil {
		return fmt.Errorf("%s; the release is made anew once that has ended", deletedNamespace(name))
	}
	if err == nil || apierrors.IsForbidden(err) {
		return nil
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("looking for namespace %s: %w", name, err)
	}
	_, err = m.core.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{"app.kubernetes.io/managed-by": "starling"},
	}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating namespace %s: %w", name, err)
	}
	return nil
}

// deletedNamespace is why nothing can be made in a namespace.
func deletedNamespace(name string) string { return "namespace " + name + " is being deleted" }

// terminating says whether a namespace is being deleted. Without the right to look, it is not.
func (m *Manager) terminating(ctx context.Context, name string) bool {
	found, err := m.core.Namespaces().Get(ctx, name, metav1.GetOptions{})
	return err == nil && found.DeletionTimestamp != nil
}
