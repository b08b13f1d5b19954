package watch

import (
	"time"

	"github.com/starling-operator/starling/runtime/effect"
)

// task is an object that waits for the filter.
type task struct {
	key     objectKey
	version uint64
	obj     map[string]any // nil: it is read again
	size    int64
	seen    time.Time
	own     bool // a write of this process
	cause   *effect.Cause
	void    bool // the object is gone

	list *listing // that it is part of, or nil
	item *listed
	at   int // which outcome of the item is its own
}

// listing is a list that waits for the filter of one view.
type listing struct {
	waiting []*task
	left    time.Duration // of the patience in all
	room    chan struct{} // a token whenever one task fewer waits

	// items are all objects, at which outcome of them this view has, once the list is
	// complete.
	complete bool
	items    []*listed
	at       int
	version  uint64
	renewal  uint64        // of the stream, as the list was asked for
	filled   chan struct{} // closed when it has been taken in, or given up
}

// completed says that the items are all objects.
func (l *listing) completed(items []*listed, at int, version, renewal uint64) {
	l.complete, l.items, l.at, l.version, l.renewal = true, items, at, version, renewal
}

// queue is what waits for the filter of one view. The mutex of its stream guards it.
type queue struct {
	tasks   map[objectKey]*task // changes
	own     []objectKey         // writes of this process, which come first
	order   []objectKey         // the others
	list    *listing            // under way, or nil
	current *task
	working bool
	held    int64 // bytes that wait
	// owned counts the waiting writes of this process; settled is closed when none does.
	owned   int
	settled chan struct{}
}

// add has the newest state of an object wait.
func (q *queue) add(key objectKey, version uint64, obj map[string]any, seen time.Time, own bool, cause *effect.Cause) {
	t := q.tasks[key]
	if t == nil {
		t = &task{key: key}
		if q.tasks == nil {
			q.tasks = map[objectKey]*task{}
		}
		q.tasks[key] = t
		if !own {
			q.order = append(q.order, key)
		}
	}
	if own && !t.own { // the next run must see it, or what somebody has made of it since
		t.own = true
		q.own = append(q.own, key)
		if q.owned++; q.owned == 1 {
			q.settled = make(chan struct{})
		}
	}
	if own {
		t.cause = cause
	}
	if version != 0 && t.version > version {
		return
	}
	q.held -= t.size
	t.version, t.obj, t.size, t.seen = version, obj, 0, seen
	if q.working || len(q.tasks) > 1 { // else its turn is now
		t.size = weigh(obj)
	}
	if t.size > 0 && q.held+t.size > maxHeld {
		t.obj, t.size = nil, 0
	}
	q.held += t.size
}

// gone takes out what waits of an object that is deleted at a version, and returns the
// version that it is known to be gone at.
func (q *queue) gone(key objectKey, version uint64) uint64 {
	at := version
	if t := q.tasks[key]; t != nil && (version == 0 || t.version <= version) {
		at = max(at, t.version)
		q.take(t)
		q.ended(t)
	}
	if t := q.current; t != nil && t.key == key && (version == 0 || t.version <= version) {
		at = max(at, t.version)
		t.void = true
	}
	return at
}

// seenSince says whether a newer state of an object waits than that of a time.
func (q *queue) seenSince(key objectKey, at time.Time) bool {
	if t := q.tasks[key]; t != nil && t.seen.After(at) {
		return true
	}
	return q.current != nil && q.current.key == key && q.current.seen.After(at)
}

// take takes a change out.
func (q *queue) take(t *task) {
	delete(q.tasks, t.key)
	q.held -= t.size
}

// ended notes that a task needs no filter any more.
func (q *queue) ended(t *task) {
	if t.own {
		if q.owned--; q.owned == 0 {
			close(q.settled)
		}
	}
}

// next takes out the task whose turn it is: our own writes, which the next run must see,
// then lists. It returns nil at the end of a list, and when nothing waits.
func (q *queue) next() *task {
	for _, keys := range []*[]objectKey{&q.own, &q.order} {
		if keys == &q.order && q.list != nil {
			if l := q.list; len(l.waiting) > 0 {
				t := l.waiting[0]
				l.waiting[0] = nil
				l.waiting = l.waiting[1:]
				q.held -= t.size
				signal(l.room)
				return t
			}
			if q.list.complete {
				return nil
			}
		}
		for len(*keys) > 0 {
			key := (*keys)[0]
			*keys = (*keys)[1:]
			if t := q.tasks[key]; t != nil {
				q.take(t)
				return t
			}
		}
		*keys = nil
	}
	return nil
}

// restart drops the changes that wait: a list that is complete shows what there is.
func (q *queue) restart() {
	for _, t := range q.tasks {
		q.take(t)
		q.ended(t)
	}
	q.own, q.order = nil, nil
	if q.current != nil {
		q.current.void = true
	}
}

// forget drops all that waits: nobody needs it.
func (q *queue) forget() {
	q.restart()
	q.giveUp(q.list)
}

// giveUp ends a list that is not complete, or outdated.
func (q *queue) giveUp(l *listing) {
	if l == nil || q.list != l {
		return
	}
	for _, t := range l.waiting {
		q.held -= t.size
	}
	q.list, l.waiting = nil, nil
	close(l.filled)
}
