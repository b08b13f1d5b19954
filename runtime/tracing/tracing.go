// Package tracing tells a collector of OpenTelemetry what led to what: an event, the run of the
// hook, the write of what the run asked for, the release. Spans go out over OTLP's HTTP, as JSON.
// They hold names, numbers and times, and neither values nor texts of errors: those may hold
// Secrets, and `starling get runs` shows them.
package tracing

import (
	"crypto/rand"
	"encoding/binary"
	"sync"
	"time"
)

// Parent is what a span can be made below: the zero value is below nothing.
type Parent struct {
	trace [16]byte
	span  [8]byte
}

// IsZero says that nothing is above.
func (p Parent) IsZero() bool { return p == Parent{} }

// Kind says what a span is, as OpenTelemetry numbers it.
type Kind int

// Kinds of spans: work inside of Starling, a request of Starling to others, and what others have
// sent.
const (
	Internal Kind = 1
	Client   Kind = 3
	Consumer Kind = 5
)

// Attribute is a name with a string, an int, or a bool.
type Attribute struct {
	Key   string
	Value any
}

// Span is a piece of work that has begun.
type Span struct {
	tracer *Tracer
	parent Parent
	self   Parent
	name   string
	kind   Kind
	began  time.Time
	ended  time.Time
	failed bool
	attrs  []Attribute
	links  []Parent
}

// Start begins a span below a parent, or a new trace. Links are other spans that have led to it.
func (t *Tracer) Start(below Parent, kind Kind, name string, began time.Time, links []Parent, attrs ...Attribute) *Span {
	s := &Span{tracer: t, parent: below, name: name, kind: kind, began: began, attrs: attrs, links: links}
	s.self.trace = below.trace
	if below.IsZero() {
		t.random(s.self.trace[:])
	}
	t.random(s.self.span[:])
	return s
}

// Self is what is above others of the span.
func (s *Span) Self() Parent { return s.self }

// End ends the span, and has it sent. Failed says how the work ended. A span ends once.
func (s *Span) End(at time.Time, failed bool, attrs ...Attribute) {
	s.ended, s.failed = at, failed
	s.attrs = append(s.attrs, attrs...)
	s.tracer.put(s)
}

// random fills an id, which must not be zero.
func (t *Tracer) random(id []byte) {
	_, _ = rand.Read(id) // it never fails
	if len(id) == 8 && binary.BigEndian.Uint64(id) == 0 {
		id[0] = 1
	}
}

// Recent remembers the last of what it is told, so that what never ends takes no memory. It is safe
// for concurrent use.
type Recent[K comparable] struct {
	mu    sync.Mutex
	of    map[K]Parent
	order []K // as they came, each once
	most  int
}

// NewRecent remembers so many.
func NewRecent[K comparable](most int) *Recent[K] { return &Recent[K]{of: map[K]Parent{}, most: most} }

// Put remembers a span.
func (r *Recent[K]) Put(key K, span Parent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, there := r.of[key]; !there {
		if len(r.order) == r.most {
			delete(r.of, r.order[0])
			r.order = r.order[1:]
		}
		r.order = append(r.order, key)
	}
	r.of[key] = span
}

// Get returns the span, or the zero value.
func (r *Recent[K]) Get(key K) Parent {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[key]
}
