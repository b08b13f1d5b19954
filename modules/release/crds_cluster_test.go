//go:build e2e

package release

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

func TestCRDs(t *testing.T) {
	t.Parallel()
	f := setup(t)
	group := f.ns + ".example"
	text := strings.ReplaceAll(thingCRD, "GROUP", group)
	files := []File{{Path: "crds/thing.yaml", Data: []byte(text)}}
	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	t.Cleanup(func() {
		_ = f.dynamic.Resource(crds).Delete(context.Background(), "things."+group, metav1.DeleteOptions{})
	})
	thing := f.target(nil, "apiVersion: "+group+"/v1\nkind: Thing\nmetadata: {name: a}\n")
	f.refused(thing, "does not serve kind Thing of "+group+"/v1")

	if _, err := f.ApplyCRDs(t.Context(), "web", append(files, File{Path: "crds/b.yaml", Data: []byte("kind: ConfigMap")})); err == nil {
		t.Error("a ConfigMap among the definitions was taken")
	}
	if _, err := f.dynamic.Resource(crds).Get(t.Context(), "things."+group, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("half of the files was applied: %v", err)
	}

	if changed, err := f.ApplyCRDs(t.Context(), "web", files); !changed || err != nil {
		t.Fatalf("first: %v, %v", changed, err)
	}
	f.reconcile(thing) // the kind is served already

	writes := f.writes.Load()
	if changed, err := f.ApplyCRDs(t.Context(), "web", files); changed || err != nil || f.writes.Load() != writes {
		t.Errorf("again: %v, %v, %d writes", changed, err, f.writes.Load()-writes)
	}

	// An update that serves another version.
	files[0].Data = []byte(strings.Replace(text, "name: v0, served: false", "name: v0, served: true", 1))
	if changed, err := f.ApplyCRDs(t.Context(), "web", files); !changed || err != nil {
		t.Fatalf("update: %v, %v", changed, err)
	}
	if _, err := f.o.Mapper.RESTMapping(schema.GroupKind{Group: group, Kind: "Thing"}, "v0"); err != nil {
		t.Errorf("the new version: %v", err)
	}
	live, err := f.dynamic.Resource(crds).Get(t.Context(), "things."+group, metav1.GetOptions{})
	if err != nil || live.GetManagedFields()[0].Manager != fieldManager {
		t.Errorf("field manager %v, %v", live.GetManagedFields(), err)
	}
}

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
	if res := f.reconcile(target); !res.RenderSkipped {
		t.Errorf("again: %+v", res)
	}
}

// A definition that somebody has removed, or changed, is applied again by a process that
// has applied it before.
func TestCRDsThatWereRemoved(t *testing.T) {
	t.Parallel()
	f := setup(t)
	group := f.ns + ".example"
	files := []File{{Path: "crds/thing.yaml", Data: []byte(strings.ReplaceAll(thingCRD, "GROUP", group))}}
	crds := f.dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	name := "things." + group
	t.Cleanup(func() { _ = crds.Delete(context.Background(), name, metav1.DeleteOptions{}) })
	apply := func(want bool) {
		t.Helper()
		if changed, err := f.ApplyCRDs(t.Context(), "web", files); changed != want || err != nil {
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
	f.Forget("web")
	if _, ok := f.crds.of("web", name); ok {
		t.Error("a module that is gone is remembered")
	}
}
