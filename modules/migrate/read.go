package migrate

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/bounded"
	"github.com/starling-operator/starling/runtime/message"
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

// reader reads an old tree.
type reader struct {
	fsys   fs.FS
	prefix string
	out    []oldFile
	left   []Note
	seen   int // files and folders
	size   int
}

// read reads an old tree, in order of paths. Files that cannot be read, or that are too
// large, are notes.
func read(fsys fs.FS, prefix string) (out []oldFile, left []Note, err error) {
	r := &reader{fsys: fsys, prefix: prefix}
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, nil, err
	}
	var above []fs.FileInfo
	if root, err := fs.Stat(fsys, "."); err == nil {
		above = append(above, root)
	}
	err = r.folder("", entries, above)
	return r.out, r.left, err
}

func (r *reader) note(p, why string) {
	r.left = append(r.left, Note{path.Join(r.prefix, p), Left, why})
}

// folder reads what is in a folder that lies in these ones.
func (r *reader) folder(dir string, entries []fs.DirEntry, above []fs.FileInfo) error {
	for _, e := range entries {
		p := path.Join(dir, e.Name())
		if strings.HasPrefix(e.Name(), ".git") {
			continue
		}
		if r.seen++; r.seen > maxFiles {
			return fmt.Errorf("it holds more than %d files; name the folder of the modules alone", maxFiles)
		}
		info, err := fs.Stat(r.fsys, p) // of what is behind a link
		link := e.Type()&fs.ModeSymlink != 0
		switch {
		case err != nil && link:
			r.note(p, "it is a link that cannot be followed: "+message.WithoutPath(err).Error()+"; --follow-links follows those that lead out of the tree")
		case err != nil:
			r.note(p, "it cannot be read: "+message.WithoutPath(err).Error())
		case info.IsDir() && len(above) > maxDepth:
			r.note(p, fmt.Sprintf("the folder lies more than %d deep", maxDepth))
		case info.IsDir() && link && slices.ContainsFunc(above, func(a fs.FileInfo) bool { return os.SameFile(a, info) }):
			r.note(p, "it is a link to a folder in which it lies")
		case info.IsDir():
			below, err := fs.ReadDir(r.fsys, p)
			if err != nil {
				r.note(p, "it cannot be read: "+message.WithoutPath(err).Error())
				continue
			}
			if err := r.folder(p, below, append(slices.Clip(above), info)); err != nil {
				return err
			}
		default:
			if err := r.file(p, info); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *reader) file(p string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() || info.Size() > tree.MaxFileBytes {
		r.note(p, fmt.Sprintf("it is no file of at most %d MiB", tree.MaxFileBytes>>20))
		return nil
	}
	data, err := contents(r.fsys, p)
	if err != nil {
		r.note(p, "it cannot be read: "+message.WithoutPath(err).Error())
		return nil
	}
	if r.size += len(data); r.size > maxBytes {
		return fmt.Errorf("it holds more than %d MiB; name the folder of the modules alone", maxBytes>>20)
	}
	r.out = append(r.out, oldFile{p, data, info.Mode()&0o111 != 0})
	return nil
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
	if err != nil {
		return nil, err
	}
	data, _ = bounded.Text(data) // UTF-16: the tree that is made says so
	return data, nil
}
