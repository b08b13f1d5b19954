package release

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// boundSecrets gives Helm's storage driver, which calls with a background
// context, the context that bounds it.
type boundSecrets struct {
	corev1client.SecretInterface
	ctx context.Context
}

// Get reads one Secret.
func (b boundSecrets) Get(_ context.Context, name string, o metav1.GetOptions) (*corev1.Secret, error) {
	return b.SecretInterface.Get(b.ctx, name, o)
}

// Update writes one Secret.
func (b boundSecrets) Update(_ context.Context, s *corev1.Secret, o metav1.UpdateOptions) (*corev1.Secret, error) {
	return b.SecretInterface.Update(b.ctx, s, o)
}
