// Package lane holds the line of work of one module: which hook runs next, with
// which events, and when a failed one is tried again. It is data and decisions
// only: no goroutines, no clock. The engine asks, a driver acts.
package lane

import (
	"math"
	"slices"
	"time"
)

// MaxEvents is how many events may wait for one hook. Past it the events are
// replaced by what [Options].Overflow returns: snapshots tell the whole truth,
// events are hints.
const MaxEvents = 1000

// Unordered is the order of work that has no say in who goes first: after all
// that has one, in the order of arrival.
const Unordered = math.MaxInt

// Options configures a [Lane].
type Options[E any] struct {
	// Overflow stands in for events that are too many to keep. It must not be
	// nil.
	Overflow func(dropped []E) []E
}

// Lane is the line of work of one module. At most one item is taken at a time;
// all that waits for one key is one piece of work. A Lane is not safe for
// concurrent use.
type Lane[E any] struct {
	overflow func([]E) []E
	items    map[string]*item[E]
	taken    string
	seq      int
}

type item[E any] struct {
	events    []E
	seq       int       // when it began to wait: first come, first served
	order     int       // first attempts go by order
	notBefore time.Time // backoff
	parked    bool      // failed for good: only news bring it back
	attempt   int       // failures in a row
	lastRun   time.Time
}

// Work is one piece of work taken from a lane.
type Work[E any] struct {
	Key    string
	Events []E
	// Attempt is 1 for a first try, 2 after one failure, and so on.
	Attempt int
}

// New returns an empty lane.
func New[E any](o Options[E]) *Lane[E] {
	return &Lane[E]{overflow: o.Overflow, items: map[string]*item[E]{}}
}

// Add makes events wait for key, joined with those that already wait. Order puts
// a first attempt before those with a higher order.
func (l *Lane[E]) Add(key string, order int, events ...E) {
	it := l.items[key]
	if it == nil {
		it = &item[E]{}
		l.items[key] = it
	}
	if len(it.events) == 0 {
		l.seq++
		it.seq, it.order = l.seq, order
	}
	it.order, it.parked = min(it.order, order), false
	it.events = l.cap(append(it.events, events...))
}

// Nudge lets a key that waits for its next try run again as soon as pause has
// passed since its last run: something changed, so a long backoff has lost its
// reason. The same for what failed for good.
func (l *Lane[E]) Nudge(key string, pause time.Duration) {
	it := l.items[key]
	if it == nil || it.attempt == 0 {
		return
	}
	if soon := it.lastRun.Add(pause); it.parked || soon.Before(it.notBefore) {
		it.notBefore, it.parked = soon, false
	}
}

// Next takes the piece of work that is due: by order, then in the order of
// arrival. Ready may hold a key back. It returns false when nothing is due or
// another piece is still taken.
func (l *Lane[E]) Next(now time.Time, ready func(key string) bool) (Work[E], bool) {
	if l.taken != "" {
		return Work[E]{}, false
	}
	var best *item[E]
	var bestKey string
	for key, it := range l.items {
		if len(it.events) == 0 || it.parked || it.notBefore.After(now) || !ready(key) {
			continue
		}
		if best == nil || before(it, best) {
			best, bestKey = it, key
		}
	}
	if best == nil {
		return Work[E]{}, false
	}
	w := Work[E]{Key: bestKey, Events: best.events, Attempt: best.attempt + 1}
	best.events, best.lastRun = nil, now
	l.taken = bestKey
	return w, true
}

func before[E any](a, b *item[E]) bool {
	if a.order != b.order {
		return a.order < b.order
	}
	return a.seq < b.seq
}

// Done gives back work that succeeded.
func (l *Lane[E]) Done(w Work[E]) {
	l.taken = ""
	if it := l.items[w.Key]; it != nil {
		it.attempt, it.notBefore = 0, time.Time{}
	}
}

// Failed gives back work that failed. Its events wait again, before any that came
// in the meantime, until the time given.
func (l *Lane[E]) Failed(w Work[E], next time.Time) {
	l.taken = ""
	it := l.items[w.Key]
	if it == nil {
		return
	}
	it.attempt++
	it.notBefore = next
	// Tried once, its turn no longer goes by order, or it would hold back
	// those behind it.
	it.order = Unordered
	l.seq++
	it.seq = l.seq
	it.events = l.cap(append(slices.Clone(w.Events), it.events...))
}

// Parked gives back work that is not to be repeated as it is: it failed for good.
// Its events wait for a new one, or for a [Lane.Nudge].
func (l *Lane[E]) Parked(w Work[E]) {
	it := l.items[w.Key]
	news := it != nil && len(it.events) > 0
	l.Failed(w, time.Time{})
	if it != nil {
		it.parked = !news
	}
}

func (l *Lane[E]) cap(events []E) []E {
	if len(events) <= MaxEvents {
		return events
	}
	return l.overflow(events)
}

// Clear drops all that waits. Work that is taken stays taken until it is given
// back.
func (l *Lane[E]) Clear() { clear(l.items) }

// Taken returns the key of the work under way, or "".
func (l *Lane[E]) Taken() string { return l.taken }

// Waiting says whether something waits for key, and until when it must.
func (l *Lane[E]) Waiting(key string) (notBefore time.Time, waits bool) {
	it := l.items[key]
	if it == nil || len(it.events) == 0 {
		return time.Time{}, false
	}
	return it.notBefore, true
}

// Attempt returns how often key has failed in a row.
func (l *Lane[E]) Attempt(key string) int {
	if it := l.items[key]; it != nil {
		return it.attempt
	}
	return 0
}

// Wake returns when the next held piece of work falls due; ok is false when
// nothing waits for a time.
func (l *Lane[E]) Wake(now time.Time) (at time.Time, ok bool) {
	for _, it := range l.items {
		if len(it.events) == 0 || !it.notBefore.After(now) {
			continue
		}
		if !ok || it.notBefore.Before(at) {
			at, ok = it.notBefore, true
		}
	}
	return at, ok
}
