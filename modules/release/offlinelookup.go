package release

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
)

// offlineLookups finds nothing, and notes what the module does not allow.
type offlineLookups struct {
	target  Target
	missing []Missing
}

func (l *offlineLookups) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	return noObjects{l: l, ref: effect.Ref{APIVersion: apiVersion, Kind: kind}}, true, nil
}

type noObjects struct {
	dynamic.NamespaceableResourceInterface
	l   *offlineLookups
	ref effect.Ref
}

// Namespace is the same in one namespace.
func (n noObjects) Namespace(namespace string) dynamic.ResourceInterface {
	n.ref.Namespace = namespace
	return n
}

// Get finds nothing.
func (n noObjects) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	n.ref.Name = name
	n.note()
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: n.ref.Kind}, name)
}

// List finds nothing.
func (n noObjects) List(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	n.note()
	return &unstructured.UnstructuredList{Object: map[string]any{}}, nil
}

func (n noObjects) note() {
	// Without a cluster it is not known which kinds are in no namespace.
	if builtins.MayLookUp(n.l.target.Lookup, n.ref, true, n.l.target.Namespace) ||
		n.ref.Namespace == "" && builtins.MayLookUp(n.l.target.Lookup, n.ref, false, n.l.target.Namespace) {
		return
	}
	one := Missing{Line: builtins.LookupLine(n.ref, true, n.l.target.Namespace)}
	if !slices.Contains(n.l.missing, one) {
		n.l.missing = append(n.l.missing, one)
	}
}
