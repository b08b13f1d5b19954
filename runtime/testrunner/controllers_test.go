package testrunner

import (
	"testing"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/stdlib"
)

// The tree below testdata has all that parts can ask for; its tests, and those of the examples, hold in
// other orders, too.
func TestControllers(t *testing.T) {
	for _, dir := range []string{"testdata/controllers", "../../examples/application", "../../examples/controllers"} {
		testTree(t, dir, 5)
	}
}

// Each mistake is a condition of the parent that makes it, and the others go on.
func TestBadParents(t *testing.T) { testTree(t, "testdata/bad", 0) }

// testTree runs the tests of a tree, each in so many other orders.
func testTree(t *testing.T, dir string, explore int) {
	t.Helper()
	read, err := tree.ReadDir(dir, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	gen := generation.Load(t.Context(), generation.Options{Tree: read, Std: stdlib.FS, Number: 1, Log: func(string) builtins.Logger { return discard{} }})
	err = Run(t.Context(), Options{Tree: read, Generation: gen, Std: stdlib.FS, Explore: explore}, func(f File) {
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
