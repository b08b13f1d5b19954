package migrate

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/starling-operator/starling/modules/tree"
)

const (
	// maxFiles and maxBytes bound an old tree: Starling reads no larger one.
	maxFiles = 20_000
	maxBytes = 64 << 20
	// maxDepth is how deep its folders may lie in each other; the new tree has one more.
	maxDepth = 30
)

// oldFile is one file of an old tree.
type oldFile struct {
	path       string
	data       []byte
	executable bool
}

// read reads an old tree, in order of paths. Files that cannot be read, or that are too
// large, are notes.
func read(fsys fs.FS, prefix string) (out []oldFile, left []Note, err error) {
	size := 0
	err = fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		note := func(why string) { left = append(left, Note{path.Join(prefix, p), Left, why}) }
		switch {
		case err != nil && p == ".":
			return err
		case err != nil:
			note("it cannot be read: " + reason(err).Error())
			return nil
		case d.IsDir() && p != "." && strings.HasPrefix(path.Base(p), ".git"):
			return fs.SkipDir
		case d.IsDir() && strings.Count(p, "/") >= maxDepth:
			note(fmt.Sprintf("the folder lies more than %d deep", maxDepth))
			return fs.SkipDir
		case d.IsDir():
			return nil
		case strings.HasPrefix(path.Base(p), ".git"):
			return nil
		case len(out) >= maxFiles:
			return fmt.Errorf("it holds more than %d files; name the folder of the modules alone", maxFiles)
		}
		info, err := fs.Stat(fsys, p) // of the file behind a link
		switch {
		case err != nil:
			note("it cannot be read: " + reason(err).Error() + "; links that lead out of the tree are not followed")
			return nil
		case info.IsDir():
			note("it is a link to a folder: copy the folder, and begin again")
			return nil
		case !info.Mode().IsRegular() || info.Size() > tree.MaxFileBytes:
			note(fmt.Sprintf("it is no file of at most %d MiB", tree.MaxFileBytes>>20))
			return nil
		}
		data, err := contents(fsys, p)
		if err != nil {
			note("it cannot be read: " + reason(err).Error())
			return nil
		}
		if size += len(data); size > maxBytes {
			return fmt.Errorf("it holds more than %d MiB; name the folder of the modules alone", maxBytes>>20)
		}
		out = append(out, oldFile{p, data, info.Mode()&0o111 != 0})
		return nil
	})
	return out, left, err
}

// contents reads a file that may grow meanwhile.
func contents(fsys fs.FS, p string) ([]byte, error) {
	f, err := fsys.Open(p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, tree.MaxFileBytes+1))
	if err == nil && len(data) > tree.MaxFileBytes {
		err = fmt.Errorf("it is larger than %d MiB", tree.MaxFileBytes>>20)
	}
	return data, err
}

// reason leaves out what an error of the file system says besides why.
func reason(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
