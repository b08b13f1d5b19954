package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/e2e/cluster"
)

// drifting is a module whose release holds a ConfigMap and a Deployment of its name.
func drifting(name string) map[string]string {
	return trees(mirror(name, on), map[string]string{name + "/templates/deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: ` + name + `, labels: {app: ` + name + `}}
spec:
  replicas: 2
  selector: {matchLabels: {app: ` + name + `}}
  template:
    metadata: {labels: {app: ` + name + `}}
    spec:
      nodeSelector: {there-is-no: such-node}
      containers: [{name: web, image: "web:1"}]
`})
}

// driftingRole is the least role of such modules.
func driftingRole() least {
	role := mirrors
	role.Releases = map[string][]rbacv1.PolicyRule{"$NS": {renders("", "configmaps"), renders("apps", "deployments")}}
	return role
}

// somebodyElse changes objects of releases at random.
type somebodyElse struct {
	f      *fixture
	names  []string
	random *rand.Rand
}

var driftingKinds = []schema.GroupVersionKind{{Version: "v1", Kind: "ConfigMap"}, {Group: "apps", Version: "v1", Kind: "Deployment"}}

func (s somebodyElse) object(kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(kind)
	obj.SetNamespace(s.f.ns)
	obj.SetName(name)
	return obj
}

// act makes one change of one object.
func (s somebodyElse) act() {
	t := s.f.t
	t.Helper()
	obj := s.object(driftingKinds[s.random.IntN(len(driftingKinds))], s.names[s.random.IntN(len(s.names))])
	client, err := shared.Resource(obj)
	if err != nil {
		t.Fatal(err)
	}
	patch := func(body string, sub ...string) error {
		_, err := client.Patch(t.Context(), obj.GetName(), types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "somebody"}, sub...)
		return err
	}
	switch s.random.IntN(4) {
	case 0:
		err = client.Delete(t.Context(), obj.GetName(), metav1.DeleteOptions{})
	case 1:
		err = patch(`{"metadata": {"labels": {"starling.dev/released-by": null, "app.kubernetes.io/managed-by": "somebody"}}}`)
	case 2:
		if obj.GetKind() == "Deployment" {
			err = patch(fmt.Sprintf(`{"spec": {"replicas": %d}}`, s.random.IntN(9)), "scale")
		} else {
			err = patch(`{"data": {"text": null}}`)
		}
	case 3:
		if obj.GetKind() == "Deployment" {
			err = patch(`{"spec": {"template": {"spec": {"nodeSelector": {"there-is-no": "other-node"}, "containers": [{"name": "web", "image": "web:2"}]}}}}`)
		} else {
			err = patch(fmt.Sprintf(`{"data": {"text": "%d"}}`, s.random.IntN(9)))
		}
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		t.Fatal(err)
	}
}

// held is what the releases hold, without what the API server and controllers note.
func (s somebodyElse) held() (map[string]any, error) {
	out := map[string]any{}
	for _, kind := range driftingKinds {
		for _, name := range s.names {
			client, err := shared.Resource(s.object(kind, name))
			if err != nil {
				return nil, err
			}
			obj, err := client.Get(s.f.t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			key := kind.Kind + " " + name
			out[key] = map[string]any{"labels": obj.GetLabels(), "spec": obj.Object["spec"], "data": obj.Object["data"]}
		}
	}
	return out, nil
}

// Somebody changes and deletes objects of twenty releases for a while, Starling is killed and cut off
// meanwhile. In the end all is as it was, and no release has a new revision. DRIFT_CHAOS says how
// long: 30s by default.
func TestChaosOfDrift(t *testing.T) {
	t.Parallel()
	long := 30 * time.Second
	if text := os.Getenv("DRIFT_CHAOS"); text != "" {
		var err error
		if long, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	files, s := map[string]string{}, somebodyElse{random: rand.New(rand.NewPCG(1, uint64(long)))}
	for i := range 20 {
		name := fmt.Sprintf("m%02d", i)
		s.names = append(s.names, name)
		maps.Copy(files, drifting(name))
	}
	f := newFixture(t, files, driftingRole())
	s.f = f
	l, kube := cluster.NewLine(t, f.kube)
	f.kube = kube
	f.start()
	f.waitReady()
	before, err := s.held()
	if err != nil {
		t.Fatal(err)
	}
	changes := 0
	for began, next := time.Now(), 5*time.Second; time.Since(began) < long; changes++ {
		s.act()
		time.Sleep(100 * time.Millisecond)
		if time.Since(began) < next {
			continue
		}
		next += 10 * time.Second
		if s.random.IntN(2) == 0 {
			l.Cut()
			s.act()
			time.Sleep(time.Second)
			l.Mend()
			continue
		}
		f.process.Kill()
		s.act()
		f.start()
	}
	t.Logf("%d changes", changes)
	f.eventually("all is as it was", func() error {
		now, err := s.held()
		if err == nil && !cmp.Equal(before, now) {
			err = fmt.Errorf("it differs: %s", cmp.Diff(before, now))
		}
		return err
	})
	f.waitReady()
	for _, name := range s.names {
		f.waitRevision(f.ns, name, 1)
	}
}
