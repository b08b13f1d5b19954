package watch

import (
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"sync"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/object"
)

// The memory of snapshots is counted: a watch that would take the memory of the process is
// stopped, with a reason, and the rest goes on.

const (
	// defaultHeld is what all snapshots may hold where the process has no memory limit.
	defaultHeld = 4 << 30
	// tryAgain is when a watch that was stopped for what it holds is tried again.
	tryAgain = 5 * time.Minute
)

// heldLimit is what all snapshots may hold: a part of what the process may have.
func heldLimit() int64 {
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		return limit * 4 / 10
	}
	return defaultHeld
}

// budget is what the snapshots of all views hold together. mu is taken after all other locks.
type budget struct {
	mu    sync.Mutex
	limit int64
	all   int64
	views map[*view]held
	// making says that watches are being stopped.
	making bool
}

// held is a view that somebody has: whose it is, how often, and what it holds: rows, and of a list that is under way.
type held struct {
	stream  *stream
	modules map[string]int
	bytes   int64
}

// count notes that a module has a view once more, or less. A view that nobody has holds nothing.
func (b *budget) count(s *stream, v *view, module string, by int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.views[v]
	if h.modules == nil {
		h = held{stream: s, modules: map[string]int{}}
	}
	if h.modules[module] += by; h.modules[module] == 0 {
		delete(h.modules, module)
	}
	if b.views[v] = h; len(h.modules) == 0 {
		b.all -= h.bytes
		delete(b.views, v)
	}
}

func (b *budget) of(v *view) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.views[v].bytes
}

// larger returns the views of modules that hold more than those of a view, how much they are, and the largest one of
// the module that holds most. A view of several modules is that of the one that holds least. Starling's own watches are
// of none. Called with b.mu held.
func (b *budget) larger(v *view) (all int64, largest *view) {
	by := map[string]int64{}
	for _, h := range b.views {
		for module := range h.modules {
			by[module] += h.bytes
		}
	}
	by[""] = 0
	least := func(v *view) int64 {
		n := int64(math.MaxInt64)
		for module := range b.views[v].modules {
			n = min(n, by[module])
		}
		return n
	}
	own, most := least(v), int64(0)
	for other, h := range b.views {
		if of := least(other); of > own && h.bytes > 0 {
			all += h.bytes
			if largest == nil || of > most || of == most && h.bytes > b.views[largest].bytes {
				largest, most = other, of
			}
		}
	}
	return all, largest
}

// hold counts what a view holds more, or less, and says why it is too much, if it is. Modules that hold more make room
// before it is. Called with the mutex of its stream held.
func (s *stream) hold(v *view, more int64) error {
	b := &s.m.held
	b.mu.Lock()
	defer b.mu.Unlock()
	h, is := b.views[v]
	if !is {
		return nil // what it held was taken off when the last one left
	}
	var largest *view
	if more > 0 && b.all+more > b.limit && !b.making {
		_, largest = b.larger(v)
	}
	h.bytes += more
	b.all += more
	b.views[v] = h
	switch {
	case more <= 0:
	case h.bytes > b.limit/2:
		return fmt.Errorf("its objects take more than the %d MiB that one watch may hold", b.limit/2>>20)
	case b.all <= b.limit, b.making:
	case largest != nil:
		b.making = true
		s.m.wg.Go(func() { s.m.makeRoom(v) })
	default:
		return fmt.Errorf("with its objects all watches hold more than %d MiB", b.limit>>20)
	}
	return nil
}

// makeRoom stops watches of modules that hold more than that of a view, until all fit. It is no part of hold: each has
// a stream with a mutex.
func (m *Manager) makeRoom(v *view) {
	b := &m.held
	for {
		b.mu.Lock()
		_, largest := b.larger(v)
		if b.all <= b.limit || largest == nil {
			b.making = false
			b.mu.Unlock()
			return
		}
		s := b.views[largest].stream
		b.mu.Unlock()
		s.mu.Lock()
		var tell []*subscription
		if len(largest.subs) > 0 {
			tell = s.overfull(largest, fmt.Errorf("all watches hold more than %d MiB, and those of its module the most", b.limit>>20), nil)
		}
		s.mu.Unlock()
		flush(tell)
	}
}

