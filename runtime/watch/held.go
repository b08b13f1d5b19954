package watch

import (
	"fmt"
	"math"
	"runtime/debug"
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

// hold counts what a view holds more, or less, and says why it is too much, if it is. Called
// with the mutex of its stream held.
func (s *stream) hold(v *view, more int64) error {
	if len(v.subs) == 0 {
		return nil // what it held was taken off when the last one left
	}
	v.held += more
	all := s.m.held.Add(more)
	switch {
	case more <= 0:
	case v.held > s.m.o.Held/2:
		return fmt.Errorf("its objects take more than the %d MiB that one watch may hold", s.m.o.Held/2>>20)
	case all > s.m.o.Held:
		return fmt.Errorf("with its objects all watches hold more than %d MiB", s.m.o.Held>>20)
	}
	return nil
}

// crowded has an object of [Spec].Each that is larger than a quarter of what is free count as one that the filter fails
// on: however many large ones there are, they leave room for others. Called with s.mu held.
func (s *stream) crowded(v *view, key objectKey, out *outcome) {
	_, before := v.find(key)
	free := max(min(s.m.o.Held/2-v.held, s.m.o.Held-s.m.held.Load()), 0)
	if !v.each || !out.keep || out.size <= max(free/4, before.weight()) {
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
	return s.hold(v, sum-v.held)
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
	for sub := range v.subs {
		sub.unsynced(v)
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
