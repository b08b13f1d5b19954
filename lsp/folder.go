package lsp

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/starling-operator/starling/lsp/text"
	"github.com/starling-operator/starling/modules/check"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
)

// folder is a module tree of which files are open. All of it is checked when something of it changes, with what the
// check before has in common with this one kept. A change stops the check that is under way.
type folder struct {
	s     *Server
	dir   string
	dirty chan struct{} // holds one when something has changed

	mu   sync.Mutex
	stop context.CancelFunc // of the check that is under way
	// read has the files as they were on the disk, with buffers that were open then; nil: they must be read, for one may
	// have changed.
	read fs.FS
	// reads is how many times the files were found to have changed: what was read before the last time counts no more.
	reads int

	// real is dir without links, and watched says that the client tells of changes in all of it.
	real    string
	watched bool
	end     context.CancelFunc

	cache *check.Cache
	disk  disk

	// The rest belongs to the server, under its lock.
	files     fs.FS                  // as the last check has had them
	gen       *generation.Generation // that the last check has loaded
	parsed    parses                 // of those files
	published map[string]published   // what the client shows of files, by their paths in the tree
	said      map[string]bool        // what the last check has said in the log
}

// published is what the client shows of a file.
type published struct {
	uri     string
	version *int // of its document; nil: it is not open
	found   []diagnostic
}

// folderOf returns the tree that a file is of, and the path of the file in it.
func (s *Server) folderOf(path string) (*folder, string) {
	dir, ok := tree.Above(path)
	if !ok {
		return nil, ""
	}
	rel, err := filepath.Rel(dir, path)
	if err != nil {
		return nil, ""
	}
	f := s.folders[dir]
	if f == nil {
		f = &folder{s: s, dir: dir, real: real(dir), dirty: make(chan struct{}, 1), cache: check.NewCache(), parsed: parses{}, published: map[string]published{}}
		f.watched = !s.o.FollowLinks && slices.ContainsFunc(s.roots, func(root string) bool { return isIn(root, f.real) })
		s.folders[dir] = f
		var ctx context.Context
		ctx, f.end = context.WithCancel(s.ctx)
		s.working.Go(func() { f.work(ctx) })
	}
	return f, filepath.ToSlash(rel)
}

// real is a path without links; of one that is not there itself.
func real(path string) string {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		return to
	}
	return path
}

func isIn(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// concerns says whether the tree may be another one when a file or a folder is.
func (f *folder) concerns(file documentID) bool {
	path, err := pathOf(file.URI)
	return err == nil && (isIn(f.dir, path) || isIn(f.real, path) || isIn(path, f.dir))
}

// forget ends the work for the tree, with all that it has told.
func (f *folder) forget() {
	f.end()
	delete(f.s.folders, f.dir)
	for _, p := range f.published {
		f.s.publish(p.uri, nil, nil)
	}
}

// changed has the tree checked soon: a buffer has changed.
func (f *folder) changed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.again()
}

// diskChanged has the tree read and checked soon: files on the disk have changed, or a buffer counts no more.
func (f *folder) diskChanged() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.read = nil
	f.reads++
	f.again()
}

func (f *folder) again() {
	if f.stop != nil {
		f.stop()
	}
	select {
	case f.dirty <- struct{}{}:
	default:
	}
}

// work checks the tree whenever it has changed.
func (f *folder) work(ctx context.Context) {
	var p pace
	var ended time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.dirty:
		}
		first := time.Now()
		timer := time.NewTimer(p.wait(time.Since(ended)))
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-f.dirty:
				timer.Reset(min(p.wait(0), maxPause-time.Since(first)))
			case <-timer.C:
				waiting = false
			}
		}
		began := time.Now()
		done := f.once(ctx, p.stopped < maxStopped)
		ended = time.Now()
		if p.stopped++; done {
			p.stopped = 0
		}
		if took := ended.Sub(began); done || took > p.took {
			p.took = took
		}
	}
}

// once checks the tree and publishes what it has found; a change meanwhile may stop it.
func (f *folder) once(ctx context.Context, mayStop bool) (done bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f.mu.Lock()
	if f.stop = nil; mayStop {
		f.stop = cancel
	}
	f.mu.Unlock()
	defer func() {
		if p := recover(); p != nil {
			f.s.tell(messageError, fmt.Sprintf("cannot check %s: internal error: %v", f.dir, p))
		}
	}()
	open, versions := f.buffers()
	read, err := f.tree(open)
	if err != nil {
		f.publish(nil, nil, treeErrors(fmt.Errorf("%s: %w", f.dir, err)), versions)
		return true
	}
	// Run fails for what a cluster serves alone, and none is given.
	result, err := check.Run(ctx, check.Options{Tree: read, Renderer: f.s.o.Renderer, Cache: f.cache})
	if err != nil || ctx.Err() != nil {
		return false
	}
	f.publish(read, f.cache.Generation(), result.Findings, versions)
	return true
}

// buffers are the open files of the tree, with the versions of their documents.
func (f *folder) buffers() (open map[string][]byte, versions map[*document]int) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	open, versions = map[string][]byte{}, map[*document]int{}
	for _, d := range f.s.documents {
		if d.folder == f && !d.lost {
			open[d.inTree], versions[d] = d.text.Bytes(), d.version
		}
	}
	return open, versions
}

