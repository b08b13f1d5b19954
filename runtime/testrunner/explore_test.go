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
			Log: func(string) builtins.Logger { return builtins.Silent{} }})
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

// An event that comes while a commit is under way that fails shortens the wait for the next try, however often that
// has failed before: explorations put events there.
func TestExplorationsPutEventsIntoFailingCommits(t *testing.T) {
	read, err := tree.Read(fstest.MapFS{
		"web/module.star": {Data: []byte("module(grants = [grant(\"v1\", \"ConfigMap\", verbs = [\"apply\"])])\n")},
		"web/hooks/a.star": {Data: []byte(`
def all(ctx):
    for row in ctx.snapshots["in"]:
        k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "all-" + row["name"]}, "data": {"v": row["v"]}})

def each(ctx):
    k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "each-" + ctx.object["name"]}, "data": {"v": ctx.object["v"]}})

def inputs():
    return k8s.watch("v1", "ConfigMap", name = "in", labels = {"in": "yes"}, filter = lambda o: {"name": o.metadata.name, "v": o.data.v})

hook(all, on = [inputs()])
hook(each, on = [inputs()], for_each = "in")
`)},
		"web/a_test.star": {Data: []byte(`
def cm(v):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "labels": {"in": "yes"}}, "data": {"v": v}}

def test_a(t):
    t.cluster.apply(cm("1"))
    t.start()
    t.cluster.apply(cm("2"))
    t.cluster.apply(cm("3"))
`)},
	}, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	gen := generation.Load(t.Context(), generation.Options{Tree: read, Std: stdlib.FS, Number: 1})
	if err := Run(t.Context(), Options{Tree: read, Generation: gen, Std: stdlib.FS, Explore: 50}, func(f File) {
		if f.Failed() {
			t.Errorf("%s: %v", f.Path, f.Err)
		}
		for _, test := range f.Tests {
			if test.Err != nil {
				t.Errorf("%v\n%s", test.Err, Differences(test.Err))
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
}
