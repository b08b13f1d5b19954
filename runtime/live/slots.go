package live

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"
)

const (
	// maxRuns bounds how many hooks run at once, the first run of each module aside. They
	// mostly wait for the API server or for each other's memory, so it is above the
	// number of cores.
	maxRuns = 32
	// maxModuleRuns bounds those of one module.
	maxModuleRuns = maxRuns / 2
	// maxAhead is how far ahead the runs of a module may be: what they compute in a
	// burst, as at the start.
	maxAhead = 30 * time.Second
	// slowFor is how long the status says that a module was slowed down.
	slowFor = time.Minute
)

// slots bound how many hooks run at once, and give each module its share: its first run
// waits for nobody else's, it may take half of what all share, and its runs compute no
// more, in the long run, than one processor does.
type slots struct {
	processors int

	mu      sync.Mutex
	running int
	shared  int // of them, without the first of each module
	modules map[string]*moduleSlots
	came    int         // how many have waited so far
	timer   *time.Timer // for those that wait for a time
}

// moduleSlots is what one module has of the slots.
type moduleSlots struct {
	running int
	queue   []*slotWait // in the order in which they came
	// ahead is how much more its runs had computed, as of at, than they had coming.
	ahead time.Duration
	at    time.Time
	slow  time.Time // when a run was last seen to wait for that
}

type slotWait struct {
	number int // in the order in which they came
	got    chan struct{}
}

func newSlots() *slots {
	return &slots{processors: runtime.GOMAXPROCS(0), modules: map[string]*moduleSlots{}}
}

// take waits until a run of the module may begin; false when ctx ends first.
func (s *slots) take(ctx context.Context, module string) bool {
	s.mu.Lock()
	w := &slotWait{s.came, make(chan struct{})}
	s.came++
	m := s.of(module)
	m.queue = append(m.queue, w)
	if len(m.queue) == 1 { // else it waits behind others
		s.grant()
	}
	s.mu.Unlock()
	select {
	case <-w.got:
		return true
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(m.queue, w)
	if i < 0 {
		return true // it came just now
	}
	m.queue = slices.Delete(m.queue, i, i+1)
	s.forget()
	return false
}

// give ends a run that has computed for so long.
func (s *slots) give(module string, computed time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.of(module)
	s.add(m, computed, s.running)
	s.running--
	if m.running--; m.running > 0 {
		s.shared--
	}
	s.grant()
	s.forget()
}

// charge counts what a module has computed beside its runs.
func (s *slots) charge(module string, computed time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(s.of(module), computed, s.running+1)
}

// add counts what one of so many has computed: with more of them than processors, some of
// that time was spent waiting for one.
func (s *slots) add(m *moduleSlots, computed time.Duration, of int) {
	m.settle(time.Now())
	m.ahead += min(computed, computed*time.Duration(s.processors)/time.Duration(of))
}

// grant gives slots to those that wait: in the order in which they came, but for modules
// that may have no more now.
func (s *slots) grant() {
	now := time.Now()
	var next time.Duration
	for first := (*moduleSlots)(nil); ; first = nil {
		for _, m := range s.modules {
			if len(m.queue) == 0 {
				continue
			}
			m.settle(now)
			if late := m.ahead - maxAhead; late > 0 {
				m.slow = now
				if next == 0 || late < next {
					next = late
				}
			} else if (m.running == 0 || m.running < maxModuleRuns && s.shared < maxRuns) &&
				(first == nil || m.queue[0].number < first.queue[0].number) {
				first = m
			}
		}
		if first == nil {
			break
		}
		if first.running > 0 {
			s.shared++
		}
		s.running++
		first.running++
		close(first.queue[0].got)
		first.queue = slices.Delete(first.queue, 0, 1)
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	if next > 0 {
		s.timer = time.AfterFunc(next, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.grant()
		})
	}
}

// settle lets time pass: a module has as much computing coming.
func (m *moduleSlots) settle(now time.Time) {
	m.ahead = max(m.ahead-now.Sub(m.at), 0)
	m.at = now
}

func (s *slots) of(module string) *moduleSlots {
	m := s.modules[module]
	if m == nil {
		m = &moduleSlots{at: time.Now()}
		s.modules[module] = m
	}
	return m
}

// forget drops the modules of which there is nothing to know any more.
func (s *slots) forget() {
	now := time.Now()
	maps.DeleteFunc(s.modules, func(_ string, m *moduleSlots) bool {
		return m.running+len(m.queue) == 0 && m.ahead <= now.Sub(m.at) && now.Sub(m.slow) > slowFor
	})
}

// problem says that the runs of a module are slowed down, or "".
func (s *slots) problem(module string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.modules[module]
	if m != nil && len(m.queue) > 0 {
		if m.settle(time.Now()); m.ahead > maxAhead {
			m.slow = m.at
		}
	}
	if m == nil || m.slow.IsZero() || time.Since(m.slow) > slowFor {
		return ""
	}
	return fmt.Sprintf("its hooks compute more than one processor does, filters, enabled() and chart_values() included, so their runs wait (%d now): let them compute less, or run less often", len(m.queue))
}
