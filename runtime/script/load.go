package script

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"go.starlark.net/starlark"
)

// load is the loading of one file: under way until done is closed, then its
// result for good.
type load struct {
	path    string
	done    chan struct{}
	globals starlark.StringDict
	err     error
	// sum and loads are the content of the file, and the paths that it loads.
	sum   [sha256.Size]byte
	loads []string
	// reads are the files of the module that it has read besides, or the patterns that name them, with
	// the sum of their content.
	reads map[string][sha256.Size]byte
	// cut: the run was cancelled, so err says nothing about the file.
	cut bool
	// waits is the load that this one waits for, in its own goroutine or in
	// another: following it finds cycles. Guarded by Host.mu.
	waits *load
}

// Load runs the file of this path once and returns its globals, frozen. Later
// calls, and load statements, get the same result, errors included; but a
// loading that was cut short (context, time, memory) is forgotten, so that the
// next call tries again. Errors are *Error.
func (h *Host) Load(ctx context.Context, path string) (starlark.StringDict, error) {
	r := newRun(ctx, h.governor, h.limits)
	var globals starlark.StringDict
	var err error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if globals, err = h.load(r, path, path, nil); err != nil {
			err = h.diagnose(err, r.cancelled(), Frame{File: path})
		}
	}()
	if r.wait(ended, moduleOf(path), func(int) {}) {
		r.end()
		return globals, err
	}
	h.giveUp(path)
	cause := r.cancelled()
	return nil, &Error{File: path, Msg: stopMessage(cause) + "; it is in one step that does not end", cause: cause}
}

// giveUp has the next one who asks for a file load it anew, and what it loads.
func (h *Host) giveUp(path string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := h.loads[path]; l != nil; l = l.waits {
		select {
		case <-l.done:
		default:
			if h.loads[l.path] == l {
				delete(h.loads, l.path)
			}
		}
	}
}

// load returns the globals of the file at path, which a file that by loads
// (nil: none) named as label. Its errors are *Error or *labelError.
func (h *Host) load(r *run, label, path string, by *load) (starlark.StringDict, error) {
	for {
		h.mu.Lock()
		l, found := h.loads[path]
		if !found {
			l = &load{path: path, done: make(chan struct{})}
			h.loads[path] = l
		} else if chain := cycle(by, l); chain != "" {
			h.mu.Unlock()
			return nil, &labelError{msg: fmt.Sprintf("cannot load %q: the files load each other: %s", label, chain), hint: "move what both need to a third file"}
		}
		if by != nil {
			by.waits = l
		}
		h.mu.Unlock()

		if !found {
			h.finish(r, label, l)
		}
		err := l.wait(r)
		if by != nil {
			h.mu.Lock()
			by.waits = nil
			h.mu.Unlock()
		}
		if err != nil {
			return nil, err
		}
		if found && l.cut && r.ctx.Err() == nil {
			continue // that was the other's context or limit, not ours
		}
		return l.globals, l.err
	}
}

// wait waits for the end of the loading, or returns why the run ended
// first.
func (l *load) wait(r *run) error {
	select {
	case <-l.done: // even when the run has ended too: the result says where
		return nil
	default:
	}
	r.share.release() // the one that loads it may need the turn
	select {
	case <-l.done:
		return nil
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	}
}

// cycle returns "a.star → b.star → a.star" when l waits for by already, and ""
// otherwise. Host.mu is held.
func cycle(by, l *load) string {
	if by == nil {
		return ""
	}
	chain := []string{by.path}
	for w := l; w != nil; w = w.waits {
		chain = append(chain, w.path)
		if w == by {
			return strings.Join(chain, " → ")
		}
	}
	return ""
}

// finish runs the file of l and lets those go on who wait for it, whatever
// happens.
func (h *Host) finish(r *run, label string, l *load) {
	before := r.used()
	defer func() {
		if l.err != nil {
			l.globals = nil
		}
		if l.cut = l.err != nil && h.cutShort(r, before); l.cut {
			h.mu.Lock()
			if h.loads[l.path] == l {
				delete(h.loads, l.path)
			}
			h.mu.Unlock()
		}
		close(l.done)
	}()
	defer recoverInto(&l.err)
	l.globals, l.err = h.exec(r, label, l)
}

func (h *Host) exec(r *run, label string, l *load) (starlark.StringDict, error) {
	src, err := h.read(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, h.missing(label, l.path)
	}
	if err != nil {
		return nil, &labelError{msg: fmt.Sprintf("cannot load %q: %s", label, describe(err))}
	}
	l.sum = sha256.Sum256(src)
	prog, err := h.compile(r, l.path, src)
	if err != nil {
		return nil, h.diagnose(err, nil, Frame{File: l.path})
	}
	var globals starlark.StringDict
	loader := func(_ *starlark.Thread, label string) (starlark.StringDict, error) {
		path, err := resolveLabel(label, l.path)
		if err != nil {
			return nil, h.begun(err, label, l.path)
		}
		l.loads = append(l.loads, path)
		return h.load(r, label, path, l)
	}
	l.reads = map[string][sha256.Size]byte{}
	c := h.context(l.path)
	c.Files = moduleFiles{h, l}
	err = r.thread(l.path, c, loader, func(t *starlark.Thread) error {
		var err error
		globals, err = prog.Init(t, h.predeclared)
		if err != nil {
			return err
		}
		return freeze(globals) // Init does not
	})
	if err != nil {
		return nil, h.diagnose(err, r.cancelled(), Frame{File: l.path})
	}
	return globals, nil
}

// cutShort reports whether the run was cancelled for reasons that do not lie in
// the file that it began to load after so many steps, so that another try may
// succeed. A file that takes half of all steps for itself is to blame.
func (h *Host) cutShort(r *run, before uint64) bool {
	cause := r.cancelled()
	if limit, ok := errors.AsType[*LimitError](cause); ok && limit.Limit == LimitSteps {
		return r.used()-before < r.limits.Steps/2
	}
	return cause != nil
}
