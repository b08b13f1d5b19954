//go:build e2e

package release

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/stdlib"
)

func TestCRDs(t *testing.T) {
	t.Parallel()
	f := setup(t)
	group := f.ns + ".example"
	text := strings.ReplaceAll(thingCRD, "GROUP", group)
	files := []chart.File{{Path: "crds/thing.yaml", Data: []byte(text)}}
	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	t.Cleanup(func() {
		_ = f.dynamic.Resource(crds).Delete(context.Background(), "things."+group, metav1.DeleteOptions{})
	})
	thing := f.target(nil, "apiVersion: "+group+"/v1\nkind: Thing\nmetadata: {name: a}\n")
	f.refused(thing, "does not serve kind Thing of "+group+"/v1")

	if _, err := f.ApplyCRDs(t.Context(), Ref{Module: "web", Name: "web"}, CRDOptions{}, append(files, chart.File{Path: "crds/b.yaml", Data: []byte("kind: ConfigMap")})); err == nil {
		t.Error("a ConfigMap among the definitions was taken")
	}
	if _, err := f.dynamic.Resource(crds).Get(t.Context(), "things."+group, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("half of the files was applied: %v", err)
	}

	if changed, err := f.ApplyCRDs(t.Context(), Ref{Module: "web", Name: "web"}, CRDOptions{}, files); !changed || err != nil {
		t.Fatalf("first: %v, %v", changed, err)
	}
	f.reconcile(thing) // the kind is served already

	writes := f.writes.Load()
	if changed, err := f.ApplyCRDs(t.Context(), Ref{Module: "web", Name: "web"}, CRDOptions{}, files); changed || err != nil || f.writes.Load() != writes {
		t.Errorf("again: %v, %v, %d writes", changed, err, f.writes.Load()-writes)
	}

	// An update that serves another version.
	files[0].Data = []byte(strings.Replace(text, "name: v0, served: false", "name: v0, served: true", 1))
	if changed, err := f.ApplyCRDs(t.Context(), Ref{Module: "web", Name: "web"}, CRDOptions{}, files); !changed || err != nil {
		t.Fatalf("update: %v, %v", changed, err)
	}
	if _, err := f.o.Mapper.RESTMapping(schema.GroupKind{Group: group, Kind: "Thing"}, "v0"); err != nil {
		t.Errorf("the new version: %v", err)
	}
	live, err := f.dynamic.Resource(crds).Get(t.Context(), "things."+group, metav1.GetOptions{})
	if err != nil || live.GetManagedFields()[0].Manager != FieldManager {
		t.Errorf("field manager %v, %v", live.GetManagedFields(), err)
	}
}

const declaredKinds = `
module(enabled = True)

crd(
    "GROUP/v1",
    "Lamp",
    field({
        "color": field("string", default = "red", enum = ["red", "blue"]),
        "watts": field("integer", min = 1, max = 100, immutable = True),
        "ratio": field("number", min = 0.5),
        "since": "time",
        "port": "int-or-string",
        "labels": field("map[string]string", max = 10),
        "bulbs": field([{"name": field("string", required = True, max = 20), "on": field("boolean", default = True)}], max = 10, keys = ["name"]),
        "extra": "object",
        "raw": "any",
        "note": field("string", nullable = True, pattern = "^[a-z]", format = "hostname"),
    }, rules = {"self.color != 'blue' || has(self.watts)": "a blue one needs watts"}),
    status = {"lit": "boolean"},
    columns = {"Color": ".spec.color", "Ready": ".status.conditions[?(@.type==\"Ready\")].status"},
    rules = {"self.metadata.name.size() <= 40": "the name is too long"},
    versions = {"v1beta1": {"spec": {"color": "string"}, "deprecated": "use v1"}, "v1alpha1": {"spec": {"color": "string"}, "served": False, "status": False}},
    short_names = ["lmp"],
    doc = "A lamp.",
)
crd("GROUP/v1", "Room", {"floor": field("integer", default = 1)}, scope = "Cluster")
`

