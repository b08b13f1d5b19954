package testrunner

import (
	"strings"
	"testing"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/stdlib"
)

// planted are the mistakes of the modules below testdata/planted, as explorations tell of them. Their tests
// do not see them.
var planted = map[string]string{
	"orphaned": `ConfigMap elsewhere/child is a child of a/p by controller orphaned/orphaned, and this parent is not there any more: nobody will delete it`,
	"unready":  `Shown a/p of controller unready/unready: its condition Ready is False (the hook says so), and all of its children are there, as they are wanted, and ready`,
	"restless": `Parent a/p of controller restless/restless: it does not come to rest: ConfigMap a/shared is written `,
	"history":  `goes by what was between: there is no ConfigMap a/p-2, which the plain order leaves`,
}

func TestPlantedControllersAreFound(t *testing.T) {
	read, err := tree.ReadDir("testdata/planted", tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	gen := generation.Load(t.Context(), generation.Options{Tree: read, Std: stdlib.FS, Number: 1})
	found := 0
	for _, explore := range []int{0, 20} {
		err := Run(t.Context(), Options{Tree: read, Generation: gen, Std: stdlib.FS, Explore: explore}, func(f File) {
			module, _, _ := strings.Cut(f.Path, "/")
			if f.Err != nil || len(f.Tests) != 1 {
				t.Errorf("%s: %v, %d tests", f.Path, f.Err, len(f.Tests))
				return
			}
			got := f.Tests[0].Err
			switch {
			case explore == 0 && got != nil:
				t.Errorf("%s: %v", f.Path, got)
			case explore > 0 && (got == nil || !strings.Contains(got.Error()+Differences(got), planted[module])):
				t.Errorf("%s: %v\n%s\nwant %s", f.Path, got, Differences(got), planted[module])
			case explore > 0:
				t.Logf("%v\n%s", got, Differences(got))
				found++
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found != len(planted) {
		t.Errorf("%d of %d are found", found, len(planted))
	}
}
