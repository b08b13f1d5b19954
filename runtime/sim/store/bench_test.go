package store

import (
	"testing"

	"sigs.k8s.io/yaml"
)

// BenchmarkNew is the cost of a world with the built-in kinds, once a process has
// read their table.
func BenchmarkNew(b *testing.B) {
	builtins := NewBuiltins()
	b.ReportAllocs()
	for b.Loop() {
		New(Options{Builtins: builtins})
	}
}

// BenchmarkBuiltins is what a process pays once.
func BenchmarkBuiltins(b *testing.B) {
	for b.Loop() {
		NewBuiltins()
	}
}

// BenchmarkApply is one server-side apply of a ConfigMap that changes.
func BenchmarkApply(b *testing.B) {
	s := New(Options{Builtins: NewBuiltins(), MakeNamespaces: true})
	t := Target{GVR: configMaps, Namespace: "default", Name: "x"}
	data := [][]byte{
		[]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":{"a":"1"}}`),
		[]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":{"a":"2"}}`),
	}
	n := 0
	for b.Loop() {
		n++
		if _, err := s.Patch(t, "application/apply-patch+yaml", data[n%2], WriteOptions{Manager: "m"}); err != nil {
			b.Fatal(err)
		}
	}
}

const benchCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  names: {kind: Gadget, plural: gadgets}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              n: {type: integer, default: 4, x-kubernetes-validations: [{rule: self < 10}]}
`

// BenchmarkCRD is a store with a CRD and one object of it, as a test begins with.
func BenchmarkCRD(b *testing.B) {
	builtins := NewBuiltins()
	var crd map[string]any
	if err := yaml.Unmarshal([]byte(benchCRD), &crd); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s := New(Options{Builtins: builtins})
		if _, err := s.Create(Target{GVR: crdGVR}, crd, WriteOptions{Manager: "m"}); err != nil {
			b.Fatal(err)
		}
		gadgets := crdGVR
		gadgets.Group, gadgets.Resource = "example.com", "gadgets"
		if _, err := s.Create(at(gadgets, ""), map[string]any{"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": map[string]any{"name": "x"}, "spec": map[string]any{}}, WriteOptions{Manager: "m"}); err != nil {
			b.Fatal(err)
		}
	}
}
