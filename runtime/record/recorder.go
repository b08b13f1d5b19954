package record

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

const (
	// share is the part of one processor that recording may take for long, one in so
	// many; burst is how much it may take at once before that counts.
	share = 50
	burst = 200 * time.Millisecond
	// delay is how long the first of some runs waits: what it has asked for is done by
	// then, and is not held up by the writing.
	delay = 500 * time.Millisecond
	// keyRetry is how long after a failure the key is asked for again.
	keyRetry = 30 * time.Second
	// stopWithin bounds what is still written at the end.
	stopWithin = time.Second
)

// ErrOff says that runs are not recorded, in the chain of an error of
// [Options].Key.
var ErrOff = errors.New("runs are not recorded")

// Options configures a [Recorder]. All fields but Log and Count are required.
type Options struct {
	// Store says where the records are, but not with which key.
	Store StoreOptions
	// Key fetches the key, once it may be made. An error with [ErrOff] in its chain
	// ends the recording, any other is followed by another try.
	Key func(context.Context) (*Key, error)
	Log zerolog.Logger
	// Count is told how many runs were "kept", "dropped" (there was no time for
	// them), or "failed" (they could not be written).
	Count func(outcome string, n int)
}

// Recorder keeps the runs of one process, beside the work.
type Recorder struct {
	o     Options
	queue *queue
	off   chan struct{} // closed: nothing is recorded any more
	key   atomic.Pointer[Key]
}

// New makes a recorder. It writes nothing before [Recorder.Run].
func New(o Options) *Recorder {
	if o.Count == nil {
		o.Count = func(string, int) {}
	}
	return &Recorder{o: o, queue: newQueue(), off: make(chan struct{})}
}

// Key is the key of what this process records. The error says that there is none.
func (r *Recorder) Key() (*Key, error) {
	if key := r.key.Load(); key != nil {
		return key, nil
	}
	return nil, errors.New("this starling has no key of records: it does not hold the lease, or may not keep one; its log says why")
}

// Take takes a run. It never waits: where there is no time for a run it is dropped, one
// that succeeded sooner than one that failed, and the last of a hook last.
func (r *Recorder) Take(t *Trace) {
	select {
	case <-r.off:
		return
	default:
	}
	if n := r.queue.add(t); n > 0 {
		r.o.Count("dropped", n)
	}
}

// Uncommitted says that what a run asked for, which was taken before, could not be
// committed. It never waits. Of a run that was dropped nothing is kept.
func (r *Recorder) Uncommitted(run uint64, err error) {
	select {
	case <-r.off:
	default:
		r.queue.amend(newAmendment(run, err))
	}
}

// Run keeps runs until ctx ends, and then what is left, for a second at most.
func (r *Recorder) Run(ctx context.Context) {
	defer close(r.off)
	store := r.open(ctx)
	if store == nil {
		return
	}
	w := &writer{o: r.o, store: store, left: burst, since: time.Now()}
	for r.wait(ctx) {
		for w.rest(ctx) {
			if !r.next(w) {
				break
			}
		}
	}
	for end := time.Now().Add(stopWithin); time.Now().Before(end); {
		if !r.next(w) {
			return
		}
	}
}

// next writes one thing that waits; false when nothing does.
func (r *Recorder) next(w *writer) bool {
	if a, ok := r.queue.amendment(); ok {
		w.amend(a)
		return true
	}
	t := r.queue.take()
	if t != nil {
		w.put(t)
	}
	return t != nil
}

// wait waits until there are runs to be kept, and a little longer; false once ctx has
// ended.
func (r *Recorder) wait(ctx context.Context) bool {
	select {
	case <-r.queue.signal:
	case <-ctx.Done():
		return false
	}
	select {
	case <-r.queue.hurry:
	case <-time.After(delay):
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// open fetches the key and takes over the folder; nil when runs are not recorded.
func (r *Recorder) open(ctx context.Context) *Store {
	said := ""
	for {
		key, err := r.o.Key(ctx)
		if err == nil {
			o := r.o.Store
			o.Key = key
			var store *Store
			if store, err = OpenStore(o); err == nil {
				r.key.Store(key)
				return store
			}
		}
		if ctx.Err() != nil {
			return nil
		}
		off := errors.Is(err, ErrOff)
		if text := err.Error(); text != said {
			said = text
			line := r.o.Log.Warn()
			if !off {
				line = line.Stringer("next_try", keyRetry)
			}
			line.Msg("no runs are recorded: " + text)
		}
		if off {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(keyRetry):
		}
	}
}

// writer writes runs, and keeps count of the time that this takes.
type writer struct {
	o      Options
	store  *Store
	broken bool // the last one could not be written
	// left is how long it may still write without a rest, as of since.
	left  time.Duration
	since time.Time
}

func (w *writer) put(t *Trace) {
	err := w.safely(func() error { return w.store.Put(t) })
	if err == nil {
		w.o.Count("kept", 1)
		if w.broken {
			w.o.Log.Info().Msg("runs are recorded again")
		}
		w.broken = false
		return
	}
	w.o.Count("failed", 1)
	if errors.Is(err, errLarge) {
		w.o.Log.Debug().Str("hook", t.request.Hook.ID).Msg("a run is not recorded: " + err.Error())
		return
	}
	if !w.broken {
		w.o.Log.Warn().Err(err).Msg("a run cannot be recorded; the work goes on, and what follows is tried")
	}
	w.broken = true
}

// amend changes a record that is written.
func (w *writer) amend(a amendment) {
	err := w.safely(func() error { return w.store.amend(a) })
	if err != nil && !w.broken {
		w.o.Log.Warn().Err(err).Msgf("run %s stays recorded as one that succeeded, though its commit has failed", ID(w.store.o.Process, a.run))
		w.broken = true
	}
}

// safely makes a panic an error, for a record is never worth the process, and counts the time.
func (w *writer) safely(write func() error) (err error) {
	began := time.Now()
	defer func() {
		w.left -= time.Since(began)
		if p := recover(); p != nil {
			err = fmt.Errorf("internal error: %v; this is a bug, please report it", p)
			w.o.Log.Debug().Str("trace", string(debug.Stack())).Msg(err.Error())
		}
	}()
	return write()
}

// rest waits when there was too much to write; false once ctx has ended.
func (w *writer) rest(ctx context.Context) bool {
	now := time.Now()
	w.left = min(burst, w.left+now.Sub(w.since)/share)
	w.since = now
	if w.left > 0 {
		return ctx.Err() == nil
	}
	select {
	case <-time.After(-w.left * share):
		return true
	case <-ctx.Done():
		return false
	}
}
