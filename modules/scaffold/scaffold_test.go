package scaffold

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/format"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/stdlib"
)

type noLog struct{}

func (noLog) Log(builtins.Level, string, []builtins.Field) {}

// A new module or hook loads without a word, and is formatted.
func TestScaffoldsLoad(t *testing.T) {
	root := filepath.Join(t.TempDir(), "addons")
	for _, name := range []string{"020-ingress-nginx", "web"} {
		if _, err := Module(root, name); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"030-web-app", "part"} {
		if _, err := Controller(root, name); err != nil {
			t.Fatal(err)
		}
	}
	// Names that are words of the language or builtins are taken all the same.
	for module, name := range map[string]string{"ingress-nginx": "count-pods", "web": "values", "020-ingress-nginx": "for", "global": "zones"} {
		path, err := Hook(root, module, name)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(path) != name+".star" {
			t.Errorf("hook %s is in %s", name, path)
		}
	}
	read, err := tree.ReadDir(root, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g := generation.Load(t.Context(), generation.Options{Tree: read, Std: stdlib.FS, Number: 1, Log: func(string) builtins.Logger { return noLog{} }})
	for _, p := range g.Problems {
		t.Error(p)
	}
	for _, m := range append([]*generation.Module{g.Global}, g.Modules["web"], g.Modules["ingress-nginx"], g.Modules["web-app"], g.Modules["part"]) {
		if m.Err != nil {
			t.Error(m.Err)
		}
	}
	for _, id := range []string{"ingress-nginx/hooks/count-pods.star:count_pods", "web/hooks/values.star:values_hook", "ingress-nginx/hooks/for.star:for_hook", "web/hooks/nodes.star:count_nodes", "web-app/web-app", "part/part"} {
		if g.Hook(id) == nil {
			t.Errorf("there is no hook %s", id)
		}
	}
	files, err := format.Find([]string{root})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		src, formatted, err := format.File(path, false)
		if diff, _ := format.Diff(path, src, formatted); diff != "" || err != nil {
			t.Error(err, diff)
		}
	}
}

func TestNothingIsOverwritten(t *testing.T) {
	root := t.TempDir()
	if _, err := Module(root, "010-web"); err != nil {
		t.Fatal(err)
	}
	if _, err := Hook(root, "web", "a"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "global"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, fn := range map[string]func() error{
		"is there already":                     func() error { _, err := Module(root, "web"); return err },
		"web is there already":                 func() error { _, err := Controller(root, "web"); return err },
		"must begin with a letter":             func() error { _, err := Controller(root, "3d"); return err },
		"a.star is there already":              func() error { _, err := Hook(root, "web", "a"); return err },
		"there is no module wbe":               func() error { _, err := Hook(root, "wbe", "a"); return err },
		"begins with a letter":                 func() error { _, err := Hook(root, "web", "../a"); return err },
		"they are not loaded":                  func() error { _, err := Hook(root, "web", "a_test"); return err },
		"made of a-z":                          func() error { _, err := Module(root, "Web"); return err },
		"no module may be named global":        func() error { _, err := Module(root, "global"); return err },
		"no module may be in a folder":         func() error { _, err := Module(root, "lib"); return err },
		"of testdata no tests are run":         func() error { _, err := Module(root, "testdata"); return err },
		"made of a-z, 0-9 and -, with no - at": func() error { _, err := Module(root, "../x"); return err },
		"not a directory":                      func() error { _, err := Hook(root, "global", "a"); return err },
	} {
		err := fn()
		if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "\n") {
			t.Errorf("want %q, got %v", name, err)
		}
	}
}
