package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strings"
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
	"github.com/starling-operator/starling/runtime/effect"
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
	t       *testing.T
	cluster *cluster.Cluster
	ns      string
	names   []string
	random  *rand.Rand
}

var driftingKinds = []schema.GroupVersionKind{{Version: "v1", Kind: "ConfigMap"}, {Group: "apps", Version: "v1", Kind: "Deployment"}}

func (s somebodyElse) object(kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(kind)
	obj.SetNamespace(s.ns)
	obj.SetName(name)
	return obj
}

// name is the name of one of the releases.
func (s somebodyElse) name() string { return s.names[s.random.IntN(len(s.names))] }

// relabel is a patch that takes away or changes one label that the chart has given, or all of them:
// what others add would stay.
func (s somebodyElse) relabel(obj *unstructured.Unstructured) string {
	values := []string{"null", `"somebody"`, fmt.Sprintf("%q", s.ns+"."+s.name()), fmt.Sprintf("%q", s.name())}
	value := func() string { return values[s.random.IntN(len(values))] }
	labels := []string{"app.kubernetes.io/managed-by", effect.ReleasedByLabel}
	if obj.GetKind() == "Deployment" {
		labels = append(labels, "app")
	}
	if n := s.random.IntN(len(labels) + 1); n < len(labels) {
		labels = labels[n : n+1]
	}
	var set []string
	for _, label := range labels {
		set = append(set, fmt.Sprintf("%q: %s", label, value()))
	}
	return `{"metadata": {"labels": {` + strings.Join(set, ", ") + `}}}`
}

// act makes one change of one object.
func (s somebodyElse) act() {
	s.t.Helper()
	obj := s.object(driftingKinds[s.random.IntN(len(driftingKinds))], s.name())
	client, err := s.cluster.Resource(obj)
	if err != nil {
		s.t.Fatal(err)
	}
	patch := func(body string, sub ...string) error {
		_, err := client.Patch(s.t.Context(), obj.GetName(), types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "somebody"}, sub...)
		return err
	}
	switch s.random.IntN(4) {
	case 0:
		err = client.Delete(s.t.Context(), obj.GetName(), metav1.DeleteOptions{})
	case 1:
		err = patch(s.relabel(obj))
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
		s.t.Fatal(err)
	}
}

// held is what the releases hold, without what the API server and controllers note, and the names
// of Helm's records of their revisions.
func (s somebodyElse) held() (map[string]any, error) {
	out := map[string]any{}
	for _, kind := range driftingKinds {
		for _, name := range s.names {
			client, err := s.cluster.Resource(s.object(kind, name))
			if err != nil {
				return nil, err
			}
			obj, err := client.Get(s.t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			out[kind.Kind+" "+name] = map[string]any{"labels": obj.GetLabels(), "spec": obj.Object["spec"], "data": obj.Object["data"]}
		}
	}
	records, err := s.cluster.Client.CoreV1().Secrets(s.ns).List(s.t.Context(), metav1.ListOptions{LabelSelector: "owner=helm"})
	if err != nil {
		return nil, err
	}
	for _, record := range records.Items {
		out[record.Name] = record.Labels["status"]
	}
	return out, nil
}

// Somebody changes, relabels and deletes objects of twenty releases for a while. Meanwhile the API
// server is started anew, Starling is cut off, and killed, in turn. In the end all is as it was, and
// no release has a new revision. DRIFT_CHAOS says how long: 12s by default.
func TestChaosOfDrift(t *testing.T) {
	t.Parallel()
	long := 12 * time.Second
	if text := os.Getenv("DRIFT_CHAOS"); text != "" {
		var err error
		if long, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	own, err := cluster.Start() // no other test may use a control plane that is started anew
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Stop(); err != nil {
			t.Error(err)
		}
	})
	files, s := map[string]string{}, somebodyElse{t: t, cluster: own, random: rand.New(rand.NewPCG(1, uint64(long)))}
	for i := range 20 {
		name := fmt.Sprintf("m%02d", i)
		s.names = append(s.names, name)
		maps.Copy(files, drifting(name))
	}
	f := newFixtureOn(t, own, files, driftingRole()).alone("it is killed and started again and again")
	s.ns = f.ns
	l, kube := cluster.NewLine(t, f.kube)
	f.kube = kube
	f.start()
	f.waitReady()
	before, err := s.held()
	if err != nil {
		t.Fatal(err)
	}
	if want := 3 * len(s.names); len(before) != want {
		t.Fatalf("the releases hold %d objects and records, want %d", len(before), want)
	}
	blows := []func(){
		func() { own.Restart(t); s.act() },
		func() { l.Cut(); s.act(); time.Sleep(time.Second); l.Mend() },
		func() { f.process.Kill(); s.act() },
	}
	// A kubelet starts a process again that was killed.
	starts := 0
	revive := func() {
		if !f.process.Alive() {
			starts++
			f.start()
		}
	}
	changes, struck, pause := 0, 0, min(long/6, 4*time.Second)
	for began, next := time.Now(), pause; time.Since(began) < long; changes++ {
		s.act()
		time.Sleep(100 * time.Millisecond)
		if since := time.Since(began); since > next {
			blows[struck%len(blows)]()
			struck++
			changes++
			next = time.Since(began) + pause
		}
		revive()
	}
	over := time.Now()
	f.eventually("all is as it was", func() error {
		revive()
		now, err := s.held()
		if err == nil && !cmp.Equal(before, now) {
			err = fmt.Errorf("it differs: %s", cmp.Diff(before, now))
		}
		return err
	})
	t.Logf("%d changes, %d restarts of the API server, cuts and kills, Starling started %d times; %s later all is as it was",
		changes, struck, starts, time.Since(over).Round(time.Millisecond))
	f.waitReady()
}
