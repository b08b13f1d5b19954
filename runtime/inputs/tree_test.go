package inputs

import (
	"slices"
	"testing"
	"testing/fstest"

	modules "github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/stdlib"
)

// A generation of an instance that has some of the modules is made again with the same ones.
func TestAGenerationIsMadeAgainWithItsSelector(t *testing.T) {
	selector, err := modules.ParseSelector("tier in (edge),name!=api")
	if err != nil {
		t.Fatal(err)
	}
	read, err := modules.Read(fstest.MapFS{
		"web/module.star": {Data: []byte(`module(labels = {"tier": "edge"})`)},
		"api/module.star": {Data: []byte(`module(labels = {"tier": "edge"})`)},
		"db/module.star":  {Data: []byte("module()")},
	}, modules.Options{Selector: selector})
	if err != nil {
		t.Fatal(err)
	}
	g := generation.Load(t.Context(), generation.Options{Tree: read, Std: stdlib.FS, Number: 1})
	written, _, err := treeOf(g, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := written.compile(t.Context(), nil, map[[32]byte][]byte{})
	if err != nil || !slices.Equal(again.Names, []string{"web"}) || len(again.Elsewhere) != 2 {
		t.Errorf("modules %v, elsewhere %v: %v", again.Names, again.Elsewhere, err)
	}
}
