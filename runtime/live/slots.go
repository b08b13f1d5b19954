package live

import (
	"context"
	"fmt"
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
	queue   []*slotWait // in the order in which they came
	timer   *time.Timer // for those that wait for a time
}

// moduleSlots is what one module has of the slots.
type moduleSlots struct {
	running, waiting int
	// ahead is how much more its runs had computed, as of at, than they had coming.
	ahead time.Duration
	at    time.Time
	slow  time.Time // when a run was last seen to wait for that
}

type slotWait struct {
	module string
	got    chan struct{}
}

func newSlots() *slots {
	return &slots{processors: runtime.GOMAXPROCS(0), modules: map[string]*moduleSlots{}}
}

// take waits until a run of the module may begin; false when ctx ends first.
func (s *slots) take(ctx context.Context, module string) bool {
	w := &slotWait{module, make(chan struct{})}
	s.mu.Lock()
	s.of(module).waiting++
	s.queue = append(s.queue, w)
	s.grant()
	s.mu.Unlock()
	select {
	case <-w.got:
		return true
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.queue, w)
	if i < 0 {
		return true // it came just now
	}
	s.queue = slices.Delete(s.queue, i, i+1)
	s.of(module).waiting--
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
	s.queue = slices.DeleteFunc(s.queue, func(w *slotWait) bool {
		m := s.of(w.module)
		m.settle(now)
		switch late := m.ahead - maxAhead; {
		case late > 0:
			m.slow = now
			if next == 0 || late < next {
				next = late
			}
			return false
		case m.running == 0:
		case m.running >= maxModuleRuns || s.shared >= maxRuns:
			return false
		default:
			s.shared++
		}
		s.running++
		m.running++
		m.waiting--
		close(w.got)
		return true
	})
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
	for name, m := range s.modules {
		if m.running+m.waiting == 0 && m.ahead <= now.Sub(m.at) && now.Sub(m.slow) > slowFor {
			delete(s.modules, name)
		}
	}
}

// problem says that the runs of a module are slowed down, or "".
func (s *slots) problem(module string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.modules[module]
	if m == nil || m.slow.IsZero() || time.Since(m.slow) > slowFor {
		return ""
	}
	return fmt.Sprintf("its hooks compute more than one processor does, filters, enabled() and chart_values() included, so their runs wait (%d now): let them compute less, or run less often", m.waiting)
}
