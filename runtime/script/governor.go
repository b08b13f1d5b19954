package script

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Governor keeps the Starlark runs of one process from eating its memory. The Go
// heap cannot be told apart by run, so: below a soft mark nothing happens; past
// it every run stops at its next checkpoint and they go on one at a time, each
// holding the turn until it ends, or until the heap is below the mark again.
// A run that then still grows by more than its Limits.Heap is cancelled; so is a run
// that reaches no checkpoint while the heap grows by that much, for a value that
// doubles a few dozen times is past any memory between two of them.
//
// A run cannot be stopped inside one builtin. One Governor is shared by all hosts
// of a process. It is safe for concurrent use.
type Governor struct {
	soft uint64
	hard uint64
	read func() uint64
	gc   func()
	give func() // gives memory back to the system

	heap     atomic.Uint64 // last sample
	pending  atomic.Int64  // bytes that runs have asked for since their last checkpoint
	pressure atomic.Bool   // heap was past soft in the last sample
	turns    turns

	mu      sync.Mutex
	active  map[*share]struct{} // runs between enter and leave
	ticking bool
	timer   *time.Timer
	giving  bool      // give will be called
	given   time.Time // when it was called last
}

// GovernorOptions configures a [Governor].
type GovernorOptions struct {
	// Soft is the heap in bytes past which runs go one at a time; 0 means
	// 512 MiB, or two fifths of the runtime's memory limit where that is less.
	Soft uint64
	// Hard is the heap in bytes that no operation which says what it takes may pass; 0 means three quarters of the
	// runtime's memory limit.
	Hard uint64
	// Read returns the bytes of live and unswept heap objects; nil reads the Go
	// runtime's metric.
	Read func() uint64
	// GC collects garbage before a run is judged; nil means runtime.GC.
	GC func()
	// Give collects garbage and gives memory back to the system; nil means
	// debug.FreeOSMemory.
	Give func()
}

const (
	defaultSoft = 512 << 20
	// giveEvery is how often memory is given back at most, after runs that were stopped
	// because they took too much.
	giveEvery = 10 * time.Second
	// sampleEvery is how often the heap is looked at while anything runs. At the
	// sizes that matter a run needs longer than that to double what it holds.
	sampleEvery = 5 * time.Millisecond
	// roomEvery is how often a run that waits for room looks for some: each time all garbage is collected.
	roomEvery = 250 * time.Millisecond
)

// NewGovernor returns a governor that watches the heap of this process.
func NewGovernor(o GovernorOptions) *Governor {
	g := &Governor{soft: o.Soft, hard: o.Hard, read: o.Read, gc: o.GC, give: o.Give, active: make(map[*share]struct{})}
	if g.soft == 0 {
		g.soft = min(defaultSoft, memory()/5*2)
	}
	if g.hard == 0 {
		g.hard = memory() / 4 * 3
	}
	if g.give == nil {
		g.give = debug.FreeOSMemory
	}
	if g.read == nil {
		g.read = readHeap
	}
	if g.gc == nil {
		g.gc = runtime.GC
	}
	return g
}

// memory is the runtime's memory limit in bytes; very much where there is none.
func memory() uint64 { return uint64(debug.SetMemoryLimit(-1)) }

func readHeap() uint64 {
	s := [1]metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s[:])
	return s[0].Value.Uint64()
}

// enter and leave go around every run; the heap is sampled in between only.
func (g *Governor) enter(s *share) {
	s.seen.Store(g.heap.Load())
	g.mu.Lock()
	defer g.mu.Unlock()
	g.active[s] = struct{}{}
	if g.ticking {
		return
	}
	g.ticking = true
	s.seen.Store(g.sample()) // nobody has looked for a while
	if g.timer == nil {
		g.timer = time.AfterFunc(sampleEvery, g.tick)
	} else {
		g.timer.Reset(sampleEvery)
	}
}

func (g *Governor) leave(s *share) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.active, s)
}

