package lsp

import (
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/bounded"
)

// disk is a tree as an editor has it: the files of a folder, with those that are open as their buffers are. Files that
// have not changed are not read again. It serves one reader at a time.
type disk struct {
	files  fs.FS
	open   map[string][]byte // by their paths in the tree
	known  map[string]cached
	listed map[string]fs.DirEntry
}

// cached is a file as it was read.
type cached struct {
	size int64
	time time.Time
	data []byte
}

// settled is for how long a file must not have been written so that its time tells whether it is the same: the clocks
// of file systems are coarse.
const settled = 2 * time.Second

var (
	_ fs.ReadDirFS  = (*disk)(nil)
	_ fs.ReadLinkFS = (*disk)(nil)
)

// with returns the files of a folder under these buffers, and what is known of earlier reads.
func (d *disk) with(files fs.FS, open map[string][]byte) *disk {
	if d.known == nil {
		d.known = map[string]cached{}
	}
	maps.DeleteFunc(d.known, func(name string, _ cached) bool { return d.listed[name] == nil }) // it has gone
	d.files, d.open, d.listed = files, open, map[string]fs.DirEntry{}
	return d
}

// Open implements [fs.FS].
func (d *disk) Open(name string) (fs.File, error) {
	if data, ok := d.open[name]; ok {
		return tree.InMemory(path.Base(name), data), nil
	}
	entry := d.listed[name]
	if entry == nil || !entry.Type().IsRegular() {
		return d.files.Open(name)
	}
	info, err := entry.Info()
	if err != nil {
		return nil, err
	}
	if c, ok := d.known[name]; ok && c.size == info.Size() && c.time.Equal(info.ModTime()) {
		return tree.InMemory(path.Base(name), c.data), nil
	}
	data, err := fs.ReadFile(d.files, name)
	if err != nil {
		return nil, err
	}
	delete(d.known, name)
	whole := int64(len(data)) == info.Size()
	data, _ = bounded.Text(data) // as editors send it; the tree tells of UTF-16
	if whole && time.Since(info.ModTime()) > settled {
		d.known[name] = cached{info.Size(), info.ModTime(), data}
	}
	return tree.InMemory(path.Base(name), data), nil
}

// ReadDir implements [fs.ReadDirFS]. A file that is open and not on the disk yet is in a folder that is.
func (d *disk) ReadDir(name string) ([]fs.DirEntry, error) {
	list, err := fs.ReadDir(d.files, name)
	if err != nil {
		return nil, err
	}
	for file := range d.open {
		if path.Dir(file) == name && !slices.ContainsFunc(list, func(e fs.DirEntry) bool { return e.Name() == path.Base(file) }) {
			info, err := tree.InMemory(path.Base(file), d.open[file]).Stat()
			if err != nil {
				return nil, err
			}
			list = append(list, fs.FileInfoToDirEntry(info))
		}
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range list {
		d.listed[path.Join(name, e.Name())] = e
	}
	return list, nil
}

// ReadLink implements [fs.ReadLinkFS].
func (d *disk) ReadLink(name string) (string, error) { return fs.ReadLink(d.files, name) }

// Lstat implements [fs.ReadLinkFS].
func (d *disk) Lstat(name string) (fs.FileInfo, error) { return fs.Lstat(d.files, name) }
