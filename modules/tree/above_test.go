package tree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAbove(t *testing.T) {
	root := t.TempDir()
	for _, file := range []string{
		"addons/web/module.star", "addons/web/Chart.yaml", "addons/web/hooks/deep/a.star", "addons/web/charts/sub/Chart.yaml", "addons/web/charts/sub/templates/a.yaml",
		"addons/global/hooks/b.star", "addons/lib/c.star", "addons/values.yaml", "elsewhere/d.star",
		"charts/web/module.star", "charts/web/web_test.star",
	} {
		path := filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		dir, ok := Above(path)
		first, _, _ := strings.Cut(file, "/")
		if want := filepath.Join(root, first); ok != (filepath.Base(file) != "d.star") || ok && dir != want {
			t.Errorf("%s: got %s, %v", file, dir, ok)
		}
	}
}