// tree is the tree with these buffers. Its files are read when they may have changed; the client tells of that, if it
// has said that it will, in its workspace.
func (f *folder) tree(open map[string][]byte) (*tree.Tree, error) {
	f.mu.Lock()
	known, reads := f.read, f.reads
	f.mu.Unlock()
	if known != nil {
		return tree.Read(new(disk).with(known, open), tree.Options{})
	}
	files, closeAll, err := tree.Open(f.dir, f.s.o.FollowLinks)
	if err != nil {
		return nil, err
	}
	defer closeAll()
	t, err := tree.Read(f.disk.with(files, open), tree.Options{})
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if reads == f.reads && f.watched && f.s.watching.Load() && readable(t) {
		f.read = t.Files
	}
	return t, nil
}

// readable says that all files of a tree were read. Those that cannot be are not among the files in memory, so a tree
// that is made of these again would not tell of them.
func readable(t *tree.Tree) bool {
	broken := func(m *tree.Module) bool { return m.Err != nil }
	return len(t.Problems) == 0 && !slices.ContainsFunc(t.Modules, broken) && (t.Global == nil || !broken(t.Global))
}

// ofValues is how the error of a tree names a place in its values.yaml.
var ofValues = regexp.MustCompile(`values\.yaml(?::(\d+))?: (.*)$`)

// treeErrors are the findings for a tree that cannot be read as a whole.
func treeErrors(err error) []check.Finding {
	f := check.Finding{Severity: check.Error, Check: "load", Message: err.Error()}
	if m := ofValues.FindStringSubmatch(err.Error()); m != nil {
		f.File, f.Message = "values.yaml", m[2]
		_, _ = fmt.Sscan(m[1], &f.Line) // without one it is 0
	}
	return []check.Finding{f}
}

// publish shows findings, file by file, where they differ from those before. A document that has changed meanwhile is
// left out: the next check is about it.
func (f *folder) publish(read *tree.Tree, gen *generation.Generation, findings []check.Finding, versions map[*document]int) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	if f.s.folders[f.dir] != f {
		return // it was forgotten meanwhile
	}
	if read != nil {
		f.files, f.gen = read.Files, gen
		for file := range f.parsed {
			if _, err := fs.Stat(f.files, file); err != nil {
				delete(f.parsed, file)
			}
		}
	}
	byFile, said := map[string][]check.Finding{}, map[string]bool{}
	for d := range versions {
		byFile[d.inTree] = nil // it may have had some
	}
	for file := range f.published {
		byFile[file] = nil
	}
	for _, finding := range findings {
		if file := f.fileOf(finding); file != "" {
			if file != finding.File {
				finding.Line, finding.Col = 0, 0
			}
			byFile[file] = append(byFile[file], finding)
		} else if finding.Severity != check.Note {
			line := strings.TrimSpace(finding.Render(nil))
			if said[line] = true; !f.said[line] {
				f.s.tell(messageWarning, line)
			}
		}
	}
	f.said = said
	for _, file := range f.inOrder(byFile) {
		d := f.document(file)
		if d != nil && (d.lost || versions[d] != d.version) {
			continue
		}
		f.show(file, diagnosticsOf(f.text(file), byFile[file]))
	}
}

// inOrder are the files of which there may be news: that which is being written comes first, those that nobody has open
// come last.
func (f *folder) inOrder(byFile map[string][]check.Finding) (out []string) {
	rank := map[string]int{}
	for file := range byFile {
		out = append(out, file)
		switch d := f.document(file); {
		case d == nil:
			rank[file] = 2
		case f.published[file].of(d):
			rank[file] = 1
		}
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Or(rank[a]-rank[b], strings.Compare(a, b)) })
	return out
}

// of says whether it is about a document as it is; about a file that is not open, for nil.
func (p published) of(d *document) bool {
	if d == nil || p.version == nil {
		return d == nil && p.version == nil
	}
	return *p.version == d.version
}

// show has the client show these diagnostics of a file, unless it does.
func (f *folder) show(file string, found []diagnostic) {
	d, before := f.document(file), f.published[file]
	if before.of(d) && slices.Equal(before.found, found) {
		return
	}
	now := published{uri: before.uri, found: found}
	switch {
	case d != nil:
		version := d.version
		now.uri, now.version = d.uri, &version
	case now.uri == "":
		now.uri = uriOf(f.path(file))
	}
	if before.uri != "" && before.uri != now.uri { // another name of the same file
		f.s.publish(before.uri, nil, nil)
	}
	f.s.publish(now.uri, now.version, found)
	if f.published[file] = now; d == nil && len(found) == 0 {
		delete(f.published, file)
	}
}

// fileOf is the file at which a finding is shown; "" for none.
func (f *folder) fileOf(finding check.Finding) string {
	if f.files == nil {
		return finding.File
	}
	for _, file := range []string{finding.File, path.Join(finding.File, "module.star"), path.Join(finding.File, "Chart.yaml"), path.Join(finding.Module, "module.star")} {
		if info, err := fs.Stat(f.files, file); err == nil && !info.IsDir() {
			return file
		}
	}
	return ""
}

// path is where a file of the tree is.
func (f *folder) path(file string) string { return filepath.Join(f.dir, filepath.FromSlash(file)) }

// document is an open file of the tree; nil: it is not open.
func (f *folder) document(file string) *document { return f.s.documents[f.path(file)] }

// text is that of a file of the tree: its buffer, or what the last check has read.
func (f *folder) text(file string) *text.Text {
	if d := f.document(file); d != nil {
		return d.text
	}
	if f.files == nil {
		return text.New("")
	}
	data, err := fs.ReadFile(f.files, file)
	if err != nil {
		return text.New("")
	}
	return text.New(string(data))
}
