package record

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// MaxRuns and MaxBytes are how much a store keeps unless it is told otherwise.
	MaxRuns  = 1000
	MaxBytes = 64 << 20
	// maxRunBytes bounds what one run may add.
	maxRunBytes = 16 << 20

	runSuffix  = ".run"
	partSuffix = ".part"
	tempPrefix = ".new-"
	// block is what a file takes on a disk at least.
	block = 4 << 10
)

// StoreOptions configures [OpenStore]. Dir and Key are required.
type StoreOptions struct {
	// Dir is the folder of the records; it is made when it is not there.
	Dir string
	Key *Key
	// Process is what the ids of runs begin with (see [Process]), Version that of the
	// binary.
	Process, Version string
	// MaxRuns and MaxBytes bound what is kept; 0 means [MaxRuns], [MaxBytes].
	MaxRuns  int
	MaxBytes int64
}

// Store keeps runs in a folder. One process writes to it, from one goroutine; any
// number may read, with [List] and [Load].
type Store struct {
	o          StoreOptions
	key        *Key
	compressor compressor
	pack       *packer
	runs       []*stored // oldest first
	parts      map[Name]*storedPart
	bytes      int64
}

// stored is a run on disk.
type stored struct {
	id, hook string
	failed   bool
	started  time.Time
	size     int64
	refs     []Name
}

// storedPart is a part on disk.
type storedPart struct {
	size int64
	used int // by how many runs and parts
	list bool
}

// OpenStore takes over a folder of records: it removes what is half-written, broken, of
// another version or sealed with another key, and parts that nobody uses.
func OpenStore(o StoreOptions) (*Store, error) {
	o.MaxRuns = cmp.Or(o.MaxRuns, MaxRuns)
	o.MaxBytes = cmp.Or(o.MaxBytes, MaxBytes)
	s := &Store{o: o, key: o.Key, parts: map[Name]*storedPart{}}
	s.pack = &packer{store: s, sources: map[string]source{}, lists: map[string]*list{}}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the folder of records: %w", err)
	}
	files, err := os.ReadDir(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read the folder of records: %w", err)
	}
	var runs []string
	refs := map[Name][]Name{}
	for _, f := range files {
		name := f.Name()
		switch {
		case strings.HasPrefix(name, tempPrefix):
			s.remove(name)
		case strings.HasSuffix(name, partSuffix):
			s.findPart(name, refs)
		case strings.HasSuffix(name, runSuffix):
			runs = append(runs, name)
		}
	}
	for _, of := range refs {
		for _, r := range of {
			if p := s.parts[r]; p != nil {
				p.used++
			}
		}
	}
	for _, name := range runs {
		s.findRun(name)
	}
	slices.SortStableFunc(s.runs, func(a, b *stored) int { return cmp.Or(a.started.Compare(b.started), strings.Compare(a.id, b.id)) })
	for name := range s.parts {
		s.sweep(name)
	}
	s.evict()
	return s, nil
}

// Put keeps a run, and makes room for it. A run of which nothing could be kept leaves
// nothing behind.
func (s *Store) Put(t *Trace) error { return s.pack.put(t) }

func (s *Store) findPart(file string, refs map[Name][]Name) {
	name, ok := parseName(strings.TrimSuffix(file, partSuffix))
	p, err := readFile(s.path(file), parsePart)
	if err != nil || !ok {
		s.remove(file)
		return
	}
	s.parts[name] = &storedPart{size: sizeOf(p.size()), list: len(p.refs) > 0}
	s.bytes += sizeOf(p.size())
	refs[name] = p.refs
}

func (s *Store) findRun(file string) {
	p, err := readFile(s.path(file), parseRun)
	if err != nil || p.header.ID+runSuffix != file || p.header.SealedWith != s.key.ID() ||
		slices.ContainsFunc(p.refs, func(r Name) bool { return s.parts[r] == nil }) {
		s.remove(file)
		return
	}
	s.take(p.header, p.refs, sizeOf(p.size()))
}

// take notes a run that is on disk.
func (s *Store) take(h Header, refs []Name, size int64) {
	for _, r := range refs {
		s.parts[r].used++
	}
	s.runs = append(s.runs, &stored{h.ID, h.Hook, h.Failed(), h.Started, size, refs})
	s.bytes += size
}

