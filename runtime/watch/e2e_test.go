//go:build e2e

package watch

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
	e2e "github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/effect"
	rbacv1 "k8s.io/api/rbac/v1"
)

var shared *e2e.Cluster

func TestMain(m *testing.M) { os.Exit(e2e.Main(m, &shared)) }

// newRealFixture watches the real control plane, as a ServiceAccount that may do
// little.
func newRealFixture(t *testing.T, namespace string) *fixture {
	all := []string{"get", "list", "watch", "create", "patch", "delete"}
	file := shared.ServiceAccountKubeconfig(t, namespace, "starling", e2e.Access{
		Cluster: []rbacv1.PolicyRule{
			{APIGroups: []string{"example.com"}, Resources: []string{"*"}, Verbs: all},
			{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"}},
		},
		Namespaced: map[string][]rbacv1.PolicyRule{
			namespace: {{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets"}, Verbs: all}},
		},
	})
	return newFixtureFor(t, file)
}

// newFixtureFor watches as a kubeconfig file says.
func newFixtureFor(t *testing.T, file string) *fixture {
	cfg, _, err := cluster.LoadConfig(file, "")
	if err != nil {
		t.Fatal(err)
	}
	client, err := cluster.New(cluster.Options{Config: cfg, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{recorder: &recorder{t: t, more: make(chan struct{})}, client: client}
	f.manager = New(Options{Client: client, Sink: f.recorder})
	t.Cleanup(f.manager.Shutdown)
	return f
}

func (f *fixture) apply(obj map[string]any) map[string]any {
	f.t.Helper()
	meta := obj["metadata"].(map[string]any)
	namespace, _ := meta["namespace"].(string)
	answer, err := f.client.Write(context.Background(), "", effect.Write{Kind: effect.WriteApply, Force: true, Object: obj, Ref: effect.Ref{
		APIVersion: obj["apiVersion"].(string), Kind: obj["kind"].(string), Namespace: namespace, Name: meta["name"].(string)}})
	if err != nil {
		f.t.Fatal(err)
	}
	return answer
}

func TestRealObjects(t *testing.T) {
	ns := shared.Namespace(t)
	f := newRealFixture(t, ns)
	f.apply(configMap(ns, "x", "1"))
	spec := configMaps("w")
	spec.Namespaces, spec.Names = []string{ns}, []string{"x", "y"}
	f.manager.Start(spec)
	f.await("w synced served=true")
	f.snapshot("w", `["1"]`)

	// The answer to our own write is in the next snapshot, and comes once.
	ref := effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: ns, Name: "y"}
	f.manager.Observe(ref, f.apply(configMap(ns, "y", "2")), nil, time.Now())
	f.snapshot("w", `["1" "2"]`)
	f.await(fmt.Sprintf(`w added %s/y "2"`, ns))
	f.apply(configMap(ns, "y", "3"))
	f.await(fmt.Sprintf(`w modified %s/y "3"`, ns))
	late := configMaps("late")
	late.Namespaces, late.FilterID = []string{ns}, "late"
	late.Labels = "!none"
	f.manager.Start(late)
	f.await("late synced served=true")
	f.manager.Stop("late")
	if answer, err := f.client.Write(context.Background(), "", effect.Write{Kind: effect.WriteDelete, Ref: ref}); err != nil || answer != nil {
		t.Fatalf("delete: %v, %v", answer, err)
	}
	f.await(fmt.Sprintf(`w deleted %s/y "3"`, ns))
	f.nothing()

	f.manager.Start(configMaps("everywhere"))
	f.mustFail("everywhere", `not allowed to list configmaps in the whole cluster: give Starling's ServiceAccount this right (apiGroups: [""], resources: ["configmaps"], verbs: ["list"]`)
}

const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

func TestRealCRDComesAndGoes(t *testing.T) {
	ns := shared.Namespace(t)
	f := newRealFixture(t, ns)
	f.manager.Start(Spec{ID: "w", APIVersion: "example.com/v1", Kind: "Widget", Filter: dataFilter})
	f.await("w synced served=false")
	shared.Apply(t, crd)
	f.manager.Kick()
	f.await("w synced served=true")
	obj := configMap(ns, "x", "1")
	obj["apiVersion"], obj["kind"] = "example.com/v1", "Widget"
	f.apply(obj)
	f.await(fmt.Sprintf(`w added %s/x "1"`, ns))

	admin, err := cluster.New(cluster.Options{Config: shared.Config, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Write(context.Background(), "", effect.Write{Kind: effect.WriteDelete, Ref: effect.Ref{
		APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "widgets.example.com"}}); err != nil {
		t.Fatal(err)
	}
	f.await(fmt.Sprintf(`w deleted %s/x "1"`, ns))
	f.await("w synced served=false")
}

// TestRealNamespacesStartAndStopMatching lets namespaces start and stop to match
// while the kind itself is made, deleted and made again. The role may list the kind
// in single namespaces, and nowhere else.
func TestRealNamespacesStartAndStopMatching(t *testing.T) {
	home, one, two := shared.Namespace(t), shared.Namespace(t), shared.Namespace(t)
	label := func(namespace, team string) {
		shared.Apply(t, fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {team: %q}}}", namespace, team))
	}
	gadgets := strings.NewReplacer("widget", "gadget", "Widget", "Gadget", "example.com", "e2e.example.com").Replace(crd)
	read := []rbacv1.PolicyRule{{APIGroups: []string{"e2e.example.com"}, Resources: []string{"gadgets"}, Verbs: []string{"list", "watch"}}}
	file := shared.ServiceAccountKubeconfig(t, home, "narrow", e2e.Access{
		Cluster:    []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"}}},
		Namespaced: map[string][]rbacv1.PolicyRule{one: read, two: read},
	})
	f := newFixtureFor(t, file)
	put := func(namespace, d string) {
		shared.Apply(t, fmt.Sprintf("{apiVersion: e2e.example.com/v1, kind: Gadget, metadata: {name: x, namespace: %s}, data: {d: %q}}", namespace, d))
	}
	admin, err := cluster.New(cluster.Options{Config: shared.Config, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(admin.Close)

	label(one, home)
	f.manager.Start(Spec{ID: "w", APIVersion: "e2e.example.com/v1", Kind: "Gadget", Filter: dataFilter, NamespaceLabels: "team=" + home})
	f.await("w synced served=false")
	for round := range 2 {
		shared.Apply(t, gadgets)
		f.manager.Kick()
		f.await("w synced served=true")
		put(one, "1")
		f.await(fmt.Sprintf(`w added %s/x "1"`, one))
		put(two, "2")
		label(two, home)
		f.await(fmt.Sprintf(`w added %s/x "2"`, two))
		put(two, "3")
		f.await(fmt.Sprintf(`w modified %s/x "3"`, two))
		label(one, "other")
		f.await(fmt.Sprintf(`w deleted %s/x "1"`, one))
		put(one, "4")
		label(one, home)
		f.await(fmt.Sprintf(`w added %s/x "4"`, one))
		label(two, "")
		f.await(fmt.Sprintf(`w deleted %s/x "3"`, two))
		f.snapshot("w", `["4"]`)
		f.nothing()

		if _, err := admin.Write(t.Context(), "", effect.Write{Kind: effect.WriteDelete, Ref: effect.Ref{
			APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "gadgets.e2e.example.com"}}); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		f.await(fmt.Sprintf(`w deleted %s/x "4"`, one), "w synced served=false")
	}
	f.nothing()
}

func TestRealKept(t *testing.T) {
	ns := shared.Namespace(t)
	f := newRealFixture(t, ns)
	ctx := context.Background()
	kept := func() *cluster.Kept {
		return cluster.NewKept(cluster.KeptOptions{Client: f.client, Namespace: ns, Name: "starling", Instance: ns + ".starling"})
	}
	k := kept()
	want := map[string][]byte{"a": make([]byte, 400<<10), "b": make([]byte, 400<<10), "large": make([]byte, 900<<10)}
	for _, data := range []map[string][]byte{{"a": []byte("1")}, want} {
		if err := k.Save(ctx, "web", data); err != nil {
			t.Fatal(err)
		}
	}
	got, err := kept().Load(ctx)
	if err != nil || len(got["web"]) != len(want) {
		t.Fatalf("%d keys, %v, want %d", len(got["web"]), err, len(want))
	}
	if err := k.Save(ctx, "web", nil); err != nil {
		t.Fatal(err)
	}
	got, err = kept().Load(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]map[string][]byte{}, got); diff != "" {
		t.Errorf("after the last key went (-want +got):\n%s", diff)
	}
}
