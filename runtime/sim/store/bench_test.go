package store

import "testing"

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