// tick samples the heap and stops the runs that reach no checkpoint while it
// grows.
func (g *Governor) tick() {
	heap := g.sample()
	if heap >= g.soft && len(g.runaways(heap, 1)) > 0 {
		// It may be garbage; but collecting takes time, in which it grows on.
		sure := g.runaways(heap, 2)
		if len(sure) == 0 {
			g.gc()
			sure = g.runaways(g.sample(), 1)
		}
		for _, s := range sure {
			s.cancel(memoryLimit(s.limit))
			g.stopped()
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.active) == 0 {
		g.ticking = false
		return
	}
	g.timer.Reset(sampleEvery)
}

// runaways returns the runs that have passed no checkpoint since the heap was
// smaller by so many times their limit.
func (g *Governor) runaways(heap uint64, times int64) []*share {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []*share
	for s := range g.active {
		if !s.paused.Load() && over(heap, s.seen.Load(), times*s.limit) {
			out = append(out, s)
		}
	}
	return out
}

func over(heap, before uint64, limit int64) bool { return heap > before && heap-before > uint64(limit) }

// sample looks at the heap. Memory that runs are about to take counts as taken.
func (g *Governor) sample() uint64 {
	h := g.read() + uint64(g.pending.Load())
	g.heap.Store(h)
	g.pressure.Store(h >= g.soft)
	return h
}

// share is what one run has of its governor. Without a governor there is no
// limit.
type share struct {
	g      *Governor
	limit  int64
	cancel func(cause error) // stops the run
	module string            // that the run is for

	// For the sampler: the heap at the last checkpoint, and whether the run waits
	// for its turn.
	seen   atomic.Uint64
	paused atomic.Bool

	// For the run's own goroutine: whether it has the turn, the heap when it got it, and
	// what it has asked for since its last checkpoint.
	holds bool
	taken int64 // what it took in earlier turns
	base  uint64
	asked int64
}

func (s *share) enter() {
	if s.g != nil {
		s.g.enter(s)
	}
}

func (s *share) leave() {
	if s.g != nil {
		s.settle()
		s.release()
		s.g.leave(s)
	}
}

// settle ends what was asked for: by now it is made, and the heap shows it.
func (s *share) settle() {
	if s.asked != 0 {
		s.g.pending.Add(-s.asked)
		s.asked = 0
	}
}

// stopped is told that a run was ended for its memory. Its memory is garbage from
// which Go would take its time, and the next try comes soon.
func (g *Governor) stopped() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.giving {
		return
	}
	g.giving = true
	time.AfterFunc(max(giveEvery-time.Since(g.given), sampleEvery), func() {
		g.give()
		g.mu.Lock()
		defer g.mu.Unlock()
		g.giving, g.given = false, time.Now()
	})
}

// passed is for the cheap checkpoints: it reports whether there is more to look
// at.
func (s *share) passed() bool {
	if s.g == nil {
		return false
	}
	s.settle()
	if s.g.pressure.Load() {
		return true // check looks at what was seen before
	}
	s.seen.Store(s.g.heap.Load())
	return false
}

// check lets the run go on, makes it wait for its turn, or returns a
// *LimitError. It returns nil when ctx ends while it waits; the caller looks at
// ctx anyway. pause is called before a wait and its result after it. more is how many
// bytes the run is about to make in one step.
func (s *share) check(ctx context.Context, pause func() (resume func()), more uint64) error {
	if s.g == nil {
		return nil
	}
	s.settle()
	now := s.g.sample()
	overdue := false
	if s.holds {
		s.holds, overdue = s.g.turns.checkpoint(s)
	}
	since, limit, all := s.seen.Load()+uint64(s.g.pending.Load()), s.limit, uint64(0) // what others are about to take is theirs
	if s.holds {
		since, limit, all = s.base, s.limit-s.taken, more
	}
	passes := func() bool { return over(now+all, since, limit) || int64(more) > limit }
	if passes() {
		// The sample may count garbage, so it is collected first.
		s.g.gc()
		if now = s.g.sample(); passes() {
			s.g.stopped()
			return memoryLimit(s.limit)
		}
	}
	now += more
	if overdue {
		if s.taken += max(int64(now)-int64(since), 0); s.taken > s.limit/turnShare {
			return &LimitError{Limit: LimitTime, Max: turnFor.String() + " in which it alone could take memory"}
		}
		s.release() // and waits for its next turn
	}
	s.seen.Store(now)
	switch {
	case now < s.g.soft:
		s.release()
	case !s.holds && s.fits(ctx, pause, more):
		s.seen.Store(s.base + more)
		if s.base+more < s.g.soft {
			s.release() // the run that filled the heap is gone
		} else if more > uint64(s.limit) {
			return memoryLimit(s.limit)
		}
	}
	if s.holds && more > 0 && s.g.sample()+more > s.g.hard {
		if s.g.gc(); s.g.sample()+more > s.g.hard {
			s.g.stopped()
			return &LimitError{Limit: LimitRoom, Max: strconv.FormatUint(more>>20, 10) + " MiB more"}
		}
	}
	s.asked = int64(more)
	s.g.pending.Add(s.asked)
	return nil
}

// fits takes the turn, and gives it back for others as long as there is no room for so many bytes beside what they have.
// It returns false when ctx ended first. With the turn and without the room the run is alone, or has waited long enough.
func (s *share) fits(ctx context.Context, pause func() (resume func()), more uint64) bool {
	for waited := time.Duration(0); s.wait(ctx, pause); waited += roomEvery {
		s.g.gc()
		s.base = s.g.sample()
		if more == 0 || s.base+more <= s.g.hard || waited >= turnFor || s.g.alone() {
			return true
		}
		s.release()
		s.rest(ctx, pause)
	}
	return false
}

// rest has a run wait for a moment without its turn.
func (s *share) rest(ctx context.Context, pause func() (resume func())) {
	s.paused.Store(true)
	defer s.paused.Store(false)
	defer pause()()
	select {
	case <-time.After(roomEvery):
	case <-ctx.Done():
	}
}

// alone says that one run is under way.
func (g *Governor) alone() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.active) == 1
}

// wait takes the turn; false when ctx ended first.
func (s *share) wait(ctx context.Context, pause func() (resume func())) bool {
	s.paused.Store(true)
	defer s.paused.Store(false)
	defer pause()()
	s.holds = s.g.turns.take(ctx, s)
	return s.holds
}

func (s *share) release() {
	if s.holds {
		s.holds = false
		s.g.turns.release(s)
	}
}
