package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// Changes of others to a field, and to an object, that were ignored are put right once these are ignored no more: in
// the process that runs, and after a start. There is no new revision, and what is done to them then is seen.
func TestIgnoredNoMore(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*fixture, map[string]string){
		"reload": (*fixture).write,
		"start":  func(f *fixture, files map[string]string) { f.restart(files) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ignores := map[string]string{"web/module.star": "module(enabled = True, ignore = [\"ConfigMap/web data.text\", \"Deployment\"])\n"}
			f := newFixture(t, trees(drifting("web"), ignores), driftingRole())
			s := somebodyElse{t: t, cluster: shared, ns: f.ns, names: []string{"web"}}
			f.start()
			f.waitReady()
			fresh, err := s.held()
			if err != nil {
				t.Fatal(err)
			}
			asItWas := func() error {
				now, err := s.held()
				if err != nil {
					return err
				}
				if !cmp.Equal(fresh, now) {
					return fmt.Errorf("it differs: %s", cmp.Diff(fresh, now))
				}
				m, err := f.module("web")
				if err == nil && len(m.Drifted)+len(m.Problems) > 0 {
					err = fmt.Errorf("%+v %q", m.Drifted, m.Problems)
				}
				return err
			}
			s.change("Deployment", "web", "")
			s.change("ConfigMap", "web", `{"data": {"text": "theirs"}, "metadata": {"labels": {"app.kubernetes.io/managed-by": "theirs"}}}`)
			f.eventually("the label is as it was", func() error {
				cm, err := shared.Client.CoreV1().ConfigMaps(f.ns).Get(t.Context(), "web", metav1.GetOptions{})
				if err == nil && cm.Labels["app.kubernetes.io/managed-by"] != "Helm" {
					err = fmt.Errorf("the labels are %v", cm.Labels)
				}
				return err
			})
			if data, err := configMap(t, f.ns, "web"); err != nil || data["text"] != "theirs" {
				t.Errorf("the field that is ignored was put right: %v, %v", data, err)
			}
			if _, err := shared.Client.AppsV1().Deployments(f.ns).Get(t.Context(), "web", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("the Deployment that is ignored is back: %v", err)
			}

			edit(f, map[string]string{"web/module.star": on})
			f.eventually("all is as it was", asItWas)
			s.change("ConfigMap", "web", `{"data": {"text": "theirs"}}`) // the third repair of it, and no contest: the label was another field
			s.change("Deployment", "web", `{"spec": {"replicas": 5}}`)
			f.eventually("all is as it was once more", asItWas)
			f.waitRevision(f.ns, "web", 1)
		})
	}
}
