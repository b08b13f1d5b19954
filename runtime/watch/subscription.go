package watch

import (
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
}

// subscription is one running [Spec].
type subscription struct {
	spec Spec
	sink Sink

	mu       sync.Mutex
	stopped  bool
	parts    []*part
	expected int   // how many parts there will be
	synced   bool  // Synced was called for the objects, and is still true
	looking  error // why the kind could not be looked up

	shown    string // text of the last Failed, "" for none
	queue    []message
	flushing bool
}

// message is one call of the sink.
type message struct {
	synced bool
	served bool

	events []Event
	own    bool // events is shared with nobody

	failed bool
	err    error
}

// begin prepares the subscription for its parts, which come through add.
func (s *subscription) begin(parts int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts, s.expected, s.synced, s.looking = nil, parts, false, nil
}

// add takes in one part. It is called with the stream's lock held, so that no news
// of the stream is missed.
func (s *subscription) add(p *part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts = append(s.parts, p)
	s.showLocked()
	s.checkSyncedLocked()
}

func (s *subscription) takeParts() []*part {
	s.mu.Lock()
	defer s.mu.Unlock()
	parts := s.parts
	s.parts = nil
	return parts
}

// syncedParts returns the parts when all of them are synced, else none.
func (s *subscription) syncedParts() []*part {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.synced {
		return nil
	}
	return s.parts
}

func (s *subscription) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	s.queue = nil
}

// viewSynced marks the part of a view.
func (s *subscription) viewSynced(v *view) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.parts {
		if p.view == v {
			p.synced = true
		}
	}
	s.checkSyncedLocked()
}

func (s *subscription) checkSyncedLocked() {
	if s.synced || len(s.parts) == 0 || len(s.parts) < s.expected {
		return
	}
	for _, p := range s.parts {
		if !p.synced {
			return
		}
	}
	s.synced = true
	s.pushLocked(message{synced: true, served: true})
}

// notServed says that the kind is not served (any more); rows are what was kept.
func (s *subscription) notServed(rows []*row, events []Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.synced && len(rows) > 0 {
		s.pushLocked(message{events: events})
	}
	s.synced, s.looking, s.expected = false, nil, 0
	s.showLocked()
	s.pushLocked(message{synced: true})
}

// changed queues events; before the first sync there are none, because the
// snapshot shows it all.
func (s *subscription) changed(events []Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.synced {
		s.pushLocked(message{events: events})
	}
}

// lookupFailed says why the kind cannot be looked up.
func (s *subscription) lookupFailed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looking = err
	s.showLocked()
}

// partFailed sets or clears the error of a part's stream, or with filter of its
// filter.
func (s *subscription) partFailed(v *view, err error, filter bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.parts {
		switch {
		case p.view != v:
		case filter:
			p.broken = err
		default:
			p.failed = err
		}
	}
	s.showLocked()
}

// showLocked queues a Failed when what is wrong has changed.
func (s *subscription) showLocked() {
	err := s.looking
	for _, p := range s.parts {
		if err == nil {
			err = p.failed
		}
	}
	for _, p := range s.parts {
		if err == nil {
			err = p.broken
		}
	}
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != s.shown {
		s.shown = text
		s.pushLocked(message{failed: true, err: err})
	}
}

func (s *subscription) pushLocked(msg message) {
	if s.stopped {
		return
	}
	if n := len(s.queue); n > 0 && msg.events != nil && s.queue[n-1].events != nil {
		// What piled up while the sink was busy goes out in one call. The slice
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
// Whoever comes while another goroutine delivers leaves it to that one, so that
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

func (s *subscription) deliver(msg message) {
	s.mu.Lock()
	stopped := s.stopped
	s.mu.Unlock()
	switch {
	case stopped:
	case msg.failed:
		s.sink.Failed(s.spec.ID, msg.err)
	case msg.events != nil:
		s.sink.Changed(s.spec.ID, msg.events)
	case msg.synced:
		s.sink.Synced(s.spec.ID, msg.served)
	}
}

// on says whether one of the subscription's parts is on a stream.
func (s *subscription) on(st *stream) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.parts {
		if p.stream == st {
			return true
		}
	}
	return false
}
