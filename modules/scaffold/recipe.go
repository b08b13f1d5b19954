package scaffold

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/starling-operator/starling/examples/recipes"
	"github.com/starling-operator/starling/runtime/message"
)

// Recipe copies a recipe to a new module of its name below root, with its tests. It returns the paths of the
// files. A module that is there is an error.
func Recipe(root, name string) (made []string, err error) {
	if names := recipes.Names(); !slices.Contains(names, name) {
		return nil, fmt.Errorf("there is no recipe %q; %s", name, message.DidYouMean(name, names, "starling new recipe --help lists them"))
	}
	if _, err := newModule(root, name); err != nil {
		return nil, err
	}
	err = fs.WalkDir(recipes.FS, name, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(recipes.FS, path)
		if err != nil {
			return err
		}
		to := filepath.Join(root, filepath.FromSlash(path))
		if err := writeNew(to, text); err != nil {
			return err
		}
		made = append(made, to)
		return nil
	})
	return made, err
}

// writeNew writes a file that is not there yet, and its folder.
func writeNew(to string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return fmt.Errorf("cannot write %s: %w", to, reason(err))
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if os.IsExist(err) {
		return fmt.Errorf("%s is there already", to)
	}
	if err == nil {
		_, err = f.Write(text)
		if closed := f.Close(); err == nil {
			err = closed
		}
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", to, reason(err))
	}
	return nil
}
