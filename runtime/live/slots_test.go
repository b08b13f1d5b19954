package live

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Runs of one module whose server never answers stop no other module; nor do those of many.
func TestAModuleHasItsShareOfTheSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots()
		ctx, stop := context.WithCancel(t.Context())
		hog := func(module string, n int) {
			for range n {
				go s.take(ctx, module)
			}
			synctest.Wait()
		}
		running := func(module string) int { return s.modules[module].running }
		hog("hog", 40)
		if got := running("hog"); got != maxModuleRuns {
			t.Errorf("one module has %d runs, want %d", got, maxModuleRuns)
		}
		for i := range 10 {
			hog(fmt.Sprintf("hog%d", i), 40)
		}
		if s.shared != maxRuns {
			t.Errorf("%d runs share %d slots", s.shared, maxRuns)
		}
		began := time.Now()
		if !s.take(ctx, "web") || time.Since(began) > 0 {
			t.Error("a module waits for its first run")
		}
		go s.take(ctx, "web")
		synctest.Wait()
		if got := running("web"); got != 1 {
			t.Errorf("%d runs of web: the second one is one of those that all share", got)
		}
		s.give("web", 0)
		synctest.Wait()
		if got := running("web"); got != 1 {
			t.Errorf("%d runs of web after the first has ended", got)
		}
		s.give("web", 0)
		stop()
		synctest.Wait()
		for name, m := range s.modules {
			for range m.running {
				s.give(name, 0)
			}
		}
		if len(s.modules)+s.running+s.shared != 0 {
			t.Errorf("left: %+v", s)
		}
	})
}

// A module computes no more than one processor does, after a burst; what it waits for in
// a run is no computing.
func TestAModuleComputesNoMoreThanOneProcessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots()
		s.processors = 8
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
		defer stop()
		var all atomic.Int64 // of a run that goes on while it is read, too
		for range 8 {        // queues
			go func() {
				for s.take(ctx, "hog") {
					time.Sleep(500 * time.Millisecond)
					all.Add(int64(500 * time.Millisecond))
					s.give("hog", 500*time.Millisecond)
				}
			}()
		}
		time.Sleep(5 * time.Minute)
		if problem := s.problem("hog"); !strings.HasPrefix(problem, "its hooks compute more than one processor does") {
			t.Errorf("the status says %q", problem)
		}
		began := time.Now()
		if !s.take(ctx, "web") || time.Since(began) > 0 {
			t.Error("another module waits")
		}
		s.give("web", 0)
		if problem := s.problem("web"); problem != "" {
			t.Errorf("the status of web says %q", problem)
		}
		<-ctx.Done()
		synctest.Wait()
		computed := time.Duration(all.Load())
		if limit := 10*time.Minute + maxAhead + 10*time.Second; computed > limit {
			t.Errorf("it has computed %s in 10 minutes", computed)
		}
		if computed < 9*time.Minute {
			t.Errorf("it has computed %s only", computed)
		}
		time.Sleep(2 * time.Minute)
		s.mu.Lock()
		s.forget()
		s.mu.Unlock()
		if len(s.modules) > 0 || s.problem("hog") != "" {
			t.Errorf("left: %+v", s.modules)
		}
	})
}

// The time that a module computes beside its runs, in filters and in enabled(), counts as
// its runs do.
func TestWhatAModuleComputesBesideItsRunsCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots()
		s.processors = 4
		for range 60 {
			s.charge("hog", time.Second)
		}
		began := time.Now()
		if !s.take(t.Context(), "web") || time.Since(began) > 0 {
			t.Error("another module waits")
		}
		if !s.take(t.Context(), "hog") || time.Since(began) < 25*time.Second {
			t.Errorf("a run of the module has waited %s", time.Since(began))
		}
		if why := s.problem("hog"); !strings.Contains(why, "filters, enabled() and chart_values() included") {
			t.Errorf("the status says %q", why)
		}
		s.give("hog", 0)
		s.give("web", 0)
	})
}

// Runs that wait cost those that begin and end nothing.
func BenchmarkSlotsWithManyThatWait(b *testing.B) {
	s := newSlots()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	for n := range maxModuleRuns + 2000 {
		if n < maxModuleRuns {
			s.take(ctx, "many")
		} else {
			go s.take(ctx, "many")
		}
	}
	for b.Loop() {
		s.take(ctx, "other")
		s.give("other", 0)
	}
}
