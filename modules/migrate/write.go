package migrate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/starling-operator/starling/runtime/message"
)

// Write writes a new tree to a folder, which is made when it is missing, and must be empty.
// It returns the paths of the files.
func Write(dir string, r *Result) (made []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot write to %s: %w", dir, message.WithoutPath(err))
	}
	if len(entries) > 0 {
		return nil, fmt.Errorf("%s is not empty; name a new folder with --modules", dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot make %s: %w", dir, message.WithoutPath(err))
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot write to %s: %w", dir, message.WithoutPath(err))
	}
	defer root.Close()
	for _, f := range r.Files {
		to := filepath.Join(dir, filepath.FromSlash(f.Path))
		if folder := path.Dir(f.Path); folder != "." {
			if err := root.MkdirAll(folder, 0o755); err != nil {
				return made, fmt.Errorf("cannot write %s: %w", to, message.WithoutPath(err))
			}
		}
		if err := writeNew(root, f.Path, f.Data); err != nil {
			return made, fmt.Errorf("cannot write %s: %w", to, message.WithoutPath(err))
		}
		made = append(made, to)
	}
	return made, nil
}

// writeNew writes a file that must not be there.
func writeNew(root *os.Root, name string, data []byte) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
