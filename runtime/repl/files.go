package repl

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/starling-operator/starling/runtime/bounded"
)

// Files finds files that people name.
type Files struct {
	// Tree is the folder of the module tree; Std the standard library.
	Tree string
	Std  fs.FS
}

// maxFile bounds a file of :apply.
const maxFile = 64 << 20

func (f Files) read(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("cannot %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("it is larger than %d MiB", maxFile>>20)
	}
	if err == nil {
		data, err = bounded.Text(data)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return data, nil
}

// star finds a .star file: of the library ("@std//k8s.star"), of the tree ("//web/lib/x.star"),
// or by the path that it has outside, for files of the tree, too.
func (f Files) star(name string) (files fs.FS, path string, err error) {
	if !strings.HasSuffix(name, ".star") {
		return nil, "", fmt.Errorf("%s is no .star file", name)
	}
	tree, err := filepath.Abs(f.Tree)
	if err != nil {
		return nil, "", err
	}
	if strings.HasPrefix(name, "@std//") {
		return os.DirFS(tree), name, nil
	}
	file := filepath.Join(tree, filepath.FromSlash(strings.TrimPrefix(name, "//")))
	if !strings.HasPrefix(name, "//") {
		if file, err = filepath.Abs(name); err != nil {
			return nil, "", err
		}
	}
	if _, err := os.Stat(file); err != nil {
		return nil, "", fmt.Errorf("%s: there is no such file", name)
	}
	if rel, err := filepath.Rel(tree, file); err == nil && filepath.IsLocal(rel) {
		return os.DirFS(tree), filepath.ToSlash(rel), nil
	}
	return os.DirFS(filepath.Dir(file)), filepath.Base(file), nil
}

// list returns what a path may go on as: files that end in one of the endings, folders
// with a slash.
func (f Files) list(begun string, endings ...string) []string {
	dir, prefix := filepath.Split(begun)
	where := dir
	if rest, ok := strings.CutPrefix(dir, "//"); ok {
		where = filepath.Join(f.Tree, rest)
	}
	where = cmp.Or(where, ".")
	const most = 1000
	d, err := os.Open(where)
	if err != nil {
		return nil
	}
	defer d.Close()
	entries, err := d.ReadDir(most)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	var out []string
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, prefix) || strings.HasPrefix(name, ".") && prefix == "" {
			continue
		}
		if e.IsDir() {
			out = append(out, dir+name+"/")
			continue
		}
		for _, ending := range endings {
			if strings.HasSuffix(name, ending) {
				out = append(out, dir+name)
			}
		}
	}
	return out
}