// The API server takes all that a short schema stands for.
func TestDeclaredKinds(t *testing.T) {
	t.Parallel()
	f := setup(t)
	group := f.ns + ".declared.example"
	read, err := tree.Read(fstest.MapFS{"web/module.star": {Data: []byte(strings.ReplaceAll(declaredKinds, "GROUP", group))}}, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := generation.Load(t.Context(), generation.Options{Tree: read, Std: stdlib.FS, Number: 1, Log: func(string) builtins.Logger { return noLines{} }}).Modules["web"]
	if m.Err != nil {
		t.Fatal(m.Err)
	}
	t.Cleanup(func() {
		crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
		for _, plural := range []string{"lamps", "rooms"} {
			_ = f.dynamic.Resource(crds).Delete(context.Background(), plural+"."+group, metav1.DeleteOptions{})
		}
	})
	for _, first := range []bool{true, false} {
		if changed, err := f.ApplyCRDs(t.Context(), Ref{Module: "web", Name: "web"}, CRDOptions{}, m.Tree.CRDs); changed != first || err != nil {
			t.Fatalf("changed %v, %v", changed, err)
		}
	}
	create := func(resource, ns string, obj map[string]any) (map[string]any, error) {
		client := dynamic.ResourceInterface(f.dynamic.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}))
		if ns != "" {
			client = f.dynamic.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}).Namespace(ns)
		}
		live, err := client.Create(t.Context(), &unstructured.Unstructured{Object: obj}, metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
		return live.Object, nil
	}
	object := func(kind, name string, spec map[string]any) map[string]any {
		obj := map[string]any{"apiVersion": group + "/v1", "kind": kind, "metadata": map[string]any{"name": name}}
		if spec != nil {
			obj["spec"] = spec
		}
		return obj
	}
	room, err := create("rooms", "", object("Room", "kitchen", nil))
	if floor, _, _ := unstructured.NestedInt64(room, "spec", "floor"); err != nil || floor != 1 {
		t.Errorf("floor %d, %v", floor, err)
	}
	lamp, err := create("lamps", f.ns, object("Lamp", "a", map[string]any{"bulbs": []any{map[string]any{"name": "x"}}}))
	if color, _, _ := unstructured.NestedString(lamp, "spec", "color"); err != nil || color != "red" {
		t.Errorf("color %q, %v", color, err)
	}
	if _, err := create("lamps", f.ns, object("Lamp", "b", map[string]any{"color": "blue"})); err == nil || !strings.Contains(err.Error(), "a blue one needs watts") {
		t.Errorf("a rule is broken: %v", err)
	}
}

