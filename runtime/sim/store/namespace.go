package store

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var namespaceResource = schema.GroupResource{Resource: "namespaces"}

// makeNamespace makes a namespace as a user would.
func (s *Store) makeNamespace(name string) {
	k := s.o.Builtins.byResource[namespaceResource.WithVersion("v1")]
	obj := map[string]any{"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{"name": name, "labels": map[string]any{corev1.LabelMetadataName: name}, "creationTimestamp": s.now(), "uid": s.newUID(namespaceResource, name)}}
	s.prepareNew(k, obj)
	s.commit(k, name, obj)
}

// checkNamespace says whether an object may be made in a namespace, which it makes
// when the store is told to.
func (s *Store) checkNamespace(k *kind, namespace, name string, dryRun bool) error {
	if !k.Namespaced {
		return nil
	}
	if namespace == "" {
		return apierrors.NewBadRequest("an empty namespace may not be set during creation")
	}
	switch err := s.load(s.o.Builtins.byResource[namespaceResource.WithVersion("v1")], "", namespace); {
	case apierrors.IsForbidden(err):
		return nil // a client that may not look at namespaces has one all the same
	case err != nil:
		return err
	}
	ns := s.table(namespaceResource).objects[namespace]
	if ns == nil {
		if !s.o.MakeNamespaces {
			return apierrors.NewNotFound(namespaceResource, namespace)
		}
		if !dryRun {
			s.makeNamespace(namespace)
		}
		return nil
	}
	if !deleting(ns) {
		return nil
	}
	err := apierrors.NewForbidden(k.groupResource(), name, fmt.Errorf("unable to create new content in namespace %s because it is being terminated", namespace))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: corev1.NamespaceTerminatingCause, Message: fmt.Sprintf("namespace %s is being terminated", namespace), Field: "metadata.namespace",
	})
	return err
}
