package sim_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
	"go.starlark.net/starlark"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	clientrest "k8s.io/client-go/rest"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/release"
	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/sim/rest"
	"github.com/starling-operator/starling/runtime/sim/store"
	"github.com/starling-operator/starling/runtime/watch"
)

// clients is a store with Starling's client on it.
type clients struct {
	store  *store.Store
	config *clientrest.Config
	client *cluster.Client
}

func newClients(t *testing.T) *clients {
	t.Helper()
	s := store.New(store.Options{Builtins: store.NewBuiltins(), MakeNamespaces: true})
	c := &clients{store: s, config: &clientrest.Config{Host: "http://sim", Transport: rest.New(rest.Options{Store: s, AfterWrite: func() { s.Settle() }})}}
	var err error
	if c.client, err = cluster.New(cluster.Options{Config: c.config, Log: zerolog.Nop()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.client.Close)
	return c
}

var crdGVR = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

const gadgets = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  names: {kind: Gadget, plural: gadgets, singular: gadget, listKind: GadgetList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {n: {type: integer, default: 4}}}, status: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
`

func TestClusterClientWorksOnTheStore(t *testing.T) {
	c, ctx := newClients(t), t.Context()
	ref := effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "web", Name: "x"}
	write := func(w effect.Write) (map[string]any, error) { return c.client.Write(ctx, "starling/web/f", w) }
	object := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x", "namespace": "web"}, "data": map[string]any{"a": "1"}}
	if _, err := write(effect.Write{Kind: effect.WriteApply, Ref: ref, Object: object}); err != nil {
		t.Fatal(err)
	}
	if _, err := write(effect.Write{Kind: effect.WritePatch, Ref: ref, Patch: &effect.Patch{Type: effect.PatchStrategic, Body: map[string]any{"data": map[string]any{"b": "2"}}}}); err != nil {
		t.Fatal(err)
	}
	found, err := c.client.List(ctx, "v1", "ConfigMap", []string{"web"}, "", "metadata.name=x")
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	if diff := cmp.Diff(map[string]any{"a": "1", "b": "2"}, found[0]["data"]); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
	stale := effect.Write{Kind: effect.WriteApply, Ref: ref, Object: object, Unchanged: &effect.Unchanged{ResourceVersion: "1"}}
	if _, err := write(stale); err == nil || !strings.Contains(err.Error(), "it was changed by someone else") {
		t.Errorf("a stale write: %v", err)
	}
	if _, err := c.client.Mapping(ctx, "example.com/v1", "Gadget"); err == nil {
		t.Error("a kind without its CRD is served")
	}
	owned := map[string]any{"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": map[string]any{"name": "g", "namespace": "web"}}
	if _, err := newReleases(t, c).ApplyCRDs(ctx, release.Ref{Module: "web", Name: "web"}, release.CRDOptions{}, []chart.File{{Path: "crds/gadgets.yaml", Data: []byte(gadgets)}}); err != nil {
		t.Fatal(err)
	}
	c.client.Refresh()
	gadget := effect.Ref{APIVersion: "example.com/v1", Kind: "Gadget", Namespace: "web", Name: "g"}
	if _, err := write(effect.Write{Kind: effect.WriteApply, Ref: gadget, Object: owned, Owner: &effect.Owner{Ref: ref}}); err != nil {
		t.Fatal(err)
	}
	status := map[string]any{"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": owned["metadata"], "status": map[string]any{"ready": true}}
	got, err := write(effect.Write{Kind: effect.WriteStatus, Ref: gadget, Object: status, Force: true})
	if err != nil || got["status"].(map[string]any)["ready"] != true {
		t.Errorf("status: %v, %v", got, err)
	}
	if _, err := write(effect.Write{Kind: effect.WriteDelete, Ref: ref}); err != nil {
		t.Fatal(err)
	}
	if obj, err := c.client.Get(ctx, gadget); err != nil || obj != nil {
		t.Errorf("what the ConfigMap owned is %v, %v", obj, err)
	}
}

func newReleases(t *testing.T, c *clients) *release.Manager {
	t.Helper()
	m, err := release.New(release.Options{
		Client: c.client, Config: c.client.Config(), Discovery: c.client.Discovery(), Mapper: c.client.Mapper(),
		Instance: "starling-system.starling", Namespace: "starling-system", Name: "starling", Log: zerolog.Nop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// chartWith is a chart of one template.
func chartWith(template string) *chart.Chart {
	return &chart.Chart{Name: "web", Digest: template, Files: []chart.File{
		{Path: "Chart.yaml", Data: []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n")},
		{Path: "templates/all.yaml", Data: []byte(template)},
	}}
}

const webTemplate = `apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data: {now: "{{ .Values.n }}", was: "{{ with lookup "v1" "ConfigMap" .Release.Namespace "web" }}{{ .data.now }}{{ end }}"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:{{ .Values.n }}"}]}
{{- if eq (int .Values.n) 1 }}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
{{- end }}
`

// TestHelmWorksOnTheStore installs, upgrades and uninstalls a chart through
// modules/release, lookups included.
func TestHelmWorksOnTheStore(t *testing.T) {
	c := newClients(t)
	m := newReleases(t, c)
	ctx := t.Context()
	target := func(n int) release.Target {
		return release.Target{Input: chart.Input{Module: "web", Name: "web", Namespace: "apps", Chart: chartWith(webTemplate), Values: map[string]any{"n": n},
			Lookup: []builtins.Grant{{APIVersion: "v1", Kind: "ConfigMap", Verbs: []string{"get", "list"}, Names: []string{"web"}}}}, Timeout: time.Minute}
	}
	for n := 1; n <= 2; n++ {
		if res, err := m.Reconcile(ctx, target(n)); err != nil {
			t.Fatalf("revision %d: %+v, %v", n, res, err)
		}
	}
	config := effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "apps", Name: "web"}
	got, err := c.client.Get(ctx, config)
	if err != nil || got == nil {
		t.Fatalf("%v, %v", got, err)
	}
	if diff := cmp.Diff(map[string]any{"now": "2", "was": "1"}, got["data"]); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
	service := effect.Ref{APIVersion: "v1", Kind: "Service", Namespace: "apps", Name: "web"}
	if obj, err := c.client.Get(ctx, service); err != nil || obj != nil {
		t.Errorf("the Service that the chart no longer has is %v, %v", obj, err)
	}
	last, err := m.Last(ctx, "apps", "web")
	if err != nil || last == nil || last.Version != 2 || last.Info.Status != "deployed" {
		t.Errorf("the release is %+v, %v", last, err)
	}
	// Once more the lookup sees something else; then nothing changes any more.
	if _, err := m.Reconcile(ctx, target(2)); err != nil {
		t.Fatal(err)
	}
	version := c.store.Version()
	if _, err := m.Reconcile(ctx, target(2)); err != nil {
		t.Fatal(err)
	}
	if got := c.store.Version(); got != version {
		t.Errorf("a release that stays as it is was written: version %s, then %s", version, got)
	}
	if done, err := m.Uninstall(ctx, release.Ref{Module: "web", Name: "web", Namespace: "apps"}, time.Minute); err != nil || !done {
		t.Fatalf("uninstall: %v, %v", done, err)
	}
	if obj, err := c.client.Get(ctx, config); err != nil || obj != nil {
		t.Errorf("the ConfigMap is %v, %v", obj, err)
	}
}

// sink writes down what a watch.Manager says.
type sink struct{ lines chan string }

func (s *sink) Synced(id string, served bool)       { s.lines <- fmt.Sprintf("%s synced %v", id, served) }
func (s *sink) Failed(id string, err error, _ bool) { s.lines <- fmt.Sprintf("%s failed %v", id, err) }
func (s *sink) Changed(id string, events []watch.Event) {
	for _, e := range events {
		s.lines <- fmt.Sprintf("%s %s %s/%s", id, e.Type, e.Namespace, e.Name)
	}
}

// TestWatchManagerFollowsTheStore also follows a kind that appears and goes, and a
// history that is gone; the clock is that of the bubble.
func TestWatchManagerFollowsTheStore(t *testing.T) {
	builtins := store.NewBuiltins()
	builtins.Warm()
	synctest.Test(t, func(t *testing.T) {
		s := store.New(store.Options{Builtins: builtins, MakeNamespaces: true})
		client, err := cluster.New(cluster.Options{Config: &clientrest.Config{Host: "http://sim", Transport: rest.New(rest.Options{Store: s})}, Log: zerolog.Nop()})
		if err != nil {
			t.Fatal(err)
		}
		said := &sink{lines: make(chan string, 100)}
		m := watch.New(watch.Options{Client: client, Sink: said})
		defer m.Shutdown()
		expect := func(want ...string) {
			t.Helper()
			for _, w := range want {
				select {
				case got := <-said.lines:
					if got != w {
						t.Errorf("heard %q, want %q", got, w)
					}
				case <-time.After(time.Minute):
					t.Fatalf("never heard %q", w)
				}
			}
		}
		write := func(kind effect.WriteKind, ref effect.Ref, obj map[string]any) {
			t.Helper()
			if _, err := client.Write(context.Background(), "test", effect.Write{Kind: kind, Ref: ref, Object: obj, Force: true}); err != nil {
				t.Fatal(err)
			}
		}
		keep := func(obj map[string]any) (starlark.Value, bool, error) {
			data, _ := obj["data"].(map[string]any)
			text, _ := data["a"].(string)
			return starlark.String(text), true, nil
		}
		ref := effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "x"}
		object := func(a string) map[string]any {
			return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x", "namespace": "default"}, "data": map[string]any{"a": a}}
		}
		m.Start(watch.Spec{ID: "w", APIVersion: "v1", Kind: "ConfigMap", Filter: keep, FilterID: "a"})
		expect("w synced true")
		write(effect.WriteApply, ref, object("1"))
		expect("w added default/x")
		write(effect.WriteApply, ref, object("2"))
		expect("w modified default/x")
		time.Sleep(10 * time.Minute) // bookmarks keep the watch alive
		s.Forget()
		write(effect.WriteApply, ref, object("3"))
		expect("w modified default/x")
		write(effect.WriteDelete, ref, nil)
		expect("w deleted default/x")

		m.Start(watch.Spec{ID: "g", APIVersion: "example.com/v1", Kind: "Gadget"})
		expect("g synced false")
		crd := store.Target{GVR: crdGVR, Name: "gadgets.example.com"}
		if _, err := s.Patch(crd, types.ApplyPatchType, []byte(gadgets), store.WriteOptions{Manager: "test"}); err != nil {
			t.Fatal(err)
		}
		expect("g synced true")
		write(effect.WriteApply, effect.Ref{APIVersion: "example.com/v1", Kind: "Gadget", Namespace: "default", Name: "g"},
			map[string]any{"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": map[string]any{"name": "g", "namespace": "default"}})
		expect("g added default/g")
		if _, err := s.Delete(crd, store.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		s.Settle()
		expect("g deleted default/g", "g synced false")
	})
}

// TestKubectlMayValidate asks the questions that kubectl asks before it applies.
func TestKubectlMayValidate(t *testing.T) {
	c := newClients(t)
	if _, err := c.store.Patch(store.Target{GVR: crdGVR, Name: "gadgets.example.com"}, types.ApplyPatchType, []byte(gadgets), store.WriteOptions{Manager: "test"}); err != nil {
		t.Fatal(err)
	}
	documents := discovery.NewDiscoveryClientForConfigOrDie(c.config).OpenAPIV3()
	verifier := resource.NewQueryParamVerifierV3(c.client.Dynamic(), documents, resource.QueryParamFieldValidation)
	for _, gvk := range []schema.GroupVersionKind{{Version: "v1", Kind: "ConfigMap"}, {Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "example.com", Version: "v1", Kind: "Gadget"}} {
		if err := verifier.HasSupport(gvk); err != nil {
			t.Errorf("%s: %v", gvk, err)
		}
	}
	if err := verifier.HasSupport(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}); err == nil {
		t.Error("a kind that is not served can be validated")
	}
}

// TestClientGoWorksOnTheStore uses typed and metadata clients, discovery and an
// informer, on a socket.
func TestClientGoWorksOnTheStore(t *testing.T) {
	s := store.New(store.Options{Builtins: store.NewBuiltins()})
	server := httptest.NewServer(rest.New(rest.Options{Store: s}))
	t.Cleanup(server.Close)
	config := &clientrest.Config{Host: server.URL}
	client := kubernetes.NewForConfigOrDie(config)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := client.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Data: map[string]string{"a": "1"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		t.Errorf("twice: %v", err)
	}
	groups, lists, err := discovery.NewDiscoveryClientForConfigOrDie(config).ServerGroupsAndResources()
	if err != nil || len(groups) < 10 || len(lists) < 10 {
		t.Errorf("%d groups, %d lists, %v", len(groups), len(lists), err)
	}
	if v, err := client.Discovery().ServerVersion(); err != nil || v.GitVersion != rest.Version {
		t.Errorf("version %v, %v", v, err)
	}
	partial, err := metadata.NewForConfigOrDie(config).Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).List(ctx, metav1.ListOptions{})
	if err != nil || len(partial.Items) != 1 || partial.Items[0].Name != "x" {
		t.Errorf("metadata: %v, %v", partial, err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	lister := factory.Core().V1().ConfigMaps().Lister()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	if got, err := lister.ConfigMaps("default").Get("x"); err != nil || got.Data["a"] != "1" {
		t.Errorf("the informer has %v, %v", got, err)
	}
	cancel()
	factory.Shutdown()
	server.CloseClientConnections()
}
