package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/runtime/apply"
	"github.com/starling-operator/starling/runtime/lane"
)

// EnsureNamespace makes the namespace of a first install. It is never deleted.
// Without the right to look, the install itself will tell.
func (m *Manager) EnsureNamespace(ctx context.Context, name string) error {
	if name == m.o.Namespace {
		return nil
	}
	found, err := m.core.Namespaces().Get(ctx, name, metav1.GetOptions{})
	switch {
	case err == nil && found.DeletionTimestamp != nil:
		return &lane.Awaits{Err: errors.New(deletedNamespace(name) + "; the release is made anew once that has ended"), For: lane.AwaitsEnd}
	case err == nil || apierrors.IsForbidden(err):
		return nil
	case !apierrors.IsNotFound(err):
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

func isNamespace(s stored) bool {
	return s.mapping.Resource.GroupResource() == corev1.Resource("namespaces")
}

// inhabited says why a Namespace that a release holds no more stays, "" if it goes: it is the release's own, or has
// objects that would go with it. ends: all that the release has made goes.
func (m *Manager) inhabited(ctx context.Context, ref Ref, name string, ends bool) (why string, err error) {
	if name == ref.Namespace {
		return "it is the namespace of the release", nil
	}
	lists, err := m.o.Discovery.ServerPreferredNamespacedResources()
	if err != nil { // what is told of the rest decides nothing
		return "what is in it cannot be told: " + chart.Tidy(err.Error()), nil
	}
	var looks []func() (string, error)
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return "", err
		}
		for _, r := range list.APIResources {
			if !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "delete") || r.Kind == "Event" || r.Kind == "Endpoints" {
				continue // made of other objects
			}
			in, key := m.meta.Resource(gv.WithResource(r.Name)).Namespace(name), Key{APIVersion: list.GroupVersion, Kind: r.Kind, Namespace: name}
			looks = append(looks, func() (string, error) { return m.inhabitant(ctx, ref, in, key, ends) })
		}
	}
	whys := make([]string, len(looks))
	err = apply.SideBySide(len(looks), m.order(false).Width, func(i int) (err error) {
		whys[i], err = looks[i]()
		return err
	})
	return cmp.Or(whys...), err
}

// inhabitant names an object of a kind that would go with its namespace.
func (m *Manager) inhabitant(ctx context.Context, ref Ref, in metadata.ResourceInterface, key Key, ends bool) (string, error) {
	for page := (metav1.ListOptions{Limit: 500}); ; {
		objects, err := in.List(ctx, page)
		switch {
		case apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err):
			return "", nil // the kind has gone
		case apierrors.IsForbidden(err):
			return "nobody may look whether it has objects of kind " + key.Kind + ": give the ServiceAccount of " +
				"Starling the verb list for all resources of all API groups in it, or delete it yourself", nil
		case err != nil:
			return "", fmt.Errorf("looking for objects of kind %s in it: %w", key.Kind, err)
		}
		for _, o := range objects.Items {
			switch key.Name = o.Name; {
			case o.DeletionTimestamp != nil, key.Kind == "ConfigMap" && o.Name == "kube-root-ca.crt", key.Kind == "ServiceAccount" && o.Name == "default":
			case len(o.OwnerReferences) > 0 && !slices.ContainsFunc(o.OwnerReferences, func(of metav1.OwnerReference) bool {
				at, _, err := m.mapping(schema.FromAPIVersionAndKind(of.APIVersion, of.Kind))
				return err != nil || at.Scope.Name() == meta.RESTScopeNameRoot
			}): // its owner counts
			case ends && m.made(ref, &o) && !helm.Keeps(o.Annotations) && !m.claimed(ref, key):
			default:
				return fmt.Sprintf("it has %s %s, which does not go with the release", key.Kind, o.Name), nil
			}
		}
		if page.Continue = objects.Continue; page.Continue == "" {
			return "", nil
		}
	}
}
