package store

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
)

const manyVersions = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.example.com"},
"spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "singular": "thing", "kind": "Thing"}, "versions": [
{"name": "v1alpha1", "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}},
{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"n": {"type": "integer", "default": 3}}}}}}}]}}`

// The schemas of an origin are read when somebody first looks at their kind.
func TestOverReadsSchemasLate(t *testing.T) {
	b := sharedBuiltins()
	below := New(Options{Builtins: b})
	crds := Target{GVR: crdGVR}
	if _, err := below.Create(crds, decoded(t, manyVersions), WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	of := func(version string) Target {
		return Target{GVR: schema.GroupVersionResource{Group: "example.com", Version: version, Resource: "things"}, Namespace: "default"}
	}
	thing := func(version, name string) map[string]any {
		return map[string]any{"apiVersion": "example.com/" + version, "kind": "Thing", "metadata": map[string]any{"name": name, "namespace": "default"}, "spec": map[string]any{"odd": "x"}}
	}
	if _, err := below.Create(of("v1"), thing("v1", "old"), WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	c := &counting{Origin: below.AsOrigin()}
	s, err := Over(Options{Builtins: b}, c)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := s.KindOf(schema.GroupVersionKind{Group: "example.com", Version: "v1alpha1", Kind: "Thing"}); !ok || len(c.asked) > 0 {
		t.Errorf("served %v, asked %v", ok, c.asked)
	}
	res, err := s.Create(of("v1"), thing("v1", "new"), WriteOptions{})
	if err != nil || fmt.Sprint(res.Object["spec"]) != "map[n:3]" {
		t.Errorf("no schema: %v %v", res.Object, err)
	}
	list, err := s.List(of("v1alpha1"), ListOptions{})
	if err != nil || len(list.Items) != 2 || list.Items[1]["apiVersion"] != "example.com/v1alpha1" {
		t.Errorf("%v %v", list.Items, err)
	}
	want := "get customresourcedefinitions /things.example.com; get namespaces /default; get things default/new; list things default "
	if got := strings.Join(c.asked, "; "); got != want {
		t.Errorf("asked %q, want %q", got, want)
	}
	// A CRD that goes takes its versions along.
	if _, err := s.Delete(Target{GVR: crdGVR, Name: "things.example.com"}, DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.Settle()
	for _, version := range []string{"v1", "v1alpha1"} {
		if _, ok := s.Kind(of(version).GVR); ok {
			t.Errorf("%s is still served", version)
		}
	}
}

// A CRD that is deleted before anybody has looked at its objects takes its kinds along,
// one that is changed changes them.
func TestOverChangesCRDsThatNobodyHasUsed(t *testing.T) {
	b := sharedBuiltins()
	below := New(Options{Builtins: b})
	if _, err := below.Create(Target{GVR: crdGVR}, decoded(t, manyVersions), WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	s, err := Over(Options{Builtins: b}, below.AsOrigin())
	if err != nil {
		t.Fatal(err)
	}
	at := Target{GVR: crdGVR, Name: "things.example.com"}
	crd, err := s.Get(at)
	if err != nil {
		t.Fatal(err)
	}
	crd, err = copied(crd)
	if err != nil {
		t.Fatal(err)
	}
	nested(crd, "spec").(map[string]any)["versions"] = nested(crd, "spec", "versions").([]any)[1:]
	if _, err := s.Update(at, crd, WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	of := schema.GroupVersionResource{Group: "example.com", Version: "v1alpha1", Resource: "things"}
	if _, ok := s.Kind(of); ok {
		t.Error("v1alpha1 is still served")
	}
	of.Version = "v1"
	if _, ok := s.Kind(of); !ok {
		t.Error("v1 is not served")
	}
}

// converting is an API server with two versions of one built-in kind.
type converting struct{ Origin }

var otherVersion = Kind{Group: "autoscaling", Version: "v1", Kind: "HorizontalPodAutoscaler", Plural: "horizontalpodautoscalers", Namespaced: true}

func (c converting) Kinds() ([]Kind, error) {
	kinds, err := c.Origin.Kinds()
	return append(kinds, otherVersion), err
}

func (c converting) Get(k Kind, namespace, name string) (map[string]any, error) {
	list, err := c.List(k, namespace, Selection{})
	for _, obj := range list {
		if nameOf(obj) == name {
			return obj, err
		}
	}
	return nil, err
}

func (c converting) List(k Kind, namespace string, sel Selection) ([]map[string]any, error) {
	if k.Kind != otherVersion.Kind {
		return c.Origin.List(k, namespace, sel)
	}
	spec := map[string]any{"maxReplicas": int64(3), "metrics": []any{}}
	if k.Version == "v1" {
		spec = map[string]any{"maxReplicas": int64(3), "targetCPUUtilizationPercentage": int64(50)}
	}
	return []map[string]any{{"apiVersion": k.APIVersion(), "kind": k.Kind, "metadata": map[string]any{"name": "a", "namespace": "default", "resourceVersion": "7"}, "spec": spec}}, nil
}

// An object is the same in all versions of its kind, whichever was asked for first.
func TestOverTwoVersionsOfABuiltinKind(t *testing.T) {
	b := sharedBuiltins()
	s, err := Over(Options{Builtins: b}, converting{New(Options{Builtins: b}).AsOrigin()})
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"v2", "v1", "v2", "v1"} {
		at := Target{GVR: otherVersion.GVR().GroupResource().WithVersion(version), Namespace: "default"}
		list, err := s.List(at, ListOptions{})
		if err != nil || len(list.Items) != 1 || list.Items[0]["apiVersion"] != "autoscaling/"+version {
			t.Fatalf("%s: %v %v", version, list.Items, err)
		}
		at.Name = "a"
		obj, err := s.Get(at)
		if err != nil || (nested(obj, "spec", "targetCPUUtilizationPercentage") != nil) != (version == "v1") {
			t.Errorf("%s: %v %v", version, obj, err)
		}
	}
	if d := s.Differences(); len(d) > 0 {
		t.Errorf("differences %v", d)
	}
}

func decoded(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// Objects that were there before their definition are as it says once it comes: it sets defaults when they are
// read. That changes none of them.
func TestADefinitionComesAfterItsObjects(t *testing.T) {
	b := sharedBuiltins()
	below := New(Options{Builtins: b})
	below.Serve(Kind{Group: "example.com", Version: "v1", Kind: "Thing", Plural: "things", Namespaced: true})
	of := Target{GVR: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "things"}, Namespace: "default"}
	thing := map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "old", "namespace": "default"}, "spec": map[string]any{}}
	if _, err := below.Create(of, thing, WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	over, err := Over(Options{Builtins: b}, below.AsOrigin())
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range []*Store{over, below} {
		if _, err := s.Create(Target{GVR: crdGVR}, decoded(t, manyVersions), WriteOptions{}); err != nil {
			t.Fatal(err)
		}
		list, err := s.List(of, ListOptions{})
		if err != nil || len(list.Items) != 1 || fmt.Sprint(list.Items[0]["spec"]) != "map[n:3]" {
			t.Errorf("%d: %v, error %v", i, list.Items, err)
		}
	}
	for _, d := range over.Differences() {
		if d.Kind.Kind == "Thing" {
			t.Errorf("changed: %+v", d)
		}
	}
}