// The API server takes an update of a definition that drops what objects have, or that they do not pass.
func TestADefinitionKeepsItsObjectsReal(t *testing.T) {
	t.Parallel()
	f := setup(t)
	group := f.ns + ".keeps.example"
	crds := f.dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	t.Cleanup(func() { // while nobody converts its objects the definition stays, and so does each namespace that is deleted
		_, _ = crds.Patch(context.Background(), "dials."+group, types.MergePatchType, []byte(`{"spec":{"conversion":{"strategy":"None","webhook":null}}}`), metav1.PatchOptions{})
		_ = crds.Delete(context.Background(), "dials."+group, metav1.DeleteOptions{})
	})
	bring := func(force bool, text string) error {
		_, err := f.ApplyCRDs(t.Context(), Ref{Module: "web", Name: "web"}, CRDOptions{Force: force}, []chart.File{{Path: "crds/dials.yaml", Data: []byte(strings.ReplaceAll(text, "safe.example", group))}})
		return err
	}
	const sized, unnamed = "{type: object, properties: {size: {type: integer}, name: {type: string}}}", "{type: object, properties: {size: {type: integer}}}"
	if err := bring(false, dials("v1alpha1: "+sized)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		obj := map[string]any{"apiVersion": group + "/v1alpha1", "kind": "Dial", "metadata": map[string]any{"name": name}, "spec": map[string]any{"name": name}}
		of := f.dynamic.Resource(schema.GroupVersionResource{Group: group, Version: "v1alpha1", Resource: "dials"}).Namespace(f.ns)
		if _, err := of.Create(t.Context(), &unstructured.Unstructured{Object: obj}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	unreachable := "scope: Namespaced\n  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: 'https://127.0.0.1:1/'}}}"
	for _, tt := range []struct {
		text, want string
		force      bool
	}{
		{text: dials("v1alpha1: " + unnamed), want: "drops spec.name in version v1alpha1, which concerns 2 of 2 objects, the first is " + f.ns + "/a"},
		{text: strings.Replace(dials("v1alpha1: "+sized), "scope: Namespaced", "scope: Cluster", 1), want: "changes spec.scope from Namespaced to Cluster, and objects are left (2,"},
		{text: dials("v1: "+unnamed, "v1alpha1: "+sized), want: "drops spec.name in version v1, which concerns 2 of 2"},
		{text: dials("v1: "+sized, "v1alpha1: "+sized)},
		{text: dials("v1: " + sized), want: "drops version v1alpha1, in which status.storedVersions says that objects are stored, and objects are left (2,"},
		{text: dials("v1: "+unnamed, "v1alpha1: "+sized), force: true},
		{text: strings.Replace(dials("v1: "+unnamed, "v1alpha1: "+sized), "scope: Namespaced", unreachable, 1)},
		{text: strings.Replace(dials("v1: {type: object}", "v1alpha1: "+sized), "scope: Namespaced", unreachable, 1), want: "and nobody can see what its objects have there: "},
	} {
		if err := bring(tt.force, tt.text); tt.want == "" && err != nil {
			t.Fatal(err)
		} else if tt.want != "" {
			wantError(t, err, tt.want)
		}
	}
}

type noLines struct{}

func (noLines) Log(builtins.Level, string, []builtins.Field) {}

// A chart makes a definition from a template: charts that follow see the kind.
func TestTemplateCRDs(t *testing.T) {
	t.Parallel()
	f := setup(t)
	group := f.ns + ".template.example"
	f.reconcile(f.target(nil, strings.ReplaceAll(thingCRD, "GROUP", group)))
	next := f.target(nil, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: next}\ndata: {served: \"{{ .Capabilities.APIVersions.Has \""+group+"/v1\" }}\"}\n")
	next.Module, next.Name = "next", "next"
	eventually(t, "the next chart sees the kind", func() bool {
		f.ResetDiscovery() // what a watch on definitions does a moment later
		f.reconcile(next)
		return f.configMap("next")["served"] == "true"
	})
	thing := f.target(nil, "apiVersion: "+group+"/v1\nkind: Thing\nmetadata: {name: a}\n")
	thing.Module, thing.Name = "thing", "thing"
	f.reconcile(thing)
}

// A chart brings its own definitions, here packed in its crds/.
func TestChartCRDs(t *testing.T) {
	t.Parallel()
	f := setup(t)
	group := f.ns + ".chart.example"
	target := f.target(nil, "apiVersion: "+group+"/v1\nkind: Thing\nmetadata: {name: a}\ndata: {served: {{ .Capabilities.APIVersions.Has \""+group+"/v1\" }}}\n")
	target.Chart = with(target.Chart, "crds/thing.yaml", strings.ReplaceAll(thingCRD, "GROUP", group))
	f.reconcile(target)
	live, err := f.dynamic.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: "things"}).
		Namespace(f.apps).Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if data, _ := live.Object["data"].(map[string]any); data["served"] != true {
		t.Errorf("the chart did not see its own kind: %v", live.Object)
	}
	if res := f.reconcile(target); res.Reason != noRender {
		t.Errorf("again: %+v", res)
	}
}

// A definition that somebody has removed, or changed, is applied again by a process that
// has applied it before.
func TestCRDsThatWereRemoved(t *testing.T) {
	t.Parallel()
	f := setup(t)
	group := f.ns + ".example"
	files := []chart.File{{Path: "crds/thing.yaml", Data: []byte(strings.ReplaceAll(thingCRD, "GROUP", group))}}
	crds := f.dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	name := "things." + group
	t.Cleanup(func() { _ = crds.Delete(context.Background(), name, metav1.DeleteOptions{}) })
	apply := func(want bool) {
		t.Helper()
		if changed, err := f.ApplyCRDs(t.Context(), Ref{Module: "web", Name: "web"}, CRDOptions{}, files); changed != want || err != nil {
			t.Fatalf("changed: %v, %v", changed, err)
		}
	}
	apply(true)
	apply(false)
	if err := crds.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the definition is gone", func() bool {
		_, err := crds.Get(t.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	apply(true)
	f.reconcile(f.target(nil, "apiVersion: "+group+"/v1\nkind: Thing\nmetadata: {name: a}\n"))
	patch := []byte(`{"spec": {"names": {"shortNames": ["oops"]}}}`)
	if _, err := crds.Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	apply(true)
	apply(false)
	if err := f.ForgetCRDs(t.Context(), "web"); err != nil {
		t.Fatal(err)
	}
	if _, ok, _ := f.crds.of("web", name); ok {
		t.Error("a module that is gone is remembered")
	}
}
