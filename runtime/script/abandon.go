package script

import (
	"errors"
	"sync"
	"time"

	"go.starlark.net/starlark"
)

// patience is how long a run may go on past its limits. They are looked at between steps,
// and within those that may take long; what takes longer all the same, a regular expression
// for instance, cannot be ended, but nobody has to wait for it.
const patience = time.Second

// maxStuck is how many calls of one function may go on past their limits before nobody calls it any
// more, whatever it is about.
const maxStuck = 4

// ErrStuck is why a call was not begun: an earlier one does not end.
var ErrStuck = errors.New("an earlier run has passed its time limit and does not end: it is in one step that takes very long; the next one begins once it has ended")

// work is a function of a file, and what it is called about.
type work struct {
	fn      starlark.Callable
	subject string
}

// stuck counts the calls that were given up and have not ended yet.
type stuck struct {
	mu    sync.Mutex
	calls map[work]int
}

// has says whether nobody may begin this work: it goes on already, or too many calls of the function do.
func (s *stuck) has(w work) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := 0
	for other, n := range s.calls {
		if other.fn == w.fn {
			all += n
		}
	}
	return s.calls[w] > 0 || all >= maxStuck
}

func (s *stuck) add(w work, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls[w] += n; s.calls[w] == 0 {
		delete(s.calls, w)
	}
}

// wait waits for the end of what a run does, or gives it up: what it goes on to compute is
// charged to its module, and goesOn counts it meanwhile. The run ends with it.
func (r *run) wait(ended <-chan struct{}, module string, goesOn func(n int)) (inTime bool) {
	select {
	case <-ended:
		return true
	case <-r.ctx.Done():
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-ended:
		return true
	case <-timer.C:
	}
	charge, _ := r.ctx.Value(charged{}).(func(string, time.Duration))
	goesOn(1)
	go func() { // nobody waits for it, not even the end of the process
		defer goesOn(-1)
		defer r.end()
		tick := time.NewTicker(patience)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
				if charge != nil {
					charge(module, patience)
				}
			}
		}
	}()
	return false
}

// taken is what a run has used that goes on.
func (r *run) taken() Usage {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Usage{Wall: time.Since(r.start), Waited: r.waited}
}
