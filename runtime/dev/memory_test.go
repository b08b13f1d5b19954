package dev

import (
	"fmt"
	"maps"
	"runtime"
	"testing"

	"github.com/starling-operator/starling/runtime/sim/store"
)

// After many saves no more is kept than after a few: generations and clusters of before
// are let go.
func TestManyRoundsKeepNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("many rounds")
	}
	a := &author{t: t, files: map[string]string{}, loop: New(Options{Builtins: store.NewBuiltins(), Namespace: "starling-system", Name: "starling", Parallel: 1})}
	maps.Copy(a.files, module("web"))
	a.files["web/values.yaml"] = "count: 0\ncolor: c0\n"
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var early uint64
	for i := range 60 {
		a.save("web/values.yaml", fmt.Sprintf("c%d\n", i), fmt.Sprintf("c%d\n", i+1), "web/hooks/a.star", "def f(ctx):\n", fmt.Sprintf("def f(ctx):\n    # %d\n", i))
		if i == 15 {
			early = heap()
		}
	}
	if late := heap(); late > early+early/3 {
		t.Errorf("%d MiB after 15 rounds, %d MiB after 60", early>>20, late>>20)
	} else {
		t.Logf("%d MiB after 15 rounds, %d MiB after 60", early>>20, late>>20)
	}
}
