package testrunner

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/sim/store"
	"github.com/starling-operator/starling/stdlib"
)

// The tree below testdata has all that parts can ask for; its tests hold in other orders, too. make examples explores
// those of the examples.
func TestControllers(t *testing.T) { testTree(t, "testdata/controllers", 5) }

// Objects that are there are in the way of an update of their definition. It takes few seconds, and no bubble: where no
// time passes at all a restart writes the definition once more.
func TestDefinitionsOfObjects(t *testing.T) {
	testsOf(t, "testdata/definitions", 0, store.NewBuiltins())
}

// A release waits for the Jobs of its chart's hooks, as long as those move.
func TestHooksOfCharts(t *testing.T) { testTree(t, "testdata/charthooks", 2) }

// Each mistake is a condition of the parent that makes it, and the others go on.
func TestBadParents(t *testing.T) { testTree(t, "testdata/bad", 0) }

// Somebody changes a child whenever it was put right, for ten minutes. A crash would forget the repairs, so there
// are no other orders.
func TestAContestedChild(t *testing.T) { testTree(t, "testdata/contests", 0) }

// So many parents of a controller set fields of one object that one more may not: it is told, its other parts go on,
// and it has them once another parent is gone.
func TestManyParentsOfOneObject(t *testing.T) { testTree(t, "testdata/holders", 0) }

// An error of a function that a test has called names the place where it happened.
func TestAnErrorOfDesiredHasItsPlace(t *testing.T) {
	read, err := tree.Read(fstest.MapFS{
		"web/module.star":       {Data: []byte("module(enabled = True)\n")},
		"web/hooks/own.star":    {Data: []byte("def own(ctx, o):\n    return o.spec\n\ncontroller(\"own\", k8s.watch(\"v1\", \"Node\"), own, owns = [owns(\"v1\", \"Secret\")])\n")},
		"web/hooks/a_test.star": {Data: []byte("load(\"./own.star\", \"own\")\n\ndef test_own(t):\n    t.desired(own, {\"apiVersion\": \"v1\", \"kind\": \"Node\", \"metadata\": {\"name\": \"a\"}})\n")},
	}, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	gen := generation.Load(t.Context(), generation.Options{Tree: read, Std: stdlib.FS, Number: 1})
	err = Run(t.Context(), Options{Tree: read, Generation: gen, Std: stdlib.FS}, func(f File) {
		if len(f.Tests) != 1 || f.Tests[0].Err == nil || !strings.HasPrefix(f.Tests[0].Err.Error(), "web/hooks/own.star:2:13: object has no field \"spec\"") {
			t.Errorf("%v, %+v", f.Err, f.Tests)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// testTree runs the tests of a tree, each in so many other orders, however long this machine takes: in a bubble no time
// passes while they compute.
func testTree(t *testing.T, dir string, explore int) {
	t.Helper()
	kinds := store.NewBuiltins()
	kinds.Warm()
	synctest.Test(t, func(t *testing.T) { testsOf(t, dir, explore, kinds) })
}

func testsOf(t *testing.T, dir string, explore int, kinds *store.Builtins) {
	t.Helper()
	read, err := tree.ReadDir(dir, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	gen := generation.Load(t.Context(), generation.Options{Tree: read, Std: stdlib.FS, Number: 1})
	err = Run(t.Context(), Options{Tree: read, Generation: gen, Std: stdlib.FS, Explore: explore, Builtins: kinds}, func(f File) {
		for _, r := range f.Tests {
			if r.Err != nil {
				t.Errorf("%s: %v", r.Name, r.Err)
			}
		}
		if f.Err != nil || len(f.Tests) == 0 {
			t.Errorf("%s: %v, %d tests", f.Path, f.Err, len(f.Tests))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

const remembering = `
def one(ctx, o):
    return [part({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}})]

controller("one", k8s.watch("example.org/v1", "Parent"), one, owns = [owns("v1", "ConfigMap")])
`

const rememberingTest = `
def test_one(t):
    t.start()
    t.cluster.apply({"apiVersion": "example.org/v1", "kind": "Parent", "metadata": {"name": "p", "namespace": "a"}})
`

// Tests find a desired function that remembers how often it was asked, and explorations do when it remembers only
// once the test is over.
func TestADesiredThatRemembersIsFound(t *testing.T) {
	read, err := tree.Read(fstest.MapFS{
		"web/module.star":         {Data: []byte("module()\n")},
		"web/hooks/one.star":      {Data: []byte(remembering)},
		"web/hooks/one_test.star": {Data: []byte(rememberingTest)},
	}, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	gen := generation.Load(t.Context(), generation.Options{Tree: read, Std: stdlib.FS, Number: 1})
	h := gen.Hook("web/one")
	if h == nil {
		t.Fatal(gen.Modules["web"].Err)
	}
	const never = 1 << 30
	var calls, from atomic.Int64 // it answers None at each second call after so many
	fn := h.Fn
	h.Fn = starlark.NewBuiltin("one", func(thread *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		if n := calls.Add(1); n > from.Load() && n%2 == 0 {
			return starlark.None, nil
		}
		return starlark.Call(thread, fn, args, nil)
	})
	run := func(explore int, after int64) (found error) {
		t.Helper()
		calls.Store(0)
		from.Store(after)
		err := Run(t.Context(), Options{Tree: read, Generation: gen, Std: stdlib.FS, Explore: explore}, func(f File) {
			if f.Err != nil || len(f.Tests) != 1 {
				t.Fatalf("%s: %v, %d tests", f.Path, f.Err, len(f.Tests))
			}
			found = f.Tests[0].Err
		})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if err := run(0, never); err != nil {
		t.Fatal(err)
	}
	calledByTest := calls.Load()
	if err := run(1, never); err != nil {
		t.Fatal(err)
	}
	for explore, after := range []int64{0, calledByTest} {
		err := run(explore, after)
		const want = `desired is not deterministic: asked twice about the same parent, it answers ["ConfigMap a/x"], then None`
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("with %d explorations: %v", explore, err)
		}
	}
}

// A parent that wants no children gets no finalizer, also while objects of a kind that is read, or owned, are not known.
func TestNoFinalizerWithoutChildren(t *testing.T) {
	runTests(t, map[string]string{
		"web/module.star": "module(grants = [grant(\"v1\", \"Node\", verbs = [\"patch\"])])\n",
		"web/hooks/a.star": `
def nothing(ctx, o):
    return []

controller("nodes", k8s.watch("v1", "Node"), nothing, owns = [owns("example.org/v1", "Owned")],
    reads = {"x": k8s.watch("example.org/v1", "Read")})
`,
		"web/hooks/a_test.star": `
def definition(kind):
    plural = kind.lower() + "s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": plural + ".example.org"},
        "spec": {"group": "example.org", "scope": "Namespaced", "names": {"kind": kind, "plural": plural},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}]},
    }

def test_finalizer(t):
    for kind in ["Read", "Owned"]:
        t.cluster.apply(definition(kind))
    t.start()
    t.cluster.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}})
    for kind in ["Read", "Owned"]:
        t.cluster.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", kind.lower() + "s.example.org")
        t.cluster.patch("v1", "Node", "a", merge = {"metadata": {"labels": {"gone": kind}}})
        t.expect(t.cluster.get("v1", "Node", "a").metadata.get("finalizers")).equals(None)
`,
	})
}

// A controller that observes what is outside of the API, and acts there, one call after the other.
func TestAControllerObserves(t *testing.T) { testTree(t, "testdata/observe", 5) }
