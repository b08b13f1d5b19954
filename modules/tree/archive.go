package tree

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/runtime/message"
)

const (
	// maxUnpacked is how much the archive of a chart may hold.
	maxUnpacked = 32 << 20
	// maxPacked is how many times as much as the files of a tree the charts of all its archives may
	// hold together.
	maxPacked = 2
)

// locked reads the lock and the archives that it names. It fails for the tree as a whole only.
func (r *reader) locked() error {
	for _, b := range r.broken {
		if b.path == LockFile {
			return fmt.Errorf("modules folder %s: %s: %w", r.o.Name, LockFile, b.err)
		}
	}
	f := r.file(LockFile)
	if f == nil {
		return nil
	}
	var err error
	if r.lock, err = ParseLock(f.Data); err != nil {
		return fmt.Errorf("modules folder %s: %w; remove it, and run starling fetch, which writes a new one", r.o.Name, err)
	}
	for _, module := range slices.Sorted(maps.Keys(r.lock)) {
		r.archive(r.lock[module])
	}
	return nil
}

// archive reads an archive. All that is wrong with it, or that it is not there, its module says.
func (r *reader) archive(l Locked) {
	p := l.Archive()
	if r.has(p) {
		return // two modules have one chart
	}
	e, err := r.archiveEntry(l)
	switch {
	case err != nil:
		r.broken = append(r.broken, brokenFile{path: p, err: err})
		return
	case e == nil || e.dir:
		return
	case r.bytes > r.o.MaxBytes: // those before it are in force perhaps
		r.bytes -= int64(len(e.data))
		r.broken = append(r.broken, brokenFile{path: p, err: fmt.Errorf("with this archive all files of the tree together have more than %s", size(r.o.MaxBytes))})
		return
	}
	r.put(p, e)
}

// archiveEntry is the archive as the tree has it, or else as the caller has; nil when neither does.
func (r *reader) archiveEntry(l Locked) (*entry, error) {
	p := l.Archive()
	info, err := fs.Stat(r.fsys, p)
	switch {
	case err == nil:
		return r.entry(p, path.Base(p), fs.FileInfoToDirEntry(info))
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("cannot read the file: %w", message.WithoutPath(err))
	case r.o.Archives == nil:
		return nil, nil
	}
	data, err := r.o.Archives(l)
	if err != nil {
		return nil, err
	}
	r.bytes += int64(len(data))
	return &entry{name: path.Base(p), data: data}, nil
}

// put adds a file, and the folders that it is in.
func (r *reader) put(p string, e *entry) {
	r.entries[p] = e
	dir := r.entries[path.Dir(p)]
	if dir == nil {
		dir = &entry{name: path.Base(path.Dir(p)), dir: true}
		r.put(path.Dir(p), dir)
	}
	at, _ := slices.BinarySearchFunc(dir.children, e.name, func(c fs.DirEntry, name string) int { return cmp.Compare(c.Name(), name) })
	dir.children = slices.Insert(dir.children, at, fs.DirEntry(e))
}

// Again is the tree with the archives that o.Archives gives by now; all other files, and the archives
// that it has, are as they were.
func (t *Tree) Again(o Options) (*Tree, error) {
	before, ok := t.Files.(*snapshot)
	if !ok {
		return nil, errors.New("the tree was not read from files")
	}
	o = o.withDefaults()
	s := &snapshot{entries: map[string]*entry{}, problems: before.problems, packed: maxPacked * o.MaxBytes}
	r := &reader{snapshot: s, fsys: before, o: o}
	for p, e := range before.entries {
		if p != path.Dir(ChartsDir) && !inside(p, ChartsDir) {
			s.entries[p] = e
			r.bytes += int64(len(e.data))
		}
	}
	root := *before.entries["."]
	root.children = slices.DeleteFunc(slices.Clone(root.children), func(e fs.DirEntry) bool { return e.Name() == path.Dir(ChartsDir) })
	s.entries["."] = &root
	for _, b := range before.broken {
		if !inside(b.path, ChartsDir) {
			s.broken = append(s.broken, b)
		}
	}
	if err := r.locked(); err != nil {
		return nil, err
	}
	return ofFiles(s, o)
}

// readArchive gives a module the chart that the lock names.
func readArchive(s *snapshot, m *Module) {
	l := *m.Locked
	m.Chart = &Chart{Name: path.Base(l.URL), Archive: l.Archive(), Values: m.Values, ValuesFile: m.ValuesFile}
	f := s.file(l.Archive())
	for _, b := range s.broken {
		if f == nil && b.path == l.Archive() {
			m.fail(b.path, b.err)
			return
		}
	}
	if f == nil {
		m.fail(LockFile, fmt.Errorf("%s of %s is not in %s: run starling fetch, which gets it", l.File(), l.URL, ChartsDir))
		return
	}
	if sum := sha256.Sum256(f.Data); "sha256:"+hex.EncodeToString(sum[:]) != l.Digest {
		m.fail(f.Path, fmt.Errorf("it holds other bytes than %s says, sha256:%x: run starling fetch, which gets it again", LockFile, sum))
		return
	}
	if err := unpack(f.Data, m, &s.packed); err != nil {
		m.fail(f.Path, fmt.Errorf("%s: %w", l.File(), err))
	}
}

// unpack fills in what the archive of a module's chart holds, and takes its size from what is left
// for those after it. The author's .helmignore has done its work when the archive was made.
func unpack(data []byte, m *Module, left *int64) error {
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("this is no archive of a chart: %w", err)
	}
	// First its size: Helm's loader keeps all that it unpacks.
	switch n, err := io.Copy(io.Discard, io.LimitReader(zip, maxUnpacked+1)); {
	case err != nil:
		return fmt.Errorf("this is no archive of a chart: %w", err)
	case n > maxUnpacked:
		return fmt.Errorf("it holds more than %s", size(maxUnpacked))
	case n > *left:
		return errors.New("with this one the charts of all archives together hold too much: see the limits of a module tree")
	default:
		*left -= n
	}
	files, err := helm.Unpack(data)
	if err != nil {
		return fmt.Errorf("this is no archive of a chart: %w", err)
	}
	for _, f := range files {
		if strings.HasPrefix(f.Path, "crds/") { // applied by us, before the chart
			if isCRDFile(f.Path, false) {
				m.CRDs = append(m.CRDs, File{Path: m.Locked.File() + "/" + f.Path, Data: f.Data})
			}
			continue
		}
		m.Chart.Files = append(m.Chart.Files, f)
		switch name := m.Locked.File() + "/" + f.Path; f.Path {
		case "Chart.yaml":
			if m.Chart.Name, m.Chart.Version, err = chartName(&File{Path: name, Data: f.Data}); err != nil {
				return err
			}
		case "values.yaml":
			if m.ChartValues, err = ParseValues(name, f.Data); err != nil {
				return err
			}
			m.ChartValuesFile = name
		}
	}
	slices.SortStableFunc(m.Chart.Files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	if !slices.ContainsFunc(m.Chart.Files, func(f File) bool { return f.Path == "Chart.yaml" }) {
		return errors.New("it holds no Chart.yaml")
	}
	m.Chart.Digest = chartDigest(m.Chart.Files)
	return nil
}

// chartDigest is the SHA-256, in hex, of all paths and contents.
func chartDigest(files []File) string {
	h := sha256.New()
	for _, f := range files {
		hashFile(h, f.Path, f.Data)
	}
	return hex.EncodeToString(h.Sum(nil))
}
