package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
)

const (
	fieldManager = "starling-e2e"
	// settleTimeout is how long a small change may take to be seen by the server.
	settleTimeout = 3 * time.Minute
)

// Namespace makes a namespace for the test and returns its name. It is deleted
// when the test ends, without waiting for that.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()
	name := strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(t.Name()), "-"), "-")
	ns, err := c.Client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: name[:min(len(name), 40)] + "-"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("make a namespace: %v", err)
	}
	t.Cleanup(func() { // the test's own context has ended by now
		err := c.Client.CoreV1().Namespaces().Delete(context.Background(), ns.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("delete namespace %s: %v", ns.Name, err)
		}
	})
	return ns.Name
}

// AddNode adds a fake node, which becomes Ready by itself a moment later, with
// labels of the caller's choice. It is deleted when the test ends. Nodes are seen
// by all tests of the cluster.
func (c *Cluster) AddNode(t testing.TB, name string, labels map[string]string) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"type": "fake"}}}
	maps.Copy(node.Labels, labels)
	if _, err := c.Client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatalf("add node %s: %v", name, err)
	}
	t.Cleanup(func() {
		err := c.Client.CoreV1().Nodes().Delete(context.Background(), name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("delete node %s: %v", name, err)
		}
	})
}

// Apply applies the objects of a YAML stream on the server, by force, as the admin.
// Namespaced objects must name their namespace. A kind whose CRD was applied just
// before is waited for.
func (c *Cluster) Apply(t testing.TB, manifests string) {
	t.Helper()
	docs := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifests), 4096)
	for i := 1; ; i++ {
		var obj unstructured.Unstructured
		err := docs.Decode(&obj.Object)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("apply: document %d: %v", i, err)
		}
		if len(obj.Object) == 0 { // only comments
			continue
		}
		what := fmt.Sprintf("apply %s %s", obj.GetKind(), obj.GetName())
		var failed error
		Eventually(t, settleTimeout, what, func() error {
			if failed = c.apply(t.Context(), &obj); passing(failed) {
				c.mapper.Reset()
				return failed
			}
			return nil
		})
		if failed != nil {
			t.Fatalf("%s: %v", what, failed)
		}
	}
}

func (c *Cluster) apply(ctx context.Context, obj *unstructured.Unstructured) error {
	resource, err := c.Resource(obj)
	if err != nil {
		return err
	}
	_, err = resource.Apply(ctx, obj.GetName(), obj, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	return err
}

// passing says that an error may be over a moment later: discovery, and then the handlers
// of the server, learn late of a new kind, and somebody else may write the same object
// over and over.
func passing(err error) bool {
	return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsConflict(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err)
}

// Resource is the client for obj's kind in its namespace.
func (c *Cluster) Resource(obj *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	gvk := obj.GroupVersionKind()
	m, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	if m.Scope.Name() == meta.RESTScopeNameRoot {
		return c.Dynamic.Resource(m.Resource), nil
	}
	if obj.GetNamespace() == "" {
		return nil, errors.New("metadata.namespace is missing")
	}
	return c.Dynamic.Resource(m.Resource).Namespace(obj.GetNamespace()), nil
}
