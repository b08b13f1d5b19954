package script

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A run that has the memory turn and does not end its step, as to hash something huge,
// stops no other one for more than a moment.
func TestTheTurnGoesOnWithoutARunThatIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heap := &fakeHeap{}
		heap.live.Store(1200)
		g := NewGovernor(heap.options())
		stuck, done := make(chan struct{}), make(chan error, 1)
		go func() {
			done <- do(t, t.Context(), g, Limits{Wall: time.Hour}, func(n int) error {
				if n == 2 {
					close(stuck)
					time.Sleep(40 * time.Second)
					return errDone
				}
				return nil
			})
		}()
		<-stuck
		began := time.Now()
		if err := do(t, t.Context(), g, Limits{}, func(n int) error {
			if n == 3 {
				return errDone
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 2*turnPatience {
			t.Errorf("another run has waited for %s", took)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if g.turns.holder != nil || len(g.turns.queue) > 0 {
			t.Error("the turn was not given back")
		}
	})
}

// A run that computes for long while memory is short lets others have the turn; one that
// takes memory meanwhile is ended.
func TestNobodyKeepsTheTurn(t *testing.T) {
	for _, grows := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			heap := &fakeHeap{}
			heap.live.Store(1200)
			g := NewGovernor(heap.options())
			began, done := make(chan struct{}), make(chan error, 1)
			go func() {
				done <- do(t, t.Context(), g, Limits{Wall: time.Hour, Heap: 3200}, func(n int) error {
					switch {
					case n == 2:
						close(began)
					case n > 300:
						return errDone
					case n > 2 && grows:
						heap.live.Add(5)
					}
					time.Sleep(100 * time.Millisecond)
					return nil
				})
			}()
			<-began
			start := time.Now()
			if err := do(t, t.Context(), g, Limits{}, func(n int) error {
				if n == 3 {
					return errDone
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
			if took := time.Since(start); took > turnFor+turnPatience {
				t.Errorf("another run has waited for %s", took)
			}
			err := <-done
			var limit *LimitError
			if ended := errors.As(err, &limit); ended != grows {
				t.Errorf("a run that grows (%t) ends with %v", grows, err)
			}
		})
	}
}

// Many runs of one module leave the turn to others after one of them.
func TestTurnsGoRoundByModule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns turns
		var order []string
		first := &share{module: "hog"}
		turns.take(t.Context(), first)
		wait := func(module string) {
			s := &share{module: module}
			go func() {
				turns.take(t.Context(), s)
				order = append(order, module)
				turns.release(s)
			}()
			synctest.Wait()
		}
		for range 10 {
			wait("hog")
		}
		wait("web")
		turns.release(first)
		synctest.Wait()
		if len(order) != 11 || order[0] != "web" {
			t.Errorf("the turns went to %v", order)
		}
	})
}
