package script

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// turnPatience is how long the run whose turn it is may come to no checkpoint while
	// others wait: then it is at one long step, as to hash something huge, and the turn
	// goes on without it.
	turnPatience = time.Second
	// turnFor is how long a run may have the turn while others wait. One that has taken
	// hardly any memory waits for its next turn then; another one is ended.
	turnFor = 5 * time.Second
	// turnShare is how much of its limit a run may have taken that waits for its next
	// turn: a fraction, because many may wait so.
	turnShare = 32
)

// turns is the right to take memory while the heap is full: one run has it at a time,
// and of those that wait it goes to the module that has had it longest ago.
type turns struct {
	mu     sync.Mutex
	holder *share
	got    time.Time // when the holder got it
	seen   time.Time // when the holder came to a checkpoint last
	queue  []*turnWait
	last   map[string]uint64 // by module, when it had the turn last
	count  uint64
}

type turnWait struct {
	share *share
	got   chan struct{}
}

// take waits for the turn; false when ctx ends first.
func (t *turns) take(ctx context.Context, s *share) bool {
	w := &turnWait{s, make(chan struct{})}
	t.mu.Lock()
	t.queue = append(t.queue, w)
	t.next(time.Now())
	t.mu.Unlock()
	look := time.NewTicker(turnPatience / 4)
	defer look.Stop()
	for {
		select {
		case <-w.got:
			return true
		case now := <-look.C:
			t.mu.Lock()
			if t.holder != nil && now.Sub(t.seen) > turnPatience {
				t.holder = nil
				t.next(now)
			}
			t.mu.Unlock()
		case <-ctx.Done():
			t.mu.Lock()
			defer t.mu.Unlock()
			if i := slices.Index(t.queue, w); i >= 0 {
				t.queue = slices.Delete(t.queue, i, i+1)
				return false
			}
			return true // it came just now
		}
	}
}

// next gives the turn to one of those that wait, if nobody has it.
func (t *turns) next(now time.Time) {
	if t.holder != nil || len(t.queue) == 0 {
		return
	}
	first := 0
	for i, w := range t.queue {
		if t.last[w.share.module] < t.last[t.queue[first].share.module] {
			first = i
		}
	}
	w := t.queue[first]
	t.queue = slices.Delete(t.queue, first, first+1)
	if t.last == nil || len(t.last) > 10_000 {
		t.last = map[string]uint64{}
	}
	t.count++
	t.last[w.share.module] = t.count
	t.holder, t.got, t.seen = w.share, now, now
	close(w.got)
}

// release ends the turn of s, if it has it.
func (t *turns) release(s *share) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holder == s {
		t.holder = nil
		t.next(time.Now())
	}
}

// checkpoint says whether s still has the turn, and whether it has had it for long enough
// while others wait.
func (t *turns) checkpoint(s *share) (holds, overdue bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holder != s {
		return false, false
	}
	t.seen = time.Now()
	return true, len(t.queue) > 0 && t.seen.Sub(t.got) > turnFor
}

// moduleOf is the module that a call is for: its name begins with it.
func moduleOf(name string) string {
	module, _, _ := strings.Cut(name, "/")
	return module
}
