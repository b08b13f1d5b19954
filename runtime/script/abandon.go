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

// errStuck is the answer to a call of a function of which another one does not end.
var errStuck = errors.New("an earlier run has passed its time limit and does not end: it is in one step that takes very long; the next one begins once it has ended")

// stuck counts the calls that were given up and have not ended yet, by function.
type stuck struct {
	mu        sync.Mutex
	functions map[starlark.Callable]int
}

func (s *stuck) has(fn starlark.Callable) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.functions[fn] > 0
}

func (s *stuck) add(fn starlark.Callable, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.functions[fn] += n; s.functions[fn] == 0 {
		delete(s.functions, fn)
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