// crowded has an object of [Spec].Each that is larger than a quarter of what is free count as one that the filter fails
// on: however many large ones there are, they leave room for others. Called with s.mu held.
//
// One whose filter ran out of time is listed again, too: on a busy machine it may have had none.
func (s *stream) crowded(v *view, key objectKey, out *outcome) {
	var late interface{ Timeout() bool }
	if errors.As(out.err, &late) && late.Timeout() {
		s.later(v)
	}
	if !v.Each || !out.keep {
		return
	}
	_, before := v.find(key)
	b := &s.m.held
	b.mu.Lock()
	own := b.limit/2 - b.views[v].bytes
	free := max(min(own, b.limit-b.all), 0)
	if out.size > free/4 {
		larger, _ := b.larger(v)
		free = max(min(own, b.limit-b.all+larger), 0)
	}
	b.mu.Unlock()
	if out.size <= max(free/4, before.weight()) {
		return
	}
	*out = outcome{marks: out.marks, version: out.version, err: fmt.Errorf(
		"it takes %d KiB of memory, more than a quarter of the %d KiB that are free for its watch; keep less of each %s with filter=; tried again every %s",
		out.size>>10, free>>10, s.key.kind, tryAgain)}
	s.later(v)
}

// later has a view listed again.
func (s *stream) later(v *view) {
	if v.later {
		return
	}
	v.later = true
	s.m.wg.Go(func() {
		select {
		case <-s.ctx.Done():
			return
		case <-time.After(tryAgain):
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		v.over, v.later = nil, false
		if len(v.subs) > 0 {
			s.listFor(v)
		}
	})
}

// recount counts the rows alone: a list that was under way has been taken in, or given up.
func (s *stream) recount(v *view) error {
	sum := int64(0)
	for _, r := range v.rows {
		sum += r.weight()
	}
	v.full = nil
	return s.hold(v, sum-s.m.held.of(v))
}

// listedOne counts what a list has kept of one object, until that is taken in. An object
// that is too large is not kept.
func (s *stream) listedOne(v *view, key objectKey, out *outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.crowded(v, key, out)
	more := out.size
	if _, r := v.find(key); r != nil {
		more -= r.weight()
	}
	if v.over == nil && v.full == nil {
		v.full = s.hold(v, more)
	}
	if v.over != nil || v.full != nil {
		*out = outcome{missing: true}
	}
}

// overfull stops a view that holds too much: its objects go, and it is not synced before it
// was tried again. Called with s.mu held; the caller flushes what it returns.
func (s *stream) overfull(v *view, why error, tell []*subscription) []*subscription {
	v.over = fmt.Errorf("stopped: %w; keep less of each %s with filter=, or watch fewer with labels= or namespaces=; tried again every %s", why, s.key.kind, tryAgain)
	v.rows, v.values, v.index, v.failed, v.gone, v.synced = nil, nil, nil, failures{}, nil, false
	v.queue.forget()
	_ = s.recount(v)
	for sub, p := range v.subs {
		sub.unsynced(p)
	}
	s.later(v)
	return s.showFilter(v, tell)
}

// weigh notes about how many bytes of memory the result takes, which may hold the object.
func (o *outcome) weigh(both bool) {
	o.size = weighValue(o.value)
	if o.object != nil && o.object != o.value && !both {
		o.size += weighValue(o.object)
	}
	if o.wakes != nil {
		o.size += 24
		for _, key := range o.wakes.Keys {
			o.size += 16 + int64(len(key))
		}
	}
}

func weighValue(v starlark.Value) int64 {
	switch v := v.(type) {
	case nil:
		return 0
	case *object.Object:
		return weigh(v.Map())
	case Sized:
		return v.Size()
	case starlark.String:
		return 16 + int64(len(v))
	case *starlark.List:
		size := int64(48)
		for i := range v.Len() {
			size += 16 + weighValue(v.Index(i))
		}
		return size
	case starlark.Tuple:
		size := int64(24)
		for _, e := range v {
			size += 16 + weighValue(e)
		}
		return size
	case *starlark.Dict:
		size := int64(64)
		for k, e := range v.Entries() {
			size += 72 + weighValue(k) + weighValue(e)
		}
		return size
	}
	return 16
}
