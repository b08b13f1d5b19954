package release

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/release/owned"
)

// testDriftOverWrites has Starling itself write a release several times, in all ways: what it owns
// must be as it has noted it after each, and a change of somebody's must be seen.
func testDriftOverWrites(t *testing.T, w *driftWorld) {
	target := w.target("red")
	expected := map[Key]Object{}
	expect := func(o Objects) {
		t.Helper()
		if o.Digest == "" {
			o = w.repair().Objects
		}
		if clear(expected); o.Digest == "" || len(o.Seen) != 3 {
			t.Fatalf("%+v", o)
		}
		for _, s := range o.Seen {
			expected[s.Key] = s
		}
	}
	// seen are the objects of which Starling owns something else than expected.
	seen := func() (differ []string) {
		t.Helper()
		for key, want := range expected {
			gv, err := schema.ParseGroupVersion(key.APIVersion)
			if err != nil {
				t.Fatal(err)
			}
			resource := gv.WithResource(map[string]string{"ConfigMap": "configmaps", "Deployment": "deployments", "Gadget": "gadgets"}[key.Kind])
			u, err := w.client.Resource(resource).Namespace(key.Namespace).Get(t.Context(), key.Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if now, known := owned.Of(u.GetManagedFields(), FieldManager, nil); !known || !want.Owned.Same(now) {
				differ = append(differ, key.Kind)
			}
		}
		return differ
	}
	gadgets := schema.GroupVersionResource{Group: w.group, Version: "v1", Resource: "gadgets"}
	changes := map[string]func(){
		"ConfigMap":  func() { (&others{w, configMaps}).merge(`{"data":{"color":"black"}}`) },
		"Deployment": func() { (&others{w, deployments}).merge(`{"spec":{"replicas":9}}`) },
		"Gadget":     func() { (&others{w, gadgets}).merge(`{"spec":{"free":{"a":9}}}`) },
	}
	release := func(values map[string]any, action string) {
		t.Helper()
		target.Values = values
		res, err := w.Reconcile(t.Context(), target)
		if err != nil || res.Action != action {
			t.Fatalf("%+v, %v", res, err)
		}
		expect(res.Objects)
	}
	steps := []struct {
		name string
		do   func()
	}{
		{"an install", func() { release(map[string]any{"color": "red"}, ActionInstalled) }},
		{"an upgrade", func() { release(map[string]any{"color": "green"}, ActionUpgraded) }},
		{"objects that are owned anew", func() {
			for _, of := range []schema.GroupVersionResource{configMaps, deployments, gadgets} {
				(&others{w, of}).merge(`{"metadata":{"managedFields":[{}]}}`)
			}
			expect(w.repair().Objects)
		}},
		{"an upgrade to another version of a kind", func() { release(map[string]any{"color": "blue", "version": "v2"}, ActionUpgraded) }},
		{"an upgrade without a field", func() { release(map[string]any{"color": "blue", "version": "v2", "bare": true}, ActionUpgraded) }},
		{"an upgrade to the version before", func() { release(map[string]any{"color": "red"}, ActionUpgraded) }},
	}
	for _, step := range steps {
		step.do()
		if differ := seen(); differ != nil {
			t.Errorf("after %s %v differ", step.name, differ)
		}
		size, there, _ := unstructured.NestedString((&others{w, configMaps}).get().Object, "data", "size")
		if _, bare := target.Values["bare"]; there == bare {
			t.Errorf("after %s size is %q, %v", step.name, size, there)
		}
		for kind, change := range changes {
			change()
			if differ := seen(); len(differ) != 1 || differ[0] != kind {
				t.Errorf("after %s, and a change of %s: %v differ", step.name, kind, differ)
			}
			out := w.repair()
			if len(out.Written) != 1 || out.Written[0].Kind != kind {
				t.Errorf("after %s, and a change of %s: %v were written", step.name, kind, out.Written)
			}
			expect(out.Objects)
		}
	}
}

// A kind that somebody has deleted comes back with the CustomResourceDefinitions of the chart, and
// its objects after that.
func testDeletedKind(t *testing.T, w *driftWorld, manager func() *Manager, settle func()) {
	group := "gone." + w.group
	target := w.target("red")
	target.Chart = with(chartOf("web", driftChart, replaceGroup(gadgetTemplate, group)), "crds/gadgets.yaml", replaceGroup(gadgetCRD, group))
	target.Installs = []builtins.Grant{{APIVersion: group + "/v1", Kind: "Gadget"}}
	for _, fresh := range []bool{false, true} {
		if res, err := w.Reconcile(t.Context(), target); err != nil || res.Revision != 1 {
			t.Fatalf("%+v, %v", res, err)
		}
		crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
		if err := w.client.Resource(crds).Delete(t.Context(), "gadgets."+group, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		settle()
		if fresh { // it knows nothing of the kind
			w.Manager = manager()
		}
		repair := func() (Repair, error) {
			return w.Repair(t.Context(), RepairTarget{Target: target})
		}
		out, err := repair()
		if err == nil || !out.Lost || !strings.Contains(err.Error(), "the cluster does not serve kind Gadget of "+group+"/v1 any more") {
			t.Fatalf("%+v, %v", out, err)
		}
		if res, err := w.Reconcile(t.Context(), target); err != nil || res.Action != ActionUnchanged {
			t.Fatalf("%+v, %v", res, err)
		}
		if out, err = repair(); err != nil || out.Lost || len(out.Written) != 1 || out.Objects.Digest == "" {
			t.Fatalf("%+v, %v", out, err)
		}
	}
}
