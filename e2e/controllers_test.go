package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var applications = schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "applications"}

// examples/application promises: the children of an Application are there, those that somebody deletes
// or changes are put right, and all go before it does.
func TestApplication(t *testing.T) {
	t.Parallel()
	t.Cleanup(func() {
		_ = shared.Dynamic.Resource(definitions).Delete(context.Background(), "applications.example.org", metav1.DeleteOptions{})
	})
	f := example(t, "application")
	f.start()
	f.waitReady()

	ns := shared.Namespace(t)
	apps, services := shared.Dynamic.Resource(applications).Namespace(ns), shared.Client.CoreV1().Services(ns)
	deployments, ingresses := shared.Client.AppsV1().Deployments(ns), shared.Client.NetworkingV1().Ingresses(ns)
	apply := func(image string) {
		t.Helper()
		shared.Apply(t, fmt.Sprintf("apiVersion: example.org/v1\nkind: Application\nmetadata: {name: blog, namespace: %s}\nspec: {image: %q, host: blog.example.com}\n", ns, image))
	}
	ready := func() error { // as the controller and a kubelet would say
		d, err := deployments.Get(t.Context(), "blog", metav1.GetOptions{})
		if err != nil {
			return err
		}
		status := fmt.Sprintf(`{"status": {"observedGeneration": %d, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1}}`, d.Generation)
		_, err = deployments.Patch(t.Context(), "blog", types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status")
		return err
	}
	apply("nginx:1")
	f.eventually("the three children are there", func() error {
		if err := ready(); err != nil {
			return err
		}
		if _, err := services.Get(t.Context(), "blog", metav1.GetOptions{}); err != nil {
			return err
		}
		_, err := ingresses.Get(t.Context(), "blog", metav1.GetOptions{})
		return err
	})
	f.nothingToPlan()

	before, err := services.Get(t.Context(), "blog", metav1.GetOptions{})
	if err != nil || len(before.OwnerReferences) != 1 {
		t.Fatalf("the Service is %+v, %v", before, err)
	}
	began := time.Now()
	if err := services.Delete(t.Context(), "blog", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.eventually("a Service that somebody deletes comes back", func() error {
		s, err := services.Get(t.Context(), "blog", metav1.GetOptions{})
		if err == nil && s.UID == before.UID {
			err = fmt.Errorf("it is the one of before")
		}
		return err
	})
	t.Logf("back after %s", time.Since(began).Round(time.Millisecond))

	apply("nginx:2")
	f.eventually("the Deployment follows the image", func() error {
		d, err := deployments.Get(t.Context(), "blog", metav1.GetOptions{})
		if err == nil && d.Spec.Template.Spec.Containers[0].Image != "nginx:2" {
			err = fmt.Errorf("it has %s", d.Spec.Template.Spec.Containers[0].Image)
		}
		return err
	})
	if err := apps.Delete(t.Context(), "blog", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.eventually("the Application goes", func() error {
		if _, err := apps.Get(t.Context(), "blog", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %v", err)
		}
		return nil
	})
	for what, get := range map[string]func() error{
		"Deployment": func() error { _, err := deployments.Get(t.Context(), "blog", metav1.GetOptions{}); return err },
		"Service":    func() error { _, err := services.Get(t.Context(), "blog", metav1.GetOptions{}); return err },
		"Ingress":    func() error { _, err := ingresses.Get(t.Context(), "blog", metav1.GetOptions{}); return err },
	} {
		if err := get(); !apierrors.IsNotFound(err) {
			t.Errorf("the Application went before its %s: %v", what, err)
		}
	}
}
