package tree

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/starling-operator/starling/runtime/bounded"
	"github.com/starling-operator/starling/runtime/message"
)

// snapshot is all files of a tree, in memory. It is an fs.FS whose files have no
// times and no owners, so that equal trees are equal.
type snapshot struct {
	entries  map[string]*entry // by path; "." is the root
	broken   []brokenFile      // what could not be read, by path
	problems []Problem
	lock     map[string]Locked // by module
	packed   int64             // how many bytes more the charts of archives may hold
}

// brokenFile is a file or folder that cannot be read. link: it is a link, so nobody
// knows what it would be.
type brokenFile struct {
	path string
	err  error
	link bool
}

// entry is a file or folder, and its own fs.DirEntry and fs.FileInfo.
type entry struct {
	name     string
	dir      bool
	data     []byte
	children []fs.DirEntry // of a folder, by name
}

// reader fills a snapshot.
type reader struct {
	*snapshot
	fsys  fs.FS
	o     Options
	files int // of the module that is read, or at the root
	bytes int64
}

func takeSnapshot(fsys fs.FS, o Options) (*snapshot, error) {
	s := &snapshot{entries: map[string]*entry{".": {name: ".", dir: true}}, packed: maxPacked * o.MaxBytes}
	r := &reader{snapshot: s, fsys: fsys, o: o}
	if err := r.dir(".", 0); err != nil {
		return nil, err
	}
	if o.Unlocked {
		return s, nil
	}
	return s, r.locked()
}

