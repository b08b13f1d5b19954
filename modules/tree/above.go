package tree

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Above returns the folder of the module tree that a file on the disk belongs to: the one above the module, above
// global/ or above lib/ that holds it, or the one that it lies in. ok is false for a file in no tree.
func Above(file string) (dir string, ok bool) {
	full, err := filepath.Abs(file)
	if err != nil {
		return "", false
	}
	for dir := filepath.Dir(full); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		above, base := filepath.Dir(dir), filepath.Base(dir)
		switch {
		case filepath.Base(above) == "charts" && isChart(filepath.Dir(above)): // a chart in a chart
		case base == "global", IsModule(dir), base == "lib" && IsTree(above):
			return above, true
		}
	}
	dir = filepath.Dir(full)
	return dir, IsTree(dir)
}

// isChart reports whether a folder on the disk is a chart.
func isChart(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "Chart.yaml"))
	return err == nil
}

// IsModule reports whether a folder on the disk is one of a module: with a module.star, a chart, or .star files in
// hooks/.
func IsModule(dir string) bool {
	for _, name := range []string{"module.star", "Chart.yaml", "templates", "chart/Chart.yaml", "chart/templates"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	found := false
	_ = filepath.WalkDir(filepath.Join(dir, "hooks"), func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(p, ".star") && !strings.HasSuffix(p, "_test.star") {
			found = true
			return fs.SkipAll
		}
		return err
	})
	return found
}

// IsTree reports whether a folder on the disk is a module tree.
func IsTree(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return e.IsDir() && (e.Name() == "global" || IsModule(filepath.Join(dir, e.Name())))
	})
}
