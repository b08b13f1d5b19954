//go:build e2e

package cluster

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
	"github.com/starling-operator/starling/builtins/jq"
	e2e "github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/runtime/effect"
	"k8s.io/client-go/rest"
)

// counted notes the requests for objects that go to the real API server.
type counted struct {
	next http.RoundTripper

	mu           sync.Mutex
	asked        []string
	active, most int
}

func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.Contains(r.URL.Path, "/namespaces/") {
		return c.next.RoundTrip(r)
	}
	c.mu.Lock()
	c.asked = append(c.asked, r.Method+" "+r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:])
	c.active++
	c.most = max(c.most, c.active)
	c.mu.Unlock()
	defer func() { c.mu.Lock(); c.active--; c.mu.Unlock() }()
	return c.next.RoundTrip(r)
}

// A new set of 200 costs a request per member, up to 8 at a time; one that stands costs one
// list, and what differs.
func TestRealSetCosts(t *testing.T) {
	w := newRealWorld(t)
	count := &counted{}
	config := rest.CopyConfig(shared.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { count.next = next; return count })
	client, err := New(Options{Config: config, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	o := w.writer.o
	o.Client, o.JQ = client, jq.Patch
	w.writer = NewWriter(o)
	apply := func(objects []map[string]any) []string {
		t.Helper()
		count.mu.Lock()
		count.asked, count.most = nil, 0
		count.mu.Unlock()
		w.write(effect.Write{Kind: effect.WriteSet, Set: &effect.Set{Name: "children", Members: appliesOf(objects)}})
		return count.asked
	}
	expect := func(what string, got []string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	const n = 200
	objects := configMaps(n, w.ns)
	if asked := apply(objects); len(asked) > n+3 || count.most > 8 || count.most < 2 {
		t.Errorf("%d requests, %d at a time", len(asked), count.most)
	}
	expect("nothing differs", apply(objects), "GET configmaps")
	objects[77] = changed(objects[77], "2")
	expect("one differs", apply(objects), "GET configmaps", "PATCH m077")
	w.writer = NewWriter(o)
	objects[78] = changed(objects[78], "2")
	expect("one differs after a restart", apply(objects), "GET secrets", "GET configmaps", "PATCH m078")
	expect("one goes", apply(objects[:n-1]), "GET configmaps", "DELETE m199")
	expect("one comes", apply(objects), "GET configmaps", "PATCH m199")
	w.write(effect.Write{Kind: effect.WritePatch, Ref: effect.RefOf(objects[5]), Patch: &effect.Patch{Type: effect.PatchMerge,
		Body: map[string]any{"data": map[string]any{"n": "theirs"}, "metadata": map[string]any{"labels": nil}}}})
	expect("another's change", apply(objects), "GET configmaps", "PATCH m005", "GET m005", "PATCH m005")
	w.expect(effect.RefOf(objects[5]), "1", "data", "n")

	web, service := parse(t, deployment), parse(t, service)
	web["metadata"].(map[string]any)["namespace"], service["metadata"].(map[string]any)["namespace"] = w.ns, w.ns
	apply([]map[string]any{web, service})
	expect("what the API server fills in", apply([]map[string]any{web, service}), "GET x", "GET x")
}

// Objects of any kind are made by a set, a CustomResourceDefinition before its objects, and
// found as they should be.
func TestRealSetOfManyKinds(t *testing.T) {
	w := newRealWorld(t)
	crd := `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: lamps.$NS.example.com}, spec: {
  group: $NS.example.com, scope: Namespaced, names: {plural: lamps, kind: Lamp}, versions: [{name: v1, served: true, storage: true,
  schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {n: {type: integer}, on: {type: boolean, default: true}}}}}}}]}}`
	var objects []map[string]any
	for _, text := range []string{
		"{apiVersion: $NS.example.com/v1, kind: Lamp, metadata: {name: x, namespace: $NS}, spec: {n: 1}}",
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: x, namespace: $NS}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: x}, subjects: [{kind: ServiceAccount, name: x, namespace: $NS}]}",
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: x, namespace: $NS}, rules: [{apiGroups: [\"\"], resources: [pods], verbs: [get]}]}",
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: $NS-x}, rules: [{apiGroups: [\"\"], resources: [pods], verbs: [get]}]}",
		"{apiVersion: v1, kind: ServiceAccount, metadata: {name: x, namespace: $NS}}",
		"{apiVersion: v1, kind: Namespace, metadata: {name: $NS-x}}",
		"{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: x, namespace: $NS}, spec: {holderIdentity: x}}",
		"{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: x, namespace: $NS}, spec: {podSelector: {}, policyTypes: [Ingress]}}",
		"{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: $NS-x}, value: 5}",
		"{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: x, namespace: $NS}, spec: {maxUnavailable: 1, selector: {matchLabels: {a: b}}}}",
		crd,
	} {
		objects = append(objects, parse(t, strings.ReplaceAll(text, "$NS", w.ns)))
	}
	set := effect.Write{Kind: effect.WriteSet, Set: &effect.Set{Name: "kinds", Members: appliesOf(objects)}}
	e2e.Eventually(t, 3*time.Minute, "the set stands", func() error {
		return w.writer.Write(context.Background(), "starling/web/f", set)
	})
	w.writer.o.Observe = func(ref effect.Ref, _ map[string]any, _ *effect.Cause, _ time.Time) {
		t.Errorf("%s is written again", ref)
	}
	w.write(set)
	w.writer.o.Observe = func(effect.Ref, map[string]any, *effect.Cause, time.Time) {}
	set.Set = &effect.Set{Name: "kinds"}
	w.write(set)
}
