// Package script runs Starlark: it loads the .star files of one module tree, each
// compiled and run once and then frozen, and calls their functions, every call on
// a new thread and within limits.
package script

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/builtins"
)

// Options configures a [Host].
type Options struct {
	// Files is the module tree, with paths as in "web/hooks/nodes.star".
	Files fs.FS
	// Std is the standard library, "@std//" in load statements; nil: none.
	Std fs.FS
	// Context returns what builtins may reach while the file of this path
	// loads ("web/hooks/nodes.star", "@std//k8s.star"). It is called once for
	// each time the file is run.
	Context func(path string) *builtins.Context
	// Limits of loading one file, with all that it is first to load.
	Limits Limits
	// Governor watches the memory of all runs; nil: no heap limit.
	Governor *Governor
	// Cache keeps compiled programs between the hosts of one process; nil: a
	// cache of this host alone.
	Cache *Cache
	// Previous is a host of the files as they were before, with the same builtins,
	// Std and Cover: what it has loaded of files that Keep names, the standard
	// library's and what they load in turn, all unchanged, is not loaded again. Nil:
	// there is none.
	Previous *Host
	Keep     func(path string) bool
	// Predeclared are the builtins; nil means builtins.Predeclared().
	Predeclared starlark.StringDict
	// Cover counts the statements of all files but tests; nil: nobody does. Hosts with
	// one Cover share their Cache with no others.
	Cover *Cover
}

// Host is the files of one generation. It is safe for concurrent use.
type Host struct {
	files, std  fs.FS
	context     func(path string) *builtins.Context
	limits      Limits
	governor    *Governor
	cache       *Cache
	predeclared starlark.StringDict
	cover       *Cover
	names       []string // predeclared and universal names, for suggestions

	stuck *stuck // of all hosts that follow each other

	mu    sync.Mutex
	loads map[string]*load
}

// New returns a host that has loaded nothing yet.
func New(o Options) *Host {
	h := &Host{
		files: o.Files, std: o.Std, context: o.Context, limits: o.Limits, cover: o.Cover,
		governor: o.Governor, cache: o.Cache, predeclared: o.Predeclared,
		stuck: &stuck{calls: map[work]int{}},
		loads: make(map[string]*load),
	}
	if h.cache == nil {
		h.cache = NewCache()
	}
	if o.Previous != nil {
		h.takeOver(o.Previous, o.Keep)
		return h
	}
	if h.predeclared == nil {
		h.predeclared = builtins.Predeclared()
	}
	h.predeclared = withGuards(h.predeclared)
	if h.cover != nil {
		h.predeclared[coverName] = h.cover.builtin()
	}
	h.predeclared.Freeze()
	for name := range h.predeclared {
		if !isGuard(name) {
			h.names = append(h.names, name)
		}
	}
	for name := range starlark.Universe {
		h.names = append(h.names, name)
	}
	slices.Sort(h.names)
	return h
}

// Cache holds compiled programs by the content of their files. It is safe for
// concurrent use.
type Cache struct {
	mu       sync.Mutex
	programs map[[sha256.Size]byte]*starlark.Program
}

// maxPrograms bounds a cache: past it everything is compiled anew once.
const maxPrograms = 10_000

// NewCache returns an empty cache.
func NewCache() *Cache { return &Cache{programs: make(map[[sha256.Size]byte]*starlark.Program)} }

func (c *Cache) get(key [sha256.Size]byte) *starlark.Program {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.programs[key]
}

func (c *Cache) put(key [sha256.Size]byte, p *starlark.Program) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.programs) >= maxPrograms {
		clear(c.programs)
	}
	c.programs[key] = p
}

// Governor returns what watches the memory of the runs of this host; nil: nothing does.
func (h *Host) Governor() *Governor { return h.governor }

// compile returns the program of a file, once the run that loads it has room for that.
// Panics of the compiler are errors.
func (h *Host) compile(r *run, path string, src []byte) (prog *starlark.Program, err error) {
	hash := sha256.New()
	fmt.Fprintf(hash, "%d:%s\n", len(path), path)
	hash.Write(src)
	key := [sha256.Size]byte(hash.Sum(nil))
	if p := h.cache.get(key); p != nil {
		return p, nil
	}
	defer recoverInto(&err)
	if n := len(src) * nodeCost; n >= noticed {
		if err := r.room(n); err != nil {
			return nil, err
		}
	}
	file, err := parse(path, src)
	if err != nil {
		return nil, err
	}
	if h.cover != nil && !strings.HasSuffix(path, "_test.star") {
		h.cover.instrument(path, src, file)
	}
	guard(file)
	prog, err = starlark.FileProgram(file, h.predeclared.Has)
	if err != nil {
		return nil, err
	}
	h.cache.put(key, prog)
	return prog, nil
}

// dialect is the language of .star files.
func dialect() *syntax.FileOptions { return &syntax.FileOptions{Set: true} }

func (h *Host) read(path string) ([]byte, error) {
	fsys, name, _ := h.fileSystem(path)
	if fsys == nil {
		return nil, fs.ErrNotExist
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxFileSize+1))
	if err != nil {
		return nil, err
	}
	if len(data) > MaxFileSize {
		return nil, fmt.Errorf("the file is larger than %d KiB", MaxFileSize>>10)
	}
	return data, nil
}

// Call calls fn with args on a new thread. Errors are *Error, which holds the
// place, what a builtin returned, and which limit was passed. fn must come from
// a file of this process and be frozen, so that calls may go on in parallel, or be made for this
// call, which o.Of says.
func (h *Host) Call(ctx context.Context, fn starlark.Callable, args starlark.Tuple, o CallOptions) (starlark.Value, Usage, error) {
	w := work{fn: fn, subject: o.Subject}
	if o.Of != nil {
		w.fn = o.Of
	}
	if h.stuck.has(w) {
		return nil, Usage{}, h.diagnose(ErrStuck, nil, entry(w.fn))
	}
	r := newRun(ctx, h.governor, o.Limits)
	r.share.module = moduleOf(o.Name)
	if o.Context.Run != nil {
		o.Context.Run.Ctx = r.ctx // live reads end with the run's limits
	}
	var v starlark.Value
	var err error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		grow(0)
		err = r.thread(o.Name, o.Context, nil, func(t *starlark.Thread) (err error) {
			v, err = starlark.Call(t, fn, args, nil)
			return err
		})
	}()
	inTime := r.wait(ended, r.share.module, func(n int) { h.stuck.add(w, n) })
	cause := r.cancelled()
	var usage Usage
	if inTime {
		usage = r.end()
	} else {
		usage = r.taken()
	}
	if used, ok := ctx.Value(meter{}).(func(Usage)); ok {
		used(usage)
	}
	if !inTime {
		return nil, usage, h.diagnose(cause, cause, entry(w.fn))
	}
	if err != nil {
		return nil, usage, h.diagnose(err, cause, entry(w.fn))
	}
	return v, usage, nil
}

// grow makes the stack of a new goroutine as large as a call needs it: it is not copied step by step on the way there.
// The result, of an index that the compiler does not know, has it keep the room.
//
//go:noinline
func grow(at int) byte {
	var room [12 << 10]byte
	return room[at]
}

// entry is the place to name when an error has none: where fn is defined.
func entry(fn starlark.Callable) Frame {
	f, ok := fn.(*starlark.Function)
	if !ok {
		return Frame{}
	}
	pos := f.Position()
	return Frame{File: pos.Filename(), Line: int(pos.Line), Col: int(pos.Col), Func: f.Name()}
}

// describe says in people's words why a file cannot be read.
func describe(err error) string {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err.Error()
	}
	return err.Error()
}
