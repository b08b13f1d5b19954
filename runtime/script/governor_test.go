package script

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
)

// fakeHeap is a heap that tests fill.
type fakeHeap struct{ live, garbage atomic.Uint64 }

func (h *fakeHeap) options() GovernorOptions {
	return GovernorOptions{
		Soft: 1000,
		Read: func() uint64 { return h.live.Load() + h.garbage.Load() },
		GC:   func() { h.garbage.Store(0) },
	}
}

// do runs f as the body of a builtin "step" that a script calls for ever.
func do(t *testing.T, ctx context.Context, g *Governor, l Limits, step func(n int) error) error {
	t.Helper()
	n := 0
	h := New(Options{
		Files:   tree(map[string]string{"a.star": "def f():\n    for i in range(1000000):\n        for j in range(300):\n            pass\n        if step():\n            return\n"}),
		Context: func(string) *builtins.Context { return &builtins.Context{Log: &logLines{}} },
		Predeclared: starlark.StringDict{"step": starlark.NewBuiltin("step", func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
			n++
			err := step(n)
			if errors.Is(err, errDone) {
				return starlark.True, nil
			}
			return starlark.False, err
		})},
		Governor: g,
	})
	globals, err := h.Load(ctx, "a.star")
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = h.Call(ctx, globals["f"].(starlark.Callable), nil, CallOptions{Context: &builtins.Context{Log: &logLines{}}, Limits: l})
	return err
}

var errDone = errors.New("done")

func TestGrowingRunIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heap := &fakeHeap{}
		heap.live.Store(900)
		err := do(t, t.Context(), NewGovernor(heap.options()), Limits{Heap: 500}, func(n int) error {
			heap.live.Add(100)
			return nil
		})
		var l *LimitError
		if !errors.As(err, &l) || l.Limit != LimitMemory {
			t.Fatalf("got %v, want the memory limit", err)
		}
		if got := heap.live.Load(); got < 1500 || got > 900+100*fullEvery/600 {
			t.Errorf("stopped at %d", got)
		}
	})
}

func TestGarbageIsNoGrowth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heap := &fakeHeap{}
		heap.live.Store(1200)
		err := do(t, t.Context(), NewGovernor(heap.options()), Limits{Heap: 500}, func(n int) error {
			heap.garbage.Add(100)
			if n == 1000 {
				return errDone
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// TestRunsTakeTurns: past the mark, only one run goes on; the others wait, and
// their wall time does not pass.
func TestRunsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heap := &fakeHeap{}
		heap.live.Store(1200)
		g := NewGovernor(heap.options())
		var inside atomic.Int32
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				err := do(t, t.Context(), g, Limits{Wall: 15 * time.Second}, func(n int) error {
					if n == 1 {
						return nil // before the first checkpoint that sees the heap
					}
					if inside.Add(1) > 1 {
						t.Error("two runs go on at a time")
					}
					time.Sleep(time.Second) // of the fake clock
					inside.Add(-1)
					if n == 11 {
						return errDone
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if g.turns.holder != nil || len(g.turns.queue) > 0 {
			t.Error("the turn was not given back")
		}
	})
}

func TestWaitEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heap := &fakeHeap{}
		heap.live.Store(1200)
		g := NewGovernor(heap.options())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		other := &share{g: g}
		g.turns.take(ctx, other)
		go func() { // somebody has it, and goes on
			look := time.NewTicker(turnPatience / 2)
			defer look.Stop()
			for {
				select {
				case <-look.C:
					g.turns.checkpoint(other)
				case <-ctx.Done():
					return
				}
			}
		}()
		err := do(t, ctx, g, Limits{}, func(int) error { return nil })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
	})
}

// Two runs ask for more than both can have: the second one waits until the first one has ended, and holds nothing meanwhile.
// One that never fits is refused with its reason, and not by the kernel.
func TestBytesAreAskedForBeforeTheyAreTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const mib = 1 << 20
		heap := &fakeHeap{}
		o := heap.options()
		o.Soft, o.Hard = 100*mib, 300*mib
		g := NewGovernor(o)
		var most atomic.Uint64
		decode := func(bytes uint64) error {
			ctx := t.Context()
			s := &share{g: g, limit: 256 * mib, cancel: func(error) {}}
			s.enter()
			defer s.leave()
			err := s.check(ctx, func() func() { return func() {} }, bytes)
			if err == nil {
				most.Store(max(most.Load(), heap.live.Add(bytes)))
				time.Sleep(time.Second)
				heap.live.Add(-bytes)
			}
			return err
		}
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if err := decode(180 * mib); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if got := most.Load(); got != 180*mib {
			t.Errorf("at most %d MiB were in use, want 180", got/mib)
		}
		heap.live.Store(200 * mib) // of others, for good
		var l *LimitError
		if err := decode(180 * mib); !errors.As(err, &l) || l.Limit != LimitRoom {
			t.Errorf("got %v, want that there is no room", err)
		}
	})
}

// TestSilentGrowth: a run that grows without reaching a checkpoint is cancelled
// by the sampler; one that waits while nothing grows is not.
func TestSilentGrowth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heap := &fakeHeap{}
		g := NewGovernor(heap.options())
		err := do(t, t.Context(), g, Limits{Heap: 500}, func(n int) error {
			switch n {
			case 1:
				time.Sleep(time.Second)
			case 2:
				heap.live.Store(5000)
				time.Sleep(2 * sampleEvery)
			case 3:
				t.Error("it goes on")
				return errDone
			}
			return nil
		})
		var l *LimitError
		if !errors.As(err, &l) || l.Limit != LimitMemory {
			t.Fatalf("got %v, want the memory limit", err)
		}
	})
}

// TestDoubling is the real thing, in a small heap: to its end it would take 256
// MiB.
func TestDoubling(t *testing.T) {
	runtime.GC() // what other tests left
	before := readHeap()
	g := NewGovernor(GovernorOptions{Soft: before + 8<<20})
	f := newFixture(t, map[string]string{"a.star": "def f():\n    x = [0]\n    for i in range(24):\n        x = x + x\n    return len(x)\n"}, func(o *Options) { o.Governor = g })
	_, _, err := f.call(t, t.Context(), Limits{Heap: 8 << 20})
	var l *LimitError
	if !errors.As(err, &l) || l.Limit != LimitMemory {
		t.Fatalf("got %v, want the memory limit", err)
	}
}
