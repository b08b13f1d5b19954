package live

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/lane"
)

// inbox is the queue in front of the engine. Nobody who reports something waits for the
// engine, and however slow it is, what waits is bounded: of each object of a watch one
// event of each type, of a watch's trouble and of the user's ConfigMap the last state,
// of runs, commits and releases one answer each, and of requests maxRequests. Requests
// go first, for somebody waits for the answer; after maxAheadRequests of them something else has
// its turn.
type inbox struct {
	mu       sync.Mutex
	requests []engine.Input
	ahead    int // requests in a row that went before something that waits
	queue    []*entry
	// last is the entry of each watch that came last, of what may still change.
	last   map[string]*entry
	signal chan struct{}
}

// slotOfConfig is the slot of the user's config.
const slotOfConfig = " config"

// maxRequests bounds the requests that wait for the engine.
const maxRequests = 1000

// maxAheadRequests is how many requests go before something else that waits.
const maxAheadRequests = 8

// entry is one input that waits.
type entry struct {
	in     engine.Input
	slot   string               // its key in last, or ""
	each   bool                 // a WatchChanged whose objects have their own runs
	events map[eventKey]stamped // of a WatchChanged to which something was added
	seq    int
	count  map[string]int // of events, by type
}

// eventKey is what of a watch's events only the last one counts of.
type eventKey struct{ typ, namespace, name string }

type stamped struct {
	builtins.Event
	seq int
}

func newInbox() *inbox { return &inbox{last: map[string]*entry{}, signal: make(chan struct{}, 1)} }

// put makes an input wait, in the place of one that it makes void.
func (b *inbox) put(in engine.Input) {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer tell(b.signal)
	e := &entry{in: in}
	switch in := in.(type) {
	case engine.WatchSynced: // what changes later comes later
		e.slot = in.ID
	case engine.WatchFailed:
		e.slot = in.ID + " failed"
	case engine.Config:
		e.slot = slotOfConfig
	case engine.Kept: // all that there is
		e.slot = " kept of " + in.Module
	case engine.RunNow: // one waits, however often somebody asks
		e.slot = " run of " + in.Module + " " + in.Hook
	case engine.Drift: // which says what differs as it is handled
		e.slot = " drift of " + in.Module
	}
	if before := b.last[e.slot]; before != nil && before.voidBy(in) {
		before.in = in
		return
	}
	b.append(e)
}

// changed makes changes of a watch wait, joined with those that do. Each says that its
// objects have their own runs.
func (b *inbox) changed(in engine.WatchChanged, each bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer tell(b.signal)
	if e := b.last[in.ID]; e != nil && e.changes() {
		e.add(in.Events)
		return
	}
	b.append(&entry{in: in, slot: in.ID, each: each})
}

func (b *inbox) append(e *entry) {
	b.queue = append(b.queue, e)
	if e.slot != "" {
		b.last[e.slot] = e
	}
}

// drop takes back what waits in a slot.
func (b *inbox) drop(slot string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if before := b.last[slot]; before != nil {
		b.queue = slices.DeleteFunc(b.queue, func(e *entry) bool { return e == before })
		delete(b.last, slot)
	}
}

// clear takes back all that waits.
func (b *inbox) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests, b.queue, b.last = nil, nil, map[string]*entry{}
}

// putFirst makes an input wait that belongs to a request.
func (b *inbox) putFirst(in engine.Input) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests = append(b.requests, in)
	tell(b.signal)
}

// request makes a request wait, or says why not.
func (b *inbox) request(in engine.Requested) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.requests) >= maxRequests {
		return fmt.Errorf("hook %s: %d requests wait already: %w", in.Hook, len(b.requests), engine.ErrBusy)
	}
	b.requests = append(b.requests, in)
	tell(b.signal)
	return nil
}

// tell leaves a token in a channel that has room for one.
func tell(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// take returns what is next, and signals again when there is more.
func (b *inbox) take() (in engine.Input, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case len(b.requests) > 0 && (len(b.queue) == 0 || b.ahead < maxAheadRequests):
		if b.ahead++; len(b.queue) == 0 {
			b.ahead = 0
		}
		in = b.requests[0]
		b.requests[0] = nil
		b.requests = b.requests[1:]
	case len(b.queue) > 0:
		b.ahead = 0
		e := b.queue[0]
		b.queue[0] = nil
		b.queue = b.queue[1:]
		in = e.input()
		if b.last[e.slot] == e {
			delete(b.last, e.slot)
		}
	default:
		return nil, false
	}
	if len(b.requests)+len(b.queue) > 0 {
		tell(b.signal)
	}
	return in, true
}

func (e *entry) changes() bool {
	_, ok := e.in.(engine.WatchChanged)
	return ok
}

// voidBy says whether a later input of the same slot says all that this one does.
func (e *entry) voidBy(in engine.Input) bool {
	if synced, ok := in.(engine.WatchSynced); ok {
		before, ok := e.in.(engine.WatchSynced)
		return ok && before.Served == synced.Served
	}
	return true
}

// add joins events with those that wait. Of an object the last event of each type stays,
// in the order of these; more than a hook is told of are not kept.
func (e *entry) add(events []builtins.Event) {
	if e.events == nil {
		first := e.in.(engine.WatchChanged)
		e.events, e.count = make(map[eventKey]stamped, len(first.Events)+len(events)), map[string]int{}
		e.add(first.Events)
	}
	for _, ev := range events {
		key := eventKey{ev.Type, ev.Namespace, ev.Name}
		before, waits := e.events[key]
		switch {
		case waits:
			ev.Same = ev.Same && before.Same // what changed before has still to be told
			ev.Wakes = before.Wakes.And(ev.Wakes)
			if before.Old != nil { // of all that has changed since
				ev.Old = before.Old
			}
			if before.Cause.Compare(ev.Cause) > 0 {
				ev.Cause = before.Cause
			}
		case e.each || ev.Wakes != nil: // another event for other objects
		case e.count[ev.Type] > lane.MaxEvents:
			continue // the hook gets one sync for all of them
		default:
			e.count[ev.Type]++
		}
		e.seq++
		e.events[key] = stamped{ev, e.seq}
	}
}

// input is what the engine gets.
func (e *entry) input() engine.Input {
	if e.events == nil {
		return e.in
	}
	all := slices.SortedFunc(maps.Values(e.events), func(a, b stamped) int { return cmp.Compare(a.seq, b.seq) })
	in := e.in.(engine.WatchChanged)
	in.Events = make([]builtins.Event, len(all))
	for i, ev := range all {
		in.Events[i] = ev.Event
	}
	return in
}
