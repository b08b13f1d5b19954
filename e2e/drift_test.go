package e2e

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/modules/status"
)

// A deleted Deployment is back, and an edited one is as it was, within a second of the change; its
// release has no new revision. The role has the rights that charts need, and no more.
func TestReleasesHeal(t *testing.T) {
	t.Parallel()
	role := mirrors
	role.Releases = map[string][]rbacv1.PolicyRule{"$NS": {renders("", "configmaps"), renders("apps", "deployments")}}
	f := newFixture(t, trees(mirror("web", on), map[string]string{"web/templates/deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}]}
`}), role)
	f.start()
	f.waitRevision(f.ns, "web", 1)
	f.waitState("web", status.ModuleReady)
	deployments := shared.Client.AppsV1().Deployments(f.ns)
	asItWas := func(what string, changed time.Time, check func(*appsv1.Deployment) error) {
		t.Helper()
		f.eventually(what, func() error {
			d, err := deployments.Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil {
				return err
			}
			return check(d)
		})
		t.Logf("%s after %s", what, time.Since(changed).Round(time.Millisecond))
	}
	image := func(d *appsv1.Deployment) error {
		if got := d.Spec.Template.Spec.Containers[0].Image; got != "web:1" {
			return fmt.Errorf("its image is %s", got)
		}
		return nil
	}
	for range 2 {
		before, err := deployments.Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := deployments.Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		asItWas("the Deployment is back", time.Now(), func(d *appsv1.Deployment) error {
			if d.UID == before.UID {
				return fmt.Errorf("it has not gone yet")
			}
			return image(d)
		})
		patch := []byte(`{"metadata": {"annotations": {"theirs": "stays"}}, "spec": {"template": {"spec": {"containers": [{"name": "web", "image": "evil:1"}]}}}}`)
		if _, err := deployments.Patch(t.Context(), "web", types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: "somebody"}); err != nil {
			t.Fatal(err)
		}
		asItWas("the image is as it was", time.Now(), func(d *appsv1.Deployment) error {
			if d.Annotations["theirs"] != "stays" {
				return fmt.Errorf("what others have added has gone")
			}
			return image(d)
		})
	}
	f.waitRevision(f.ns, "web", 1)

	// While nobody looks.
	f.stop()
	if err := deployments.Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.start()
	asItWas("the Deployment is back", time.Now(), image)
	f.waitRevision(f.ns, "web", 1)
	f.eventually("nothing differs any more", func() error {
		m, err := f.module("web")
		if err == nil && len(m.Drifted)+len(m.Problems) > 0 {
			err = fmt.Errorf("%+v %q", m.Drifted, m.Problems)
		}
		return err
	})
}
