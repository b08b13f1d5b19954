package e2e

import (
	"fmt"
	"slices"
	"strings"
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

// A field that another one writes again and again is named, with the line that leaves it to that one. With that line in
// module.star no upgrade writes it, also when it leaves the chart, and no plan shows it; without the line it is the
// chart's again. Replicas of an autoscaler are left by an upgrade without a line.
func TestUpgradesLeaveAField(t *testing.T) {
	t.Parallel()
	tree := func(options, replicas string) map[string]string {
		return trees(mirror("web", "module(enabled = True"+options+")\n"), map[string]string{"web/templates/deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  ` + replicas + `
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {text: "{{ .Values.text }}"}}
    spec:
      nodeSelector: {there-is-no: such-node}
      containers: [{name: web, image: "web:1"}]
`})
	}
	f := newFixture(t, tree("", "replicas: 2"), driftingRole())
	f.start()
	f.waitReady()
	deployments := shared.Client.AppsV1().Deployments(f.ns)
	scale := func(manager string, n int) {
		patch := fmt.Appendf(nil, `{"spec": {"replicas": %d}}`, n)
		if _, err := deployments.Patch(t.Context(), "web", types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager}, "scale"); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for n := 0; ; n++ {
			scale("autoscaler", 4+n%2)
			select {
			case <-stop:
				return
			case <-time.After(500 * time.Millisecond):
			}
		}
	}()
	var remedy string
	const line = `module(ignore = ["Deployment/web spec.replicas"])`
	f.eventually("the field is contested", func() error {
		m, err := f.module("web")
		if err != nil {
			return err
		}
		if m.Drift() != "contested by autoscaler in Deployment/web spec.replicas" {
			return fmt.Errorf("it is %q", m.Drift())
		}
		remedy = m.Drifted[0].Remedy
		return nil
	})
	if want := "End the other writer, or leave it to that with " + line; remedy != want {
		t.Errorf("the remedy is %q", remedy)
	}
	if out, err := f.process.Command(t.Context(), "describe", "module", "web"); err != nil || !strings.Contains(out, "\n    "+remedy+"\n") {
		t.Errorf("%v: %s", err, out)
	}

	ignore := ", " + strings.TrimSuffix(strings.TrimPrefix(line, "module("), ")")
	f.write(tree(ignore, "replicas: 2"))
	f.eventually("the contest is over", func() error {
		m, err := f.module("web")
		if err == nil && len(m.Drifted) > 0 {
			err = fmt.Errorf("%+v", m.Drifted)
		}
		return err
	})
	// seen are the replicas that the Deployment has until the end of what is done.
	seen := func(what string, do func(), want ...int32) {
		t.Helper()
		f.eventually("a number of the other writer", func() error {
			d, err := deployments.Get(t.Context(), "web", metav1.GetOptions{})
			if err == nil && !slices.Contains(want, *d.Spec.Replicas) {
				err = fmt.Errorf("it is %d", *d.Spec.Replicas)
			}
			return err
		})
		w, err := deployments.Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		events, over := 0, make(chan struct{})
		go func() {
			defer close(over)
			for e := range w.ResultChan() {
				if d, is := e.Object.(*appsv1.Deployment); is {
					if events++; !slices.Contains(want, *d.Spec.Replicas) {
						t.Errorf("%s: %d replicas, by %+v", what, *d.Spec.Replicas, d.ManagedFields)
					}
				}
			}
		}()
		do()
		time.Sleep(time.Second)
		w.Stop()
		<-over
		if events == 0 {
			t.Errorf("%s: nothing is seen", what)
		}
	}
	upgraded := func(revision int, text string) {
		t.Helper()
		f.waitRevision(f.ns, "web", revision)
		d, err := deployments.Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil || d.Spec.Template.Annotations["text"] != text {
			t.Errorf("%v, %v", d, err)
		}
	}
	seen("an upgrade", func() {
		f.configure(map[string]string{"web": "text: second"})
		upgraded(2, "second")
	}, 4, 5)
	f.nothingToPlan()
	seen("an upgrade with another number", func() {
		f.write(tree(ignore, "replicas: 3"))
		upgraded(3, "second")
	}, 4, 5)
	seen("an upgrade without the field", func() {
		f.write(tree(ignore, ""))
		upgraded(4, "second")
	}, 4, 5)
	close(stop)
	<-stopped
	seen("an upgrade with the field once more", func() {
		f.write(tree(ignore, "replicas: 2"))
		scale("autoscaler", 5)
		scale("autoscaler", 4)
		upgraded(5, "second")
	}, 4, 5)

	f.write(tree("", "replicas: 2"))
	f.eventually("the field is the chart's", func() error {
		d, err := deployments.Get(t.Context(), "web", metav1.GetOptions{})
		if err == nil && *d.Spec.Replicas != 2 {
			err = fmt.Errorf("it is %d", *d.Spec.Replicas)
		}
		return err
	})
	f.waitRevision(f.ns, "web", 5)

	scale("kube-controller-manager", 4)
	seen("an upgrade beside an autoscaler", func() {
		f.configure(map[string]string{"web": "text: third"})
		upgraded(6, "third")
	}, 4)
	f.nothingToPlan()
}
