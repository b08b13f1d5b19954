package live

import (
	"context"
	"math"
	"testing"
)

func TestReleasesAtOnce(t *testing.T) {
	for limit, want := range map[int64]int{math.MaxInt64: 8, 900 << 20: 8, 450 << 20: 4, 40 << 20: 1} {
		if got := releasesAtOnce(limit); got != want {
			t.Errorf("%d MiB: %d, want %d", limit>>20, got, want)
		}
	}
}

// Actions that wait make room for those that work.
func TestHelmSlots(t *testing.T) {
	s := newHelmSlots(1, 2)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var leaves []func()
	for range 2 {
		aside, leave, err := s.take(ctx)
		if err != nil {
			t.Fatal(err)
		}
		aside()
		aside() // once is enough
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
