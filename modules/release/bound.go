package release

import (
	"context"
	"sync"

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

// Create makes one Secret.
func (b boundSecrets) Create(_ context.Context, s *corev1.Secret, o metav1.CreateOptions) (*corev1.Secret, error) {
	return b.SecretInterface.Create(b.ctx, s, o)
}

// Delete deletes one Secret.
func (b boundSecrets) Delete(_ context.Context, name string, o metav1.DeleteOptions) error {
	return b.SecretInterface.Delete(b.ctx, name, o)
}

// revisionSecrets notes the uids of Secrets that are read or written through it: Helm's storage
// driver does not return them.
type revisionSecrets struct {
	corev1client.SecretInterface

	mu   sync.Mutex
	uids map[string]string // by name
}

func newRevisionSecrets(secrets corev1client.SecretInterface) *revisionSecrets {
	return &revisionSecrets{SecretInterface: secrets, uids: map[string]string{}}
}

// Get reads one Secret.
func (r *revisionSecrets) Get(ctx context.Context, name string, o metav1.GetOptions) (*corev1.Secret, error) {
	return r.note(r.SecretInterface.Get(ctx, name, o))
}

// Create makes one Secret.
func (r *revisionSecrets) Create(ctx context.Context, s *corev1.Secret, o metav1.CreateOptions) (*corev1.Secret, error) {
	return r.note(r.SecretInterface.Create(ctx, s, o))
}

func (r *revisionSecrets) note(s *corev1.Secret, err error) (*corev1.Secret, error) {
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.uids[s.Name] = string(s.UID)
	}
	return s, err
}

// uid is that of the Secret of a name, "" when it is not known.
func (r *revisionSecrets) uid(name string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.uids[name]
}
