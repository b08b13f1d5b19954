package testrunner

import (
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/record"
	"github.com/starling-operator/starling/runtime/script"
	"github.com/starling-operator/starling/runtime/sim/store"
	"github.com/starling-operator/starling/stdlib"
)

// Each order has the time of a test: many of them on a slow machine are no failure.
func TestEveryOrderHasTheTimeOfATest(t *testing.T) {
	read, err := tree.Read(fstest.MapFS{
		"web/module.star":  {Data: []byte("module()\n")},
		"web/hooks/a.star": {Data: []byte("def f(ctx):\n    values.set(\"a\", 1)\n\nhook(f, on = [startup()])\n")},
		"web/a_test.star":  {Data: []byte("def test_a(t):\n    t.start()\n")},
	}, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	kinds := store.NewBuiltins()
	kinds.Warm()
	synctest.Test(t, func(t *testing.T) {
		gen := generation.Load(t.Context(), generation.Options{Tree: read, Std: stdlib.FS, Number: 1, Governor: script.NewGovernor(script.GovernorOptions{}),
			Log: func(string) builtins.Logger { return discard{} }})
		runs := 0
		err := Run(t.Context(), Options{
			Tree: read, Generation: gen, Std: stdlib.FS, Explore: 5, Builtins: kinds,
			Record: func(*record.Trace) {
				runs++
				time.Sleep(testLimits.Wall / 4)
			},
		}, func(f File) {
			if f.Failed() {
				t.Errorf("%s: %v, %+v", f.Path, f.Err, f.Tests)
			}
		})
		if err != nil || runs < 7 {
			t.Errorf("%d runs, %v", runs, err)
		}
	})
}
