package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// testRoot is a module tree, or a folder of libraries, with the test files in it that
// were asked for.
type testRoot struct {
	dir   string
	files []string // by their paths in the tree
	// folders are those in the tree that were asked for: "." for all of it.
	folders []string
}

// covers says whether a file of the tree is in a folder that was asked for.
func (r testRoot) covers(file string) bool {
	return slices.ContainsFunc(r.folders, func(dir string) bool { return dir == "." || strings.HasPrefix(file, dir+"/") })
}

func (r testRoot) has(file string) bool { return slices.Contains(r.files, file) }

// testRoots finds the test files, and the trees that they belong to. As with Go,
// folders named testdata, or with a name that begins with . or _, are not looked into.
func testRoots(args []string) ([]testRoot, error) {
	if len(args) == 0 {
		args = []string{"./..."}
	}
	var out []testRoot
	for _, arg := range args {
		dir, all := strings.CutSuffix(filepath.ToSlash(arg), "/...")
		info, err := os.Stat(dir)
		if err != nil {
			return nil, fmt.Errorf("%s: there is no such file or folder", arg)
		}
		if !info.IsDir() && !all {
			if !strings.HasSuffix(arg, "_test.star") {
				return nil, fmt.Errorf("%s: test files end in _test.star", arg)
			}
			if out, err = addTest(out, arg, ""); err != nil {
				return nil, err
			}
			continue
		}
		err = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && p != dir && (d.Name() == "testdata" || strings.ContainsAny(d.Name()[:1], "._")):
				return filepath.SkipDir
			case !d.IsDir() && strings.HasSuffix(p, "_test.star"):
				out, err = addTest(out, p, dir)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// addTest adds a test file to the tree that it belongs to. It was asked for with this
// folder; "": by its name, and so with that of its module.
func addTest(roots []testRoot, file, folder string) ([]testRoot, error) {
	dir, err := treeOf(file)
	if err != nil {
		return nil, err
	}
	rel, err := below(dir, file)
	if err != nil {
		return nil, err
	}
	asked, _, _ := strings.Cut(filepath.ToSlash(filepath.Dir(rel)), "/")
	if folder != "" {
		if asked, err = below(dir, folder); err != nil {
			return nil, err
		}
		if asked == ".." || strings.HasPrefix(asked, "../") {
			asked = "."
		}
	}
	i := slices.IndexFunc(roots, func(r testRoot) bool { return r.dir == dir })
	if i < 0 {
		i, roots = len(roots), append(roots, testRoot{dir: dir})
	}
	r := &roots[i]
	if !r.has(rel) {
		r.files = append(r.files, rel)
	}
	if !slices.Contains(r.folders, asked) {
		r.folders = append(r.folders, asked)
	}
	return roots, nil
}

// below is the path of a file in a folder.
func below(dir, file string) (string, error) {
	from, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	to, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(from, to)
	return filepath.ToSlash(rel), err
}

// treeOf is the tree that a test file belongs to: the folder above the module, above
// global/ or above lib/ that holds it; for the test of a library that is in no
// tree its own folder.
func treeOf(file string) (string, error) {
	full, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	up := filepath.Dir(file)
	for dir := filepath.Dir(full); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		up = filepath.Join(up, "..")
		base := filepath.Base(dir)
		if base == "global" || isModule(dir) || base == "lib" && isTree(filepath.Dir(dir)) {
			return up, nil
		}
	}
	return filepath.Dir(file), nil
}

// isModule reports whether a folder is one of a module: with a module.star, a chart, or
// .star files in hooks/.
func isModule(dir string) bool {
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

// isTree reports whether a folder is a module tree.
func isTree(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return e.IsDir() && (e.Name() == "global" || isModule(filepath.Join(dir, e.Name())))
	})
}
