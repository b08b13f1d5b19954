package script

import (
	"context"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"
)

// Governor keeps the Starlark runs of one process from eating its memory. The Go
// heap cannot be told apart by run, so: below a soft mark nothing happens; past
// it every run stops at its next checkpoint and they go on one at a time, each
// holding the turn until it ends, or until the heap is below the mark again.
// Whoever then still grows by more than its Limits.Heap is cancelled.
//
// A run that sits in one long builtin cannot be stopped there. One Governor is
// shared by all hosts of a process. It is safe for concurrent use.
type Governor struct {
	soft uint64
	read func() uint64
	gc   func()

	heap     atomic.Uint64 // last sample
	pressure atomic.Bool   // heap was past soft in the last sample
	turn     chan struct{} // holds one token: the exclusive turn

	mu      sync.Mutex
	active  int // runs between enter and leave
	ticking bool
	timer   *time.Timer
}

// GovernorOptions configures a [Governor].
type GovernorOptions struct {
	// Soft is the heap in bytes past which runs go one at a time; 0 means
	// 512 MiB.
	Soft uint64
	// Read returns the bytes of live and unswept heap objects; nil reads the Go
	// runtime's metric.
	Read func() uint64
	// GC collects garbage before a run is judged; nil means runtime.GC.
	GC func()
}

const (
	defaultSoft = 512 << 20
	// sampleEvery is how often the heap is looked at while anything runs. A run
	// can double what it holds about once in that time, at the sizes that
	// matter, so it bounds how far past the mark a run gets unseen.
	sampleEvery = 5 * time.Millisecond
)

// NewGovernor returns a governor that watches the heap of this process.
func NewGovernor(o GovernorOptions) *Governor {
	g := &Governor{soft: o.Soft, read: o.Read, gc: o.GC, turn: make(chan struct{}, 1)}
	if g.soft == 0 {
		g.soft = defaultSoft
	}
	if g.read == nil {
		g.read = readHeap
	}
	if g.gc == nil {
		g.gc = runtime.GC
	}
	return g
}

func readHeap() uint64 {
	s := [1]metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s[:])
	return s[0].Value.Uint64()
}

// enter and leave go around every run; the heap is sampled in between only.
func (g *Governor) enter() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.active++
	if g.ticking {
		return
	}
	g.ticking = true
	if g.timer == nil {
		g.timer = time.AfterFunc(sampleEvery, g.tick)
	} else {
		g.timer.Reset(sampleEvery)
	}
}

func (g *Governor) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.active--
}

func (g *Governor) tick() {
	g.sample()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.active == 0 {
		g.ticking = false
		return
	}
	g.timer.Reset(sampleEvery)
}

func (g *Governor) sample() uint64 {
	h := g.read()
	g.heap.Store(h)
	g.pressure.Store(h >= g.soft)
	return h
}

// share is what one run has of its governor. It belongs to the run's goroutine.
type share struct {
	g     *Governor
	limit int64
	holds bool   // has the turn
	base  uint64 // heap when it got the turn
}

// wanted is the cheap question of every checkpoint: is there anything to look at?
func (s *share) wanted() bool { return s.g != nil && s.g.pressure.Load() }

// check lets the run go on, makes it wait for its turn, or returns a
// *LimitError. It returns nil when ctx ends while it waits; the caller looks at
// ctx anyway. pause is called before a wait and its result after it.
func (s *share) check(ctx context.Context, pause func() (resume func())) error {
	if s.g == nil {
		return nil
	}
	if !s.holds {
		if s.g.sample() < s.g.soft {
			return nil
		}
		resume := pause()
		defer resume()
		select {
		case s.g.turn <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		s.holds = true
		s.base = s.collect()
		if s.base < s.g.soft {
			s.release() // whoever filled the heap is gone
		}
		return nil
	}
	if !s.over(s.g.heap.Load()) {
		return nil
	}
	// What the sample counts may be garbage, so it is collected before the verdict.
	now := s.collect()
	if s.over(now) {
		return memoryLimit(s.limit)
	}
	if now < s.g.soft {
		s.release()
	}
	return nil
}

func (s *share) over(heap uint64) bool {
	return heap > s.base && heap-s.base > uint64(s.limit)
}

func (s *share) collect() uint64 {
	s.g.gc()
	return s.g.sample()
}

func (s *share) release() {
	if s.holds {
		s.holds = false
		<-s.g.turn
	}
}
