package live

import (
	"context"
	"sync"
)

const (
	// maxReleases bounds Helm: each action holds its chart and manifests. There is one for each
	// memoryOfRelease of Go's memory limit.
	maxReleases     = 8
	memoryOfRelease = 100 << 20
)

// releasesAtOnce is how many Helm actions may be under way with a memory limit.
func releasesAtOnce(limit int64) int { return int(max(min(limit/memoryOfRelease, maxReleases), 1)) }

// helmSlots bound how many Helm actions are under way. One that waits for objects or for Helm's
// hooks, which may take minutes, moves aside to a place among many, so that those which
// only have work to do, uninstalls among them, need not wait for it.
type helmSlots struct{ working, waiting chan struct{} }

func newHelmSlots(working, waiting int) *helmSlots {
	return &helmSlots{working: make(chan struct{}, working), waiting: make(chan struct{}, waiting)}
}

// take waits for a slot. aside gives it back, and queues for a place among those that wait while
// the action lasts; leave gives back what is held. Helm may call aside after that: nothing is
// held then, so nothing moves.
func (s *helmSlots) take(ctx context.Context) (aside func(action context.Context), leave func(), err error) {
	select {
	case s.working <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, errStopping
	}
	ctx, left := context.WithCancel(ctx)
	var mu sync.Mutex
	held := s.working // nil while it queues, and once it has left
	aside = func(action context.Context) {
		mu.Lock()
		defer mu.Unlock()
		if held != s.working {
			return
		}
		<-held
		held = nil
		mu.Unlock()
		got := false
		select {
		case s.waiting <- struct{}{}:
			got = true
		case <-action.Done():
		case <-ctx.Done():
		}
		mu.Lock()
		switch {
		case got && ctx.Err() != nil:
			<-s.waiting
		case got:
			held = s.waiting
		}
	}
	return aside, func() {
		mu.Lock()
		defer mu.Unlock()
		left()
		if held != nil {
			<-held
			held = nil
		}
	}, nil
}
