package live

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/script"
)

// giveUpRunAfter is how long a run may go on past its time limit. The limit is looked at
// between steps, and a single one can take long: to compare, hash or sort something
// huge. Nothing can end such a step, but nobody has to wait for it.
const giveUpRunAfter = 5 * time.Second

// errStuck is the answer to a run of a hook of which another one does not end.
var errStuck = errors.New("an earlier run has passed its time limit and does not end: it compares, hashes or sorts something huge in one step; the hook runs again once it has ended")

// stuck counts the runs that were given up and have not ended yet, by hook.
type stuck struct {
	mu    sync.Mutex
	hooks map[string]int
}

func (s *stuck) has(hook string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hooks[hook] > 0
}

func (s *stuck) add(hook string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hooks == nil {
		s.hooks = map[string]int{}
	}
	if s.hooks[hook] += n; s.hooks[hook] == 0 {
		delete(s.hooks, hook)
	}
}

// runHook calls a hook, and waits for the end of the run or until it is given up.
func (d *Driver) runHook(a engine.RunHook) engine.RunDone {
	if a.Request == nil { // whoever takes requests bounds them, and somebody waits
		if !d.slots.take(d.work, a.Hook.Module) {
			return engine.RunDone{Run: a.Run, Err: errStopping}
		}
	}
	var computed atomic.Int64
	computed.Store(int64(a.Hook.Timeout)) // of a run that is given up
	done := d.stuck.run(a, func() (done engine.RunDone) {
		done.Err = d.guard(func() error {
			var took time.Duration
			done, took = d.callHook(a)
			computed.Store(int64(took))
			return done.Err
		})
		return done
	}, d.busy.Go)
	if a.Request == nil {
		d.slots.give(a.Hook.Module, time.Duration(computed.Load()))
	}
	return done
}

// run makes one call in a goroutine of its own.
func (s *stuck) run(a engine.RunHook, call func() engine.RunDone, start func(func()) bool) engine.RunDone {
	if s.has(a.Hook.ID) {
		return engine.RunDone{Run: a.Run, Err: errStuck}
	}
	ended := make(chan engine.RunDone, 1)
	if !start(func() { ended <- call() }) {
		return engine.RunDone{Run: a.Run, Err: errStopping}
	}
	patience := time.NewTimer(a.Hook.Timeout + giveUpRunAfter)
	defer patience.Stop()
	select {
	case done := <-ended:
		done.Run = a.Run
		return done
	case <-patience.C:
	}
	s.add(a.Hook.ID, 1)
	go func() { // nobody waits for it, not even the end of the process
		<-ended
		s.add(a.Hook.ID, -1)
	}()
	return engine.RunDone{Run: a.Run, Err: &script.LimitError{Limit: script.LimitTime, Max: a.Hook.Timeout.String()}}
}
