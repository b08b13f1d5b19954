package watch

import (
	"cmp"
	"slices"
	"sync"
)

// part is one of the streams that make up a subscription: one a namespace and
// name.
type part struct {
	stream *stream
	view   *view
	synced bool
	failed error // of the stream
	broken error // of the filter
	lacks  bool  // the filter has not taken every object once
}

// subscription is one running [Spec].
type subscription struct {
	spec Spec
	sink Sink
	turn chan struct{} // of its module, for filters that are called apart

	// place and following are guarded by the manager's mutex. place is nil while
	// the kind is not served, or not looked up yet; following watches the
	// namespaces, with NamespaceLabels.
	place     *placement
	following *subscription

	mu       sync.Mutex
	stopped  bool
	parts    []*part
	expected int   // how many parts there will be; not known yet
	synced   bool  // Synced was called for the objects, and is still true
	looking  error // why the kind could not be looked up
	guide    error // why the namespaces that match are not known
	refused  error // why there are no streams for all namespaces

	reported string // text of the last Failed, "" for none
	lacked   bool   // and whether it told of objects that lack
	queue    []delivery
	flushing bool
}

// delivery is one call of the sink.
type delivery struct {
	synced bool
	served bool

	events []Event
	own    bool // events is shared with nobody

	failed bool
	err    error
	lacks  bool
}

// unknown stands for a number of parts that is not known.
const unknown = -1

func newSubscription(spec Spec, sink Sink) *subscription {
	return &subscription{spec: spec, sink: sink, expected: unknown}
}

// begin prepares the subscription for its parts, which come through add once
// their number is known.
func (s *subscription) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts, s.expected, s.synced, s.looking, s.refused = nil, unknown, false, nil, nil
	s.showLocked()
}

// expect says how many parts there will be.
func (s *subscription) expect(parts int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expected = parts
	s.showLocked()
	s.checkSyncedLocked()
}

// add takes in one part. It is called with the stream's lock held, so that no news
// of the stream is missed.
func (s *subscription) add(p *part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts = append(s.parts, p)
	s.showLocked()
	if p.synced {
		s.appearLocked(p)
	}
	s.checkSyncedLocked()
}

// appearLocked tells of the objects of a part that came after the first sync.
// Called with the lock of the part's stream held.
func (s *subscription) appearLocked(p *part) {
	if !s.synced || len(p.view.rows) == 0 {
		return
	}
	events := make([]Event, len(p.view.rows))
	for i, r := range p.view.rows {
		events[i] = r.event(Added)
	}
	s.pushLocked(delivery{events: events})
}

func (s *subscription) allParts() []*part {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.parts)
}

// drop takes a part out and says whether its objects have been told of. The part's
// stream brings nothing any more.
func (s *subscription) drop(p *part) (reported bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts = slices.DeleteFunc(s.parts, func(other *part) bool { return other == p })
	return s.synced && p.synced
}

// syncedParts returns the parts that are synced, once all were, and whether that is
// so. The others are those of namespaces that have just begun to match.
func (s *subscription) syncedParts() (parts []*part, synced bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.synced {
		return nil, false
	}
	for _, p := range s.parts {
		if p.synced {
			parts = append(parts, p)
		}
	}
	return parts, true
}

func (s *subscription) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	s.queue = nil
}

func (s *subscription) checkSyncedLocked() {
	if s.synced || s.expected == unknown || len(s.parts) < s.expected {
		return
	}
	for _, p := range s.parts {
		if !p.synced || p.lacks {
			return
		}
	}
	s.synced = true
	s.pushLocked(delivery{synced: true, served: true})
}

// unsynced marks a part whose objects are gone from memory.
func (s *subscription) unsynced(p *part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.synced, s.synced = false, false
}

// notServed says that the kind is not served (any more); the events tell what has
// gone with it.
func (s *subscription) notServed(events []Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(events) > 0 {
		s.pushLocked(delivery{events: events})
	}
	s.synced, s.looking, s.expected = false, nil, unknown
	s.showLocked()
	s.pushLocked(delivery{synced: true})
}

// changed queues events of a part; before it has synced there are none, because the snapshot, or what is told then,
// shows it all.
func (s *subscription) changed(p *part, events []Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.synced && p.synced && len(events) > 0 {
		s.pushLocked(delivery{events: events})
	}
}

// listed takes in that a part has its objects of a list, with the events for what differs. It is synced once that is
// the list that it waits for: whole says so. Called with the lock of its stream held.
func (s *subscription) listed(p *part, events []Event, whole bool) {
	s.changed(p, events)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case p.synced && s.synced && s.spec.Lists:
		s.pushLocked(delivery{synced: true, served: true})
	case !p.synced && whole:
		p.synced = true
		s.appearLocked(p)
		s.checkSyncedLocked()
	}
}

// left queues the events for what a part that was dropped has taken along.
func (s *subscription) left(events []Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(events) > 0 {
		s.pushLocked(delivery{events: events})
	}
}

// failed sets or clears one of what may be wrong: looking, guide, refused, and failed of a part.
func (s *subscription) failed(of *error, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*of = err
	s.showLocked()
}

// filterFailed sets or clears the error of a part's filter.
func (s *subscription) filterFailed(p *part, err error, lacks bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.broken, p.lacks = err, lacks
	s.showLocked()
	s.checkSyncedLocked()
}

// showLocked queues a Failed when what is wrong has changed.
func (s *subscription) showLocked() {
	err, lacks := cmp.Or(s.looking, s.guide, s.refused), s.refused != nil
	for _, p := range s.parts {
		err, lacks = cmp.Or(err, p.failed), lacks || p.lacks
	}
	text := ""
	for _, p := range s.parts {
		err = cmp.Or(err, p.broken)
	}
	if err != nil {
		text = err.Error()
	}
	if text != s.reported || lacks != s.lacked {
		s.reported, s.lacked = text, lacks
		s.pushLocked(delivery{failed: true, err: err, lacks: lacks})
	}
}

func (s *subscription) pushLocked(msg delivery) {
	if s.stopped {
		return
	}
	if n := len(s.queue); n > 0 && msg.events != nil && s.queue[n-1].events != nil {
		// Events that piled up while the sink was busy go out in one call. The slice
		// that came first may be shared with another subscription.
		last := &s.queue[n-1]
		if !last.own {
			last.events, last.own = slices.Clone(last.events), true
		}
		last.events = append(last.events, msg.events...)
		return
	}
	s.queue = append(s.queue, msg)
}

// flush calls the sink with what is queued. It must be called without any lock.
// A goroutine that comes while another delivers leaves it to that one, so that
// calls are in order and never two at once.
func (s *subscription) flush() {
	for {
		s.mu.Lock()
		if s.flushing || len(s.queue) == 0 {
			s.mu.Unlock()
			return
		}
		queue := s.queue
		s.queue, s.flushing = nil, true
		s.mu.Unlock()
		for _, msg := range queue {
			s.deliver(msg)
		}
		s.mu.Lock()
		s.flushing = false
		s.mu.Unlock()
	}
}

func (s *subscription) deliver(msg delivery) {
	s.mu.Lock()
	stopped := s.stopped
	s.mu.Unlock()
	switch {
	case stopped:
	case msg.failed:
		s.sink.Failed(s.spec.ID, msg.err, msg.lacks)
	case msg.events != nil:
		s.sink.Changed(s.spec.ID, msg.events)
	case msg.synced:
		s.sink.Synced(s.spec.ID, msg.served)
	}
}
