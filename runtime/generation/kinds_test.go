package generation

import (
	"strings"
	"testing"
)

// Kinds that module.star declares stand beside those of crds/, and leave the tree as it is.
func TestDeclaredKinds(t *testing.T) {
	g := load(t, map[string]string{
		"web/module.star":   "load('//lib/kinds.star', 'lamp')\n\nmodule()\nlamp('v1')\n",
		"web/crds/a.yaml":   "kind: X\n",
		"lib/kinds.star":    "def lamp(version):\n    crd('example.org/' + version, 'Lamp', {'a': 'string'})\n",
		"shop/module.star":  "crd('example.org/v1', 'Box', {'a': 'strin'})\n",
		"plain/module.star": "module()\n",
	})
	m := g.Modules["web"]
	if m.Err != nil {
		t.Fatal(m.Err)
	}
	var paths []string
	for _, f := range m.Tree.CRDs {
		paths = append(paths, f.Path)
	}
	if got := strings.Join(paths, " "); got != "web/crds/a.yaml lib/kinds.star:2" {
		t.Errorf("definitions are of %s", got)
	}
	if n := len(m.folder.CRDs); n != 1 {
		t.Errorf("the folder has %d", n)
	}
	if m := g.Modules["plain"]; m.Tree != m.folder {
		t.Error("a folder without kinds is another one")
	}
	if err := g.Modules["shop"].Err; err == nil || !strings.Contains(err.Error(), "shop/module.star:1:") || !strings.Contains(err.Error(), "did you mean string?") {
		t.Errorf("a broken one: %v", err)
	}
}
