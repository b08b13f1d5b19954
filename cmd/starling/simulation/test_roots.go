package simulation

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/starling-operator/starling/cmd/starling/command"
	"github.com/starling-operator/starling/modules/tree"
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
			return nil, command.WithNearFolder(dir, fmt.Errorf("%s: there is no such file or folder", arg))
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
		// With a / at its end the folder may be a link.
		err = filepath.WalkDir(strings.TrimRight(dir, "/")+"/", func(p string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && filepath.Clean(p) != filepath.Clean(dir) && (d.Name() == "testdata" || strings.ContainsAny(d.Name()[:1], "._")):
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

// treeOf is the tree that a test file belongs to, as seen from here; for the test of a library that is in no tree
// its own folder.
func treeOf(file string) (string, error) {
	dir, ok := tree.Above(file)
	switch {
	case !ok:
		return filepath.Dir(file), nil
	case filepath.IsAbs(file):
		return dir, nil
	}
	here, err := filepath.Abs(".")
	if err != nil {
		return "", err
	}
	return filepath.Rel(here, dir)
}
