package live

import (
	"context"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestReleasesAtOnce(t *testing.T) {
	for limit, want := range map[int64]int{math.MaxInt64: 8, 900 << 20: 8, 450 << 20: 4, 40 << 20: 1} {
		if got := cap(newHelmSlots(limit, 1).working); got != want {
			t.Errorf("%d MiB: %d, want %d", limit>>20, got, want)
		}
	}
}

// Actions that wait make room for those that work.
func TestHelmSlots(t *testing.T) {
	s := newHelmSlots(memoryOfRelease, 2)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var leaves []func()
	for range 2 {
		aside, leave, err := s.take(ctx)
		if err != nil {
			t.Fatal(err)
		}
		aside(ctx, 1)
		aside(ctx, 1) // once is enough
		leaves = append(leaves, leave)
	}
	_, leave, err := s.take(ctx)
	if err != nil {
		t.Fatal(err)
	}
	leaves = append(leaves, leave)
	if len(s.working) != 1 || len(s.waiting) != 2 {
		t.Errorf("%d work, %d wait", len(s.working), len(s.waiting))
	}
	cancel()
	if _, _, err := s.take(ctx); err == nil {
		t.Error("a slot after the end")
	}
	for _, leave := range leaves {
		leave()
	}
	if len(s.working)+len(s.waiting) != 0 {
		t.Errorf("%d work, %d wait after all have left", len(s.working), len(s.waiting))
	}
}

// An action that finds no place for waiting holds no slot meanwhile, and queues until a place
// is free, its own time is over, or it leaves.
func TestHelmSlotsThatWaitInLine(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(place, own, over func())
	}{
		{"a place is free", func(place, _, _ func()) { place() }},
		{"its time is over", func(_, _, over func()) { over() }},
		{"it leaves", func(_, own, _ func()) { own() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newHelmSlots(memoryOfRelease, 1)
				aside, place, err := s.take(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				aside(t.Context(), 1)
				aside, own, err := s.take(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				action, over := context.WithCancel(t.Context())
				defer over()
				queued := make(chan struct{})
				go func() { aside(action, 1); close(queued) }()
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, leave, err := s.take(ctx)
				if err != nil {
					t.Fatal("no slot for work while others wait")
				}
				c.end(place, own, over)
				<-queued
				if len(s.working) != 1 || len(s.waiting) != 1 {
					t.Errorf("%d work, %d wait", len(s.working), len(s.waiting))
				}
				for _, leave := range []func(){place, own, leave} {
					leave() // a second time is nothing
				}
				if len(s.working)+len(s.waiting) != 0 {
					t.Errorf("%d work, %d wait after all have left", len(s.working), len(s.waiting))
				}
			})
		})
	}
}

// Helm that goes on after its action has ended takes nothing of others.
func TestHelmSlotsAfterLeave(t *testing.T) {
	s := newHelmSlots(memoryOfRelease, 1)
	aside, leave, err := s.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	leave()
	_, other, err := s.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	aside(t.Context(), 1)
	if len(s.working) != 1 || len(s.waiting) != 0 {
		t.Fatalf("%d work, %d wait", len(s.working), len(s.waiting))
	}
	other()
}

// Those that are aside hold no more than an eighth of the memory: one for which there is none keeps its slot until
// another one is done.
func TestHelmSlotsCountWhatIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newHelmSlots(2*memoryOfRelease, 64)
		move := func(holds int64) (leave func(), moved chan struct{}) {
			aside, leave, err := s.take(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			moved = make(chan struct{})
			go func() { aside(t.Context(), holds); close(moved) }()
			synctest.Wait()
			return leave, moved
		}
		first, moved := move(100 * s.most) // more than there is counts as all
		<-moved
		second, moved := move(s.most / 2)
		third, gone := move(s.most / 2)
		if len(s.working) != 2 || len(s.waiting) != 1 {
			t.Errorf("%d work, %d wait", len(s.working), len(s.waiting))
		}
		third() // it ends before there is memory
		<-gone
		first()
		<-moved
		if len(s.working) != 0 || len(s.waiting) != 1 {
			t.Errorf("%d work, %d wait once there is memory", len(s.working), len(s.waiting))
		}
		second()
		if !s.memory.TryAcquire(s.most) || len(s.working)+len(s.waiting) != 0 {
			t.Errorf("%d work, %d wait after all have left, or memory is lost", len(s.working), len(s.waiting))
		}
	})
}

// An action that has its answer before there was memory works on in its slot, and moves aside with the next one.
func TestHelmSlotsOfAnswersThatCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newHelmSlots(2*memoryOfRelease, 64)
		aside, first, err := s.take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		aside(t.Context(), s.most)
		aside, leave, err := s.take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		request, answered := context.WithCancel(t.Context())
		var asked sync.WaitGroup
		for range 3 { // side by side
			asked.Go(func() { aside(request, s.most) })
		}
		synctest.Wait()
		answered()
		asked.Wait()
		if len(s.working) != 1 || len(s.waiting) != 1 {
			t.Errorf("%d work, %d wait once there is an answer", len(s.working), len(s.waiting))
		}
		first()
		for range 3 {
			asked.Go(func() { aside(t.Context(), s.most) })
		}
		asked.Wait()
		if len(s.working) != 0 || len(s.waiting) != 1 {
			t.Errorf("%d work, %d wait at the next slow request", len(s.working), len(s.waiting))
		}
		leave()
		if !s.memory.TryAcquire(s.most) || len(s.working)+len(s.waiting) != 0 {
			t.Errorf("%d work, %d wait after all have left, or memory is lost", len(s.working), len(s.waiting))
		}
	})
}
