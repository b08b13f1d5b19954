package lane

import (
	"container/heap"
	"time"
)

// group is what waits for one hook. Each of its items that has events, and is neither taken nor waiting for a change,
// is in one of two heaps: all is found without a look at the rest, for there may be as many items as objects.
type group[E any] struct {
	items   map[string]*item[E]
	failing map[string]*item[E] // those of items that have failed
	due     queue[E]            // by order, then by arrival
	later   queue[E]            // by the time until which they must wait
	turn    int                 // when something of the group was taken last
}

type item[E any] struct {
	key          string
	events       []E
	most         int       // more of them than this, and than a few, are looked at again
	seq          int       // when it began to wait: first come, first served
	order        int       // first attempts go by order
	notBefore    time.Time // backoff
	awaitsChange bool      // failed for good: only news bring it back
	attempt      int       // failures in a row
	lastRun      time.Time
	soon         time.Time // of what is taken: when the next try comes if it fails; zero: by its backoff

	in *queue[E] // where it waits, or nil
	at int       // its index there
}

func newGroup[E any]() *group[E] {
	g := &group[E]{items: map[string]*item[E]{}, failing: map[string]*item[E]{}}
	g.due.less = before[E]
	g.later.less = func(a, b *item[E]) bool { return a.notBefore.Before(b.notBefore) }
	return g
}

func before[E any](a, b *item[E]) bool {
	if a.order != b.order {
		return a.order < b.order
	}
	return a.seq < b.seq
}

// before says whether the group, of which something is due, goes before another one.
func (g *group[E]) before(other *group[E]) bool {
	a, b := g.due.items[0], other.due.items[0]
	if a.order != b.order {
		return a.order < b.order
	}
	return max(a.seq, g.turn) < max(b.seq, other.turn)
}

// wait puts an item in its heap; what must wait for a time is due once that has come.
func (g *group[E]) wait(it *item[E]) {
	to := &g.due
	if !it.notBefore.IsZero() {
		to = &g.later
	}
	if it.in == to {
		heap.Fix(to, it.at)
		return
	}
	g.hold(it)
	heap.Push(to, it)
}

// hold takes an item out of its heap.
func (g *group[E]) hold(it *item[E]) {
	if it.in != nil {
		heap.Remove(it.in, it.at)
	}
}

// promote makes due what had to wait until now.
func (g *group[E]) promote(now time.Time) {
	for len(g.later.items) > 0 && !g.later.items[0].notBefore.After(now) {
		it := g.later.items[0]
		g.hold(it)
		heap.Push(&g.due, it)
	}
}

// queue is a heap of items.
type queue[E any] struct {
	items []*item[E]
	less  func(a, b *item[E]) bool
}

func (q *queue[E]) Len() int           { return len(q.items) }
func (q *queue[E]) Less(i, j int) bool { return q.less(q.items[i], q.items[j]) }

func (q *queue[E]) Swap(i, j int) {
	q.items[i], q.items[j] = q.items[j], q.items[i]
	q.items[i].at, q.items[j].at = i, j
}

func (q *queue[E]) Push(x any) {
	it := x.(*item[E])
	it.in, it.at = q, len(q.items)
	q.items = append(q.items, it)
}

func (q *queue[E]) Pop() any {
	last := len(q.items) - 1
	it := q.items[last]
	q.items[last] = nil
	q.items = q.items[:last]
	it.in = nil
	return it
}