// evict makes room: the oldest runs go first, but of each hook the last one, and the
// last that failed, stay as long as there is anything else.
func (s *Store) evict() {
	for len(s.runs) > 1 && (len(s.runs) > s.o.MaxRuns || s.bytes > s.o.MaxBytes) {
		i := s.victim()
		gone := s.runs[i]
		s.runs = slices.Delete(s.runs, i, i+1)
		s.remove(gone.id + runSuffix)
		s.bytes -= gone.size
		s.release(gone.refs)
	}
}

func (s *Store) victim() int {
	for i, r := range s.runs {
		for _, later := range s.runs[i+1:] {
			if later.hook == r.hook && (later.failed || !r.failed) {
				return i
			}
		}
	}
	return 0
}

func (s *Store) release(refs []Name) {
	for _, r := range refs {
		if p := s.parts[r]; p != nil {
			p.used--
			s.sweep(r)
		}
	}
}

// sweep removes a part that nobody uses.
func (s *Store) sweep(name Name) {
	p := s.parts[name]
	if p == nil || p.used > 0 {
		return
	}
	var refs []Name
	if p.list {
		if list, err := readFile(s.path(name.String()+partSuffix), parsePart); err == nil {
			refs = list.refs
		}
	}
	delete(s.parts, name)
	s.bytes -= p.size
	s.remove(name.String() + partSuffix)
	s.release(refs)
}

// remove deletes a file. One that stays is found again at the next start.
func (s *Store) remove(file string) { _ = os.Remove(s.path(file)) }

func (s *Store) path(file string) string { return filepath.Join(s.o.Dir, file) }

// write puts a file in its place, whole or not at all.
func (s *Store) write(file string, data []byte) error {
	temp := s.path(tempPrefix + file)
	err := os.WriteFile(temp, data, 0o600)
	if err == nil {
		err = os.Rename(temp, s.path(file))
	}
	if err != nil {
		_ = os.Remove(temp)
	}
	return err
}

// tx puts one run into a store. Parts that it has made go again when the run is not
// kept after all.
type tx struct {
	s    *Store
	refs []Name
	made []Name
	size int64
}

func (s *Store) begin() *tx { return &tx{s: s} }

// use has the run use a part that is there; false when it is not.
func (t *tx) use(name Name) bool {
	if t.s.parts[name] == nil {
		return false
	}
	if !slices.Contains(t.refs, name) {
		t.refs = append(t.refs, name)
	}
	return true
}

// part keeps data, which uses other parts, under its name.
func (t *tx) part(plain []byte, refs []Name) (Name, error) {
	name := t.s.key.nameOf(plain, refs)
	if t.use(name) {
		return name, nil
	}
	data, err := file(t.s.key, &t.s.compressor, partHead(), refs, plain)
	if err != nil {
		return name, err
	}
	if t.size += int64(len(data)); t.size > maxRunBytes {
		return name, errLarge
	}
	if err := t.s.write(name.String()+partSuffix, data); err != nil {
		return name, err
	}
	for _, r := range refs {
		t.s.parts[r].used++
		// The list uses it now, not the run.
		if i := slices.Index(t.refs, r); i >= 0 {
			t.refs = slices.Delete(t.refs, i, i+1)
		}
	}
	t.s.parts[name] = &storedPart{size: sizeOf(len(data)), list: len(refs) > 0}
	t.s.bytes += sizeOf(len(data))
	t.made = append(t.made, name)
	t.refs = append(t.refs, name)
	return name, nil
}

// commit keeps the run.
func (t *tx) commit(h Header, plain []byte) error {
	h.Error = "" // it is among what is sealed
	data, err := runFile(t.s.key, &t.s.compressor, h, t.refs, plain)
	if err != nil {
		return err
	}
	if err := t.s.write(h.ID+runSuffix, data); err != nil {
		return err
	}
	t.s.take(h, t.refs, sizeOf(len(data)))
	t.s.evict()
	return nil
}

// end removes what a run has made that is not kept.
func (t *tx) end() {
	for _, name := range slices.Backward(t.made) {
		t.s.sweep(name)
	}
}

// sizeOf is what a file takes on disk.
func sizeOf(bytes int) int64 { return (int64(bytes) + block - 1) / block * block }

func parseName(text string) (Name, bool) {
	var n Name
	data, err := hex.DecodeString(text)
	if err != nil || len(data) != len(n) {
		return n, false
	}
	copy(n[:], data)
	return n, n.String() == text
}

// readFile reads a file that is not too large to be one of ours, and takes it apart.
func readFile(path string, parse func([]byte) (*parsed, error)) (*parsed, error) {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > maxFile:
		return nil, errBroken
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parse(data)
}
