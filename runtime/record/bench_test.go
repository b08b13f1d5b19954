package record

import (
	"testing"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/hook"
)

// It measures what a record costs a run, under a load that drops most of them.
func BenchmarkTrace(b *testing.B) {
	r := New(Options{})
	h := &generation.Hook{ID: "m/h"}
	request := hook.Request{Hook: h, Log: noLog{},
		Compose: func([]effect.ValueOp) (map[string]any, error) { return nil, nil },
		Scope:   func(string, string) (bool, error) { return true, nil }}
	b.ReportAllocs()
	for i := range b.N {
		one := request
		t := Start(r.Take, uint64(i), 1, &one)
		t.End(r.Take, hook.Result{}, 0)
	}
}

// It measures the cost of keeping a run whose snapshot is there already.
func BenchmarkPut(b *testing.B) {
	m, s := newModule(b, "values.set(\"x\", 1)"), newStore(b, StoreOptions{})
	snapshot := nodes("a", "b", "c")
	put(b, s, m.run(b, snapshot))
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		t := m.run(b, snapshot)
		b.StartTimer()
		put(b, s, t)
	}
}
