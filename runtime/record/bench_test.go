package record

import (
	"testing"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/hook"
)

// What a run pays for being recorded, under a load that drops most of them.
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
