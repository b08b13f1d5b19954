package scaffold

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/starling-operator/starling/examples/recipes"
	"github.com/starling-operator/starling/runtime/message"
)

// Recipe copies a recipe to a new module of its name below root, with its tests. It returns the paths of the
// files. A module that is there is an error.
func Recipe(root, name string) (made []string, err error) {
	if names := recipes.Names(); !slices.Contains(names, name) {
		return nil, fmt.Errorf("there is no recipe %q; %s", name, message.DidYouMean(name, names, about(name, names)))
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
		if err := WriteNew(to, text); err != nil {
			return err
		}
		made = append(made, to)
		return nil
	})
	return made, err
}

// about names the recipes that have a word, or all.
func about(word string, names []string) string {
	var with []string
	for _, name := range names {
		r, err := recipes.Read(name)
		text := r.Title + r.Problem + r.Solution + r.Module
		for _, hook := range r.Hooks {
			text += hook.Text
		}
		if err == nil && len(word) > 2 && strings.Contains(strings.ToLower(text), strings.ToLower(word)) {
			with = append(with, name)
		}
	}
	if len(with) > 0 {
		return "those with this word: " + strings.Join(with, ", ")
	}
	return "there are " + strings.Join(names, ", ")
}

// WriteNew writes a file that is not there yet, and its folder.
func WriteNew(to string, text []byte) error {
	err := os.MkdirAll(filepath.Dir(to), 0o755)
	if err == nil {
		var f *os.File
		if f, err = os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644); err == nil {
			_, err = f.Write(text)
			err = errors.Join(err, f.Close())
		}
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s is there already", to)
	case err != nil:
		return fmt.Errorf("cannot write %s: %w", to, message.WithoutPath(err))
	}
	return nil
}