// dir reads the folder p. It fails for the tree as a whole only.
func (r *reader) dir(p string, depth int) error {
	list, err := fs.ReadDir(r.fsys, p)
	if err != nil {
		if p == "." {
			return fmt.Errorf("cannot read the modules folder %s: %w", r.o.Name, message.WithoutPath(err))
		}
		r.broken = append(r.broken, brokenFile{path: p, err: fmt.Errorf("cannot read the folder: %w", message.WithoutPath(err))})
		return nil
	}
	self := r.entries[p]
	for _, d := range list {
		name := d.Name()
		if skipped(name, p) {
			continue
		}
		child := path.Join(p, name)
		e, err := r.entry(child, name, d)
		if err != nil {
			r.broken = append(r.broken, brokenFile{child, err, d.Type()&fs.ModeSymlink != 0})
			continue
		}
		if e == nil {
			continue
		}
		r.files++
		switch {
		case p == "." && r.files > r.o.MaxModules:
			return fmt.Errorf("modules folder %s: more than %d files and folders beside each other, at %s: is this the right folder?", r.o.Name, r.o.MaxModules, child)
		case p != "." && r.files > r.o.MaxFiles:
			return tooManyFiles{fmt.Errorf("the folder has more than %d files and folders, at %s: does it hold what is no part of a module?", r.o.MaxFiles, child)}
		}
		if r.bytes > r.o.MaxBytes {
			return fmt.Errorf("modules folder %s: more than %s in all files, at %s: is this the right folder?", r.o.Name, size(r.o.MaxBytes), child)
		}
		self.children = append(self.children, e)
		r.entries[child] = e
		if e.dir {
			if depth+1 > r.o.MaxDepth {
				return fmt.Errorf("modules folder %s: folders lie more than %d deep, at %s: is there a link to a folder above?", r.o.Name, r.o.MaxDepth, child)
			}
			if err := r.below(child, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// tooManyFiles is the error of one module.
type tooManyFiles struct{ error }

// below reads a folder of a folder. One at the root counts for itself: it is a module.
func (r *reader) below(p string, depth int) error {
	if depth > 1 {
		return r.dir(p, depth)
	}
	before := r.files
	r.files = 0
	err := r.dir(p, depth)
	r.files = before
	if many := (tooManyFiles{}); errors.As(err, &many) {
		r.broken = append(r.broken, brokenFile{path: p, err: many.error})
		return nil
	}
	return err
}

// skipped reports what no tree has: hidden names (..data of a ConfigMap volume,
// .git), but for Helm's .helmignore; and at the root those that begin with _. Archives of
// charts are read apart, by the lock.
func skipped(name, dir string) bool {
	if dir == "." && strings.HasPrefix(name, "_") {
		return true
	}
	return strings.HasPrefix(name, ".") && name != ".helmignore"
}

// entry reads one file, or looks at one folder; nil for what is neither.
func (r *reader) entry(p, name string, d fs.DirEntry) (*entry, error) {
	mode := d.Type()
	if mode&fs.ModeSymlink != 0 {
		info, err := fs.Stat(r.fsys, p)
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil, errors.New("the link leads nowhere")
			}
			return nil, fmt.Errorf("cannot follow the link: %w%s", message.WithoutPath(err), r.out(p))
		}
		mode = info.Mode().Type()
		if mode.IsDir() && r.leadsUp(p) {
			r.problems = append(r.problems, Problem{Path: p, Msg: "the link leads to a folder above it and is ignored"})
			return nil, nil
		}
	}
	switch {
	case mode.IsDir():
		return &entry{name: name, dir: true}, nil
	case !mode.IsRegular():
		return nil, nil
	}
	f, err := r.fsys.Open(p)
	if err != nil {
		return nil, fmt.Errorf("cannot read the file: %w", message.WithoutPath(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, r.o.MaxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read the file: %w", message.WithoutPath(err))
	}
	if int64(len(data)) > r.o.MaxFileBytes {
		return nil, fmt.Errorf("the file is larger than %s", size(r.o.MaxFileBytes))
	}
	r.bytes += int64(len(data))
	// Of all other files nobody knows whether they are texts.
	if data, err = bounded.Text(data); err != nil && slices.Contains(texts, path.Ext(name)) {
		return nil, fmt.Errorf("the file %w", err)
	}
	return &entry{name: name, data: data}, nil
}

// texts are how the names of files end that we, or Helm, read as texts.
var texts = []string{".yaml", ".yml", ".star", ".tpl", ".json", ".txt", ".helmignore"}

// out says what to do about a link that leads out of the folder; "" for other links.
func (r *reader) out(p string) string {
	target, err := fs.ReadLink(r.fsys, p)
	if err != nil || r.o.FollowLinks || !path.IsAbs(target) && fs.ValidPath(path.Join(path.Dir(p), target)) {
		return ""
	}
	return "; --follow-links follows links that lead out of the folder"
}

// leadsUp reports whether the link at p leads to a folder that holds it.
func (r *reader) leadsUp(p string) bool {
	target, err := fs.ReadLink(r.fsys, p)
	if err != nil || path.IsAbs(target) {
		return false // the depth is limited anyway
	}
	target = path.Join(path.Dir(p), target)
	return target == "." || p == target || strings.HasPrefix(p, target+"/")
}

func size(n int64) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}

// has reports whether there is a file of this path.
func (s *snapshot) has(p string) bool {
	e := s.entries[p]
	return e != nil && !e.dir
}

func (s *snapshot) hasDir(p string) bool {
	e := s.entries[p]
	return e != nil && e.dir
}

// children returns what is in a folder, by name; nothing when there is none.
func (s *snapshot) children(p string) []fs.DirEntry {
	if e := s.entries[p]; e != nil {
		return e.children
	}
	return nil
}

// file returns a file; nil when there is none.
func (s *snapshot) file(p string) *File {
	if !s.has(p) {
		return nil
	}
	return &File{Path: p, Data: s.entries[p].data}
}

// below returns the paths of all files below a folder that keep accepts, sorted.
// Folders that keep does not accept are left out with all they hold.
func (s *snapshot) below(dir string, keep func(p string, dir bool) bool) []string {
	var out []string
	for _, c := range s.children(dir) {
		p := path.Join(dir, c.Name())
		switch {
		case !keep(p, c.IsDir()):
		case c.IsDir():
			out = append(out, s.below(p, keep)...)
		default:
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out
}

// Mentions reports whether a text stands in a file of the tree. Archives are not looked into.
func (t *Tree) Mentions(text string) bool {
	s, ok := t.Files.(*snapshot)
	if !ok {
		return false
	}
	for _, e := range s.entries {
		if bytes.Contains(e.data, []byte(text)) {
			return true
		}
	}
	return false
}

func (s *snapshot) digest() string {
	var all []string
	for p, e := range s.entries {
		if !e.dir {
			all = append(all, p)
		}
	}
	slices.Sort(all)
	h := sha256.New()
	for _, p := range all {
		hashFile(h, p, s.entries[p].data)
	}
	for _, b := range s.broken {
		hashFile(h, b.path, []byte(b.err.Error()))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// hashFile writes path and data so that no two lists of files give equal bytes.
func hashFile(h hash.Hash, path string, data []byte) {
	fmt.Fprintf(h, "%d:%s%d:", len(path), path, len(data))
	h.Write(data)
}

func (s *snapshot) Open(name string) (fs.File, error) {
	e := s.entries[name]
	if e == nil || !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return opened(e), nil
}

// InMemory is an open file of a name that holds these bytes.
func InMemory(name string, data []byte) fs.File { return opened(&entry{name: name, data: data}) }

func opened(e *entry) fs.File { return &openFile{entry: e, Reader: bytes.NewReader(e.data)} }

// openFile is an open entry.
type openFile struct {
	*bytes.Reader
	entry *entry
	next  int // of the children, for ReadDir
}

func (f *openFile) Stat() (fs.FileInfo, error) { return f.entry, nil }
func (f *openFile) Close() error               { return nil }

// ReadDir is fs.ReadDirFile's.
func (f *openFile) ReadDir(n int) ([]fs.DirEntry, error) {
	if !f.entry.dir {
		return nil, &fs.PathError{Op: "readdir", Path: f.entry.name, Err: errors.New("not a folder")}
	}
	rest := f.entry.children[f.next:]
	if n > 0 {
		if len(rest) == 0 {
			return nil, io.EOF
		}
		rest = rest[:min(n, len(rest))]
	}
	f.next += len(rest)
	return slices.Clone(rest), nil
}

func (e *entry) Name() string               { return e.name }
func (e *entry) IsDir() bool                { return e.dir }
func (e *entry) Type() fs.FileMode          { return e.Mode().Type() }
func (e *entry) Info() (fs.FileInfo, error) { return e, nil }
func (e *entry) Size() int64                { return int64(len(e.data)) }
func (e *entry) ModTime() time.Time         { return time.Time{} }
func (e *entry) Sys() any                   { return nil }

func (e *entry) Mode() fs.FileMode {
	if e.dir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}
