package record

import (
	"slices"
	"sync"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/hook"
	"github.com/starling-operator/starling/runtime/object"
)

const (
	// maxQueued is how many runs wait to be kept, maxWeight how much memory they may
	// hold on to together, and maxOne how much the last of them alone, in KiB.
	maxQueued = 256
	maxWeight = 8 << 10
	maxOne    = 16 << 10
	// maxGenerations is of how many generations they are: each holds on to a module tree.
	maxGenerations = 4
)

// queue holds the runs that wait. Nobody waits for it: when it is full it lets go of a
// run that tells least.
type queue struct {
	mu     sync.Mutex
	runs   []*Trace    // oldest first
	of     map[int]int // how many of each generation; modules that are held have an earlier one
	weight int
	late   []amendment   // of runs that wait no more, oldest first
	signal chan struct{} // something is there
	hurry  chan struct{} // it is half full
}

func newQueue() *queue {
	return &queue{of: map[int]int{}, signal: make(chan struct{}, 1), hurry: make(chan struct{}, 1)}
}

// weigh says how much memory a run holds on to that may be nobody else's, in KiB.
func (t *Trace) weigh() int { return t.weight + len(t.logs)/4 + len(t.random)>>10 + 1 }

// weighRequest is that of what a run was given, in bytes. The values of a snapshot are
// those of the watch, but the list of them, and what its events are about, soon are
// this run's alone.
func weighRequest(r *hook.Request) int {
	const pointer, enough = 16, maxOne << 10
	size := 0
	for _, values := range r.Snapshots {
		size += len(values) * pointer
	}
	for _, e := range r.Events {
		size += 10 * pointer
		for _, v := range [...]starlark.Value{e.Result, e.Object, e.Old} {
			if v != nil {
				n, _ := object.TextSize(v, enough)
				size += n
			}
		}
	}
	if q := r.Request; q != nil {
		if q.Review == nil {
			size += object.PlainSize(q.Object)
		} else { // of the same object; there may be an old one too, which is decoded later
			size += 3 * object.PlainSize(q.Review.Object)
		}
		for _, m := range q.Objects {
			size += object.PlainSize(m)
		}
		if q.Received != nil {
			size += len(q.Received.Body)
		}
	}
	return size
}

// add takes a run, and returns how many it has let go of.
func (q *queue) add(t *Trace) (dropped int) {
	weight := t.weigh()
	q.mu.Lock()
	defer q.mu.Unlock()
	if weight > maxOne {
		return 1
	}
	q.runs, q.weight = append(q.runs, t), q.weight+weight
	q.of[t.Generation]++
	for len(q.runs) > maxQueued || q.weight > maxWeight && len(q.runs) > 1 {
		q.remove(q.least())
		dropped++
	}
	for len(q.of) > maxGenerations {
		q.remove(0)
		dropped++
	}
	tell(q.signal)
	if len(q.runs) > maxQueued/2 || q.weight > maxWeight/2 {
		tell(q.hurry)
	}
	return dropped
}

func tell(signal chan struct{}) {
	select {
	case signal <- struct{}{}:
	default:
	}
}

// least is the run that tells least: the oldest that has succeeded and is not the last
// one of its hook; else the oldest that is not the last failure; else the oldest.
func (q *queue) least() int {
	for _, failed := range [...]bool{false, true} {
		for i, r := range q.runs {
			if r.failed() != failed {
				continue
			}
			for _, later := range q.runs[i+1:] {
				if later.request.Hook == r.request.Hook && later.failed() == failed {
					return i
				}
			}
		}
	}
	return 0
}

// amend notes why a run that was added could not be committed.
func (q *queue) amend(a amendment) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, t := range q.runs {
		if t.Run == a.run {
			t.refused = a.why
			return
		}
	}
	if q.late = append(q.late, a); len(q.late) > maxQueued {
		q.late = slices.Delete(q.late, 0, 1)
	}
	tell(q.signal)
}

// amendment returns the first amendment; false when there is nothing.
func (q *queue) amendment() (amendment, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.late) == 0 {
		return amendment{}, false
	}
	a := q.late[0]
	q.late = slices.Delete(q.late, 0, 1)
	return a, true
}

// take returns the run that waits longest, nil when none does.
func (q *queue) take() *Trace {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.runs) == 0 {
		return nil
	}
	return q.remove(0)
}

// remove takes a run out. The queue is locked.
func (q *queue) remove(i int) *Trace {
	t := q.runs[i]
	q.weight -= t.weigh()
	if q.of[t.Generation]--; q.of[t.Generation] == 0 {
		delete(q.of, t.Generation)
	}
	q.runs = slices.Delete(q.runs, i, i+1)
	return t
}
