package store

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// counting counts what an origin is asked.
type counting struct {
	Origin
	asked []string
}

func (c *counting) Get(k Kind, namespace, name string) (map[string]any, error) {
	c.asked = append(c.asked, fmt.Sprintf("get %s %s/%s", k.Plural, namespace, name))
	return c.Origin.Get(k, namespace, name)
}

func (c *counting) List(k Kind, namespace string, sel Selection) ([]map[string]any, error) {
	c.asked = append(c.asked, fmt.Sprintf("list %s %s %s", k.Plural, namespace, sel.Labels))
	return c.Origin.List(k, namespace, sel)
}

func configMap(name string, data map[string]any) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "default", "labels": map[string]any{"app": "x"}}, "data": data}
}

func TestOver(t *testing.T) {
	b := sharedBuiltins()
	below := New(Options{Builtins: b})
	at := Target{GVR: configMaps, Namespace: "default"}
	for _, name := range []string{"a", "b", "c"} {
		if _, err := below.Create(at, configMap(name, map[string]any{"k": name}), WriteOptions{Manager: "kubectl"}); err != nil {
			t.Fatal(err)
		}
	}
	before := below.Version()
	c := &counting{Origin: below.AsOrigin()}
	s, err := Over(Options{Builtins: b}, c)
	if err != nil {
		t.Fatal(err)
	}
	c.asked = nil
	named := func(name string) Target { t := at; t.Name = name; return t }

	s.As("web")
	if _, err := s.Patch(named("a"), types.MergePatchType, []byte(`{"data": {"k": "new"}}`), WriteOptions{Manager: "x"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Patch(named("c"), types.MergePatchType, []byte(`{"data": {"k": "c"}}`), WriteOptions{Manager: "x"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Delete(named("b"), DeleteOptions{Propagation: metav1.DeletePropagationBackground}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(at, configMap("a", nil), WriteOptions{}); err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("a was made twice: %v", err)
	}
	if _, err := s.Create(at, configMap("d", map[string]any{"k": "d"}), WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		list, err := s.List(at, ListOptions{Selection: Selection{Labels: "app=x"}})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, obj := range list.Items {
			got = append(got, fmt.Sprint(nameOf(obj), "=", nested(obj, "data", "k")))
		}
		if text := strings.Join(got, " "); text != "a=new c=c d=d" {
			t.Errorf("listed %s", text)
		}
	}
	if _, err := s.List(at, ListOptions{Selection: Selection{Labels: "app=x"}}); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(c.asked, "; "), "get configmaps default/a; get configmaps default/c; get configmaps default/b; get namespaces /default; get configmaps default/d; list configmaps default app=x"; got != want {
		t.Errorf("asked\n%s\nwant\n%s", got, want)
	}
	var got []string
	for _, d := range s.Differences() {
		got = append(got, fmt.Sprintf("%s %v %v %v", d.Name, d.Before != nil, d.After != nil, d.By))
	}
	if text := strings.Join(got, "; "); text != "a true true [web]; b true false [web]; d false true [web]" {
		t.Errorf("differences: %s", text)
	}
	if below.Version() != before {
		t.Error("the origin was written to")
	}
}

// Deletions, owners and APIs of the origin stay as they are there.
func TestOverLeavesAlone(t *testing.T) {
	b := sharedBuiltins()
	below := New(Options{Builtins: b})
	at := Target{GVR: configMaps, Namespace: "default"}
	owned := configMap("owned", nil)
	metaOf(owned)["ownerReferences"] = []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "not-asked-for"}}
	held := configMap("held", nil)
	metaOf(held)["finalizers"] = []any{metav1.FinalizerDeleteDependents}
	for _, obj := range []map[string]any{owned, held} {
		if _, err := below.Create(at, obj, WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := below.Delete(Target{GVR: configMaps, Namespace: "default", Name: "held"}, DeleteOptions{Propagation: metav1.DeletePropagationForeground}); err != nil {
		t.Fatal(err)
	}
	below.Serve(Kind{Group: "metrics.example.com", Version: "v1", Kind: "Sample", Plural: "samples", Namespaced: true})
	s, err := Over(Options{Builtins: b}, below.AsOrigin())
	if err != nil {
		t.Fatal(err)
	}
	if list, err := s.List(at, ListOptions{}); err != nil || len(list.Items) != 2 {
		t.Fatalf("%v %v", list.Items, err)
	}
	if s.Settle() || len(s.Differences()) > 0 {
		t.Errorf("it changed %v", s.Differences())
	}
	if _, ok := s.KindOf(schema.GroupVersionKind{Group: "metrics.example.com", Version: "v1", Kind: "Sample"}); !ok {
		t.Error("a kind of an aggregated API is not served")
	}
}
