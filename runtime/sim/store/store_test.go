package store

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	pods       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	budgets    = schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}
	things     = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "things"}
)

var sharedBuiltins = sync.OnceValue(NewBuiltins)

// fixture is a store whose clock stands still.
type fixture struct {
	*Store
	t   *testing.T
	now time.Time
}

func setup(t *testing.T, o Options) *fixture {
	f := &fixture{t: t, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	o.Builtins, o.MakeNamespaces = sharedBuiltins(), true
	o.Now = func() time.Time { return f.now }
	f.Store = New(o)
	return f
}

func at(gvr schema.GroupVersionResource, name string) Target {
	return Target{GVR: gvr, Namespace: "default", Name: name}
}

func named(name string) map[string]any {
	return map[string]any{"metadata": map[string]any{"name": name}}
}

// create must succeed.
func (f *fixture) create(gvr schema.GroupVersionResource, obj map[string]any) map[string]any {
	f.t.Helper()
	target := Target{GVR: gvr, Namespace: "default"}
	if gvr == namespaces {
		target.Namespace = ""
	}
	res, err := f.Create(target, obj, WriteOptions{Manager: "test"})
	if err != nil {
		f.t.Fatal(err)
	}
	return res.Object
}

// patch must succeed.
func (f *fixture) patch(target Target, patch string) map[string]any {
	f.t.Helper()
	res, err := f.Patch(target, types.MergePatchType, []byte(patch), WriteOptions{Manager: "test"})
	if err != nil {
		f.t.Fatal(err)
	}
	return res.Object
}

// events takes what a watch has, as "ADDED name".
func events(w *Watcher) []string {
	var out []string
	for {
		e, ok := w.Next()
		if !ok {
			return out
		}
		out = append(out, fmt.Sprintf("%s %s", e.Type, nameOf(e.Object)))
	}
}

func TestClockAndSeedDecide(t *testing.T) {
	make := func(seed uint64) []map[string]any {
		f := setup(t, Options{Seed: seed})
		a := f.create(configMaps, map[string]any{"metadata": map[string]any{"name": "a"}, "data": map[string]any{"k": "u"}})
		f.now = f.now.Add(time.Minute)
		g := f.create(configMaps, map[string]any{"metadata": map[string]any{"generateName": "g-"}})
		h := f.create(configMaps, map[string]any{"metadata": map[string]any{"generateName": "g-"}})
		if nameOf(g) == nameOf(h) {
			t.Errorf("two objects have the generated name %s", nameOf(g))
		}
		p := f.patch(at(configMaps, "a"), `{"data":{"k":"v"}}`)
		return []map[string]any{a, g, h, p}
	}
	one, two := make(1), make(1)
	if diff := cmp.Diff(one, two); diff != "" {
		t.Errorf("the same seed gives (-one +two):\n%s", diff)
	}
	if uidOf(one[0]) == uidOf(make(2)[0]) {
		t.Error("another seed gives the same uid")
	}
	if got := metaString(one[0], "creationTimestamp"); got != "2026-01-02T03:04:05Z" {
		t.Errorf("creationTimestamp is %s", got)
	}
	if got := managedEntries(one[3])[0]["time"]; got != "2026-01-02T03:05:05Z" {
		t.Errorf("the field manager's time is %v", got)
	}
}

func TestWhatIsGivenIsCopiedAndWhatIsStoredStays(t *testing.T) {
	f := setup(t, Options{})
	obj := map[string]any{"metadata": map[string]any{"name": "a"}, "data": map[string]any{"k": "1"}}
	before := f.create(configMaps, obj)
	obj["data"].(map[string]any)["k"] = "2"
	copied := fmt.Sprint(before)
	f.patch(at(configMaps, "a"), `{"metadata":{"labels":{"a":"b"},"finalizers":["example.com/a"]},"data":{"k":"3"}}`)
	if _, err := f.Delete(at(configMaps, "a"), DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(before) != copied {
		t.Errorf("an object that was handed out has changed:\n%s\n%v", copied, before)
	}
}

func TestObjectsOfGoPrograms(t *testing.T) {
	f := setup(t, Options{})
	f.Serve(Kind{Group: "example.com", Version: "v1", Kind: "Thing", Plural: "things", Namespaced: true})
	got := f.create(things, map[string]any{"metadata": map[string]any{"name": "x"}, "spec": map[string]any{"n": 1, "list": []string{"a"}, "m": map[string]int{"a": 2}}})
	if diff := cmp.Diff(map[string]any{"n": int64(1), "list": []any{"a"}, "m": map[string]any{"a": int64(2)}}, got["spec"]); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	for _, bad := range []any{make(chan int), func() any {
		v := any("deep")
		for range maxDepth + 1 {
			v = []any{v}
		}
		return v
	}()} {
		if _, err := f.Create(at(things, ""), map[string]any{"metadata": map[string]any{"name": "y"}, "spec": bad}, WriteOptions{}); !apierrors.IsBadRequest(err) {
			t.Errorf("%T: %v", bad, err)
		}
	}
}

func TestNamespacesComeByThemselvesAndGoWithTheirContents(t *testing.T) {
	f := setup(t, Options{})
	target := Target{GVR: configMaps, Namespace: "new", Name: "x"}
	if _, err := f.Create(Target{GVR: configMaps, Namespace: "dry"}, named("x"), WriteOptions{DryRun: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Get(Target{GVR: namespaces, Name: "dry"}); !apierrors.IsNotFound(err) {
		t.Errorf("a dry run has made a namespace: %v", err)
	}
	if _, err := f.Create(Target{GVR: configMaps, Namespace: "new"}, named("x"), WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Delete(Target{GVR: namespaces, Name: "new"}, DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if !f.Settle() || f.Settle() {
		t.Error("the first Settle changes something, the second does not")
	}
	for _, left := range []Target{target, {GVR: namespaces, Name: "new"}} {
		if _, err := f.Get(left); !apierrors.IsNotFound(err) {
			t.Errorf("%v: %v", left, err)
		}
	}
}

func TestOwnersAcrossNamespacesOwnNothing(t *testing.T) {
	f := setup(t, Options{})
	f.create(configMaps, named("owner"))
	owned := func(name, apiVersion, kind string) map[string]any {
		return map[string]any{"metadata": map[string]any{"name": name, "ownerReferences": []any{map[string]any{"apiVersion": apiVersion, "kind": kind, "name": "owner", "uid": "u"}}}}
	}
	f.create(namespaces, owned("kept", "v1", "ConfigMap"))
	f.create(configMaps, owned("kept", "example.com/v1", "Thing")) // who knows what that is
	f.create(configMaps, owned("gone", "v1", "ConfigMap"))         // of another uid
	f.Settle()
	for target, want := range map[Target]bool{{GVR: namespaces, Name: "kept"}: true, at(configMaps, "kept"): true, at(configMaps, "gone"): false} {
		if _, err := f.Get(target); (err == nil) != want {
			t.Errorf("%v: %v", target, err)
		}
	}
}

func TestKindsWithoutSchema(t *testing.T) {
	f := setup(t, Options{})
	if _, err := f.Create(Target{GVR: things, Namespace: "default"}, named("x"), WriteOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a kind that is not served: %v", err)
	}
	f.Serve(Kind{Group: "example.com", Version: "v1", Kind: "Thing", Plural: "things", Namespaced: true})
	f.Serve(Kind{Version: "v1", Kind: "ConfigMap", Plural: "configmaps"}) // stays as it is
	if k, ok := f.KindOf(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}); !ok || !k.Builtin || !k.Namespaced {
		t.Errorf("ConfigMap is %+v", k)
	}
	apply := func(manager, spec string) (map[string]any, error) {
		res, err := f.Patch(at(things, "x"), types.ApplyPatchType, []byte(`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"x"},"spec":`+spec+`}`), WriteOptions{Manager: manager})
		return res.Object, err
	}
	if _, err := apply("one", `{"a":1,"list":[1,2.5]}`); err != nil {
		t.Fatal(err)
	}
	got, err := apply("two", `{"b":"x"}`)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"a": int64(1), "b": "x", "list": []any{int64(1), 2.5}}, got["spec"]); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if _, err := apply("two", `{"a":2}`); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `conflict with "one": .spec.a`) {
		t.Errorf("no conflict: %v", err)
	}
}

func TestErrorsOnPurpose(t *testing.T) {
	f := setup(t, Options{})
	own := errors.New("ours")
	f.FailNext("get", "ConfigMap", own, 2)
	f.FailNext("write", "*", own, 1)
	f.FailNext("apply", "ConfigMap", own, 1)
	f.FailNext("get", "Secret", own, 0)
	spared := at(configMaps, "x")
	spared.Spared = true
	if _, err := f.Get(spared); !apierrors.IsNotFound(err) {
		t.Errorf("a spared call: %v", err)
	}
	var got []bool
	for range 3 {
		_, err := f.Get(at(configMaps, "x"))
		got = append(got, errors.Is(err, own))
	}
	for range 2 {
		_, err := f.Create(Target{GVR: configMaps, Namespace: "default"}, named("x"), WriteOptions{})
		got = append(got, errors.Is(err, own))
	}
	apply := []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}`)
	for _, typ := range []types.PatchType{types.MergePatchType, types.ApplyPatchType, types.ApplyPatchType} {
		_, err := f.Patch(at(configMaps, "x"), typ, apply, WriteOptions{Manager: "m"})
		got = append(got, errors.Is(err, own))
	}
	if want := []bool{true, true, false, true, false, false, true, false}; !reflect.DeepEqual(got, want) {
		t.Errorf("failed: %v, want %v", got, want)
	}
}

func TestNodesComeWithTheirStatus(t *testing.T) {
	f := setup(t, Options{})
	nodes := Target{GVR: schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, Name: "n"}
	ready := `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"},"status":{"capacity":{"cpu":"2000m"},"conditions":[{"type":"Ready","status":"True"}]}}`
	res, err := f.Patch(nodes, types.ApplyPatchType, []byte(ready), WriteOptions{Manager: "m"})
	if err != nil || nested(res.Object, "status", "allocatable", "cpu") != "2" {
		t.Errorf("%v, %v", res.Object, err)
	}
	if got := f.patch(nodes, `{"status":{"capacity":{"cpu":"3"}}}`); nested(got, "status", "capacity", "cpu") != "2" {
		t.Errorf("the status changes without its endpoint: %v", got)
	}
	nodes.Subresource = "status"
	if got := f.patch(nodes, `{"status":{"capacity":{"cpu":"3"}}}`); nested(got, "status", "capacity", "cpu") != "3" {
		t.Errorf("the status does not change: %v", got)
	}
}

func TestEvictionRespectsBudgets(t *testing.T) {
	f := setup(t, Options{})
	for _, name := range []string{"a", "b"} {
		f.create(pods, map[string]any{"metadata": map[string]any{"name": name, "labels": map[string]any{"app": "x"}},
			"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "c"}}}})
	}
	f.create(budgets, map[string]any{"metadata": map[string]any{"name": "x"}, "spec": map[string]any{"maxUnavailable": int64(0), "selector": map[string]any{"matchLabels": map[string]any{"app": "x"}}}})
	evict := at(pods, "a")
	evict.Subresource = "eviction"
	if _, err := f.Create(evict, nil, WriteOptions{}); !apierrors.IsTooManyRequests(err) {
		t.Errorf("eviction: %v", err)
	}
	f.patch(at(budgets, "x"), `{"spec":{"maxUnavailable":1}}`)
	if _, err := f.Create(evict, nil, WriteOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := f.Get(at(pods, "a")); !apierrors.IsNotFound(err) {
		t.Errorf("the Pod is there: %v", err)
	}
	if _, err := f.Create(evict, nil, WriteOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("eviction of what is gone: %v", err)
	}
}

// A definition keeps the conditions that other controllers give it, in their order, whoever writes it.
func TestConditionsOfDefinitions(t *testing.T) {
	f := setup(t, Options{})
	crd := Target{GVR: crdGVR, Name: "things.example.com"}
	if _, err := f.Patch(crd, types.ApplyPatchType, []byte(manyVersions), WriteOptions{Manager: "m"}); err != nil {
		t.Fatal(err)
	}
	crd.Subresource = "status"
	before := f.patch(crd, `{"status":{"conditions":[{"type":"KubernetesAPIApprovalPolicyConformant","status":"True"},{"type":"NamesAccepted","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
	crd.Subresource = ""
	res, err := f.Patch(crd, types.ApplyPatchType, []byte(manyVersions), WriteOptions{Manager: "m"})
	if err != nil || !reflect.DeepEqual(res.Object, before) {
		t.Errorf("%v: %v, before: %v", err, res.Object, before)
	}
	var types []any
	conditions, _ := nested(res.Object, "status", "conditions").([]any)
	for _, c := range conditions {
		types = append(types, nested(c.(map[string]any), "type"))
	}
	if want := []any{"KubernetesAPIApprovalPolicyConformant", "NamesAccepted", "Established"}; !slices.Equal(types, want) {
		t.Errorf("conditions are %v, want %v", types, want)
	}
}

// Approvals write conditions, with their times, and leave the rest of a certificate request as it is.
func TestApprovals(t *testing.T) {
	f := setup(t, Options{})
	request := Target{GVR: schema.GroupVersionResource{Group: "certificates.k8s.io", Version: "v1", Resource: "certificatesigningrequests"}, Name: "web"}
	_, err := f.Create(Target{GVR: request.GVR}, map[string]any{"metadata": map[string]any{"name": "web"},
		"spec": map[string]any{"request": "eA==", "signerName": "example.org/clients", "usages": []any{"client auth"}}}, WriteOptions{Manager: "test"})
	if err != nil {
		t.Fatal(err)
	}
	approval := request
	approval.Subresource = "approval"
	since := f.now.Format(time.RFC3339)
	for _, reason := range []string{"One", "Two"} {
		f.patch(approval, `{"spec":{"signerName":"other"},"status":{"certificate":"eA==","conditions":[{"type":"Approved","status":"True","reason":"`+reason+`"}]}}`)
		got, err := f.Get(request)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]any{"conditions": []any{map[string]any{"type": "Approved", "status": "True", "reason": reason,
			"lastUpdateTime": f.now.Format(time.RFC3339), "lastTransitionTime": since}}}
		if diff := cmp.Diff(want, got["status"]); diff != "" || nested(got, "spec", "signerName") != "example.org/clients" {
			t.Errorf("the request is %v (-want +got):\n%s", got["spec"], diff)
		}
		f.now = f.now.Add(time.Hour)
	}
	approval.GVR, approval.Namespace = pods, "default"
	if _, err := f.Patch(approval, types.MergePatchType, []byte("{}"), WriteOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("approval of a Pod: %v", err)
	}
}

func TestScale(t *testing.T) {
	f := setup(t, Options{})
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	f.create(deployments, map[string]any{"metadata": map[string]any{"name": "d"}, "spec": map[string]any{
		"selector": map[string]any{"matchLabels": map[string]any{"app": "d"}},
		"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "d"}}, "spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "c"}}}},
	}})
	scale := at(deployments, "d")
	scale.Subresource = "scale"
	got := f.patch(scale, `{"spec":{"replicas":3}}`)
	if got["kind"] != "Scale" || nested(got, "spec", "replicas") != int64(3) || nested(got, "status", "selector") != "app=d" {
		t.Errorf("scale is %v", got)
	}
	d, err := f.Get(at(deployments, "d"))
	if err != nil || nested(d, "spec", "replicas") != int64(3) || generationOf(d) != 2 {
		t.Errorf("the Deployment is %v, %v", d, err)
	}
	if _, err := f.Patch(scale, types.MergePatchType, []byte(`{"spec":{"replicas":-1}}`), WriteOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("fewer than none: %v", err)
	}
}

func TestTheTableIsServed(t *testing.T) {
	f := setup(t, Options{})
	for _, k := range f.Kinds() {
		if _, err := f.List(Target{GVR: k.GVR()}, ListOptions{}); err != nil {
			t.Errorf("%s: %v", k.GVR(), err)
		}
		if !k.Builtin {
			t.Errorf("%s is not built in", k.GVR())
		}
		sharedBuiltins().byResource[k.GVR()].typed.empty()
	}
}
