package live

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

const (
	// maxReleases bounds Helm: each action holds its chart and manifests. There is one for each
	// memoryOfRelease of Go's memory limit.
	maxReleases     = 8
	memoryOfRelease = 100 << 20
	// maxAside bounds what all actions hold that are aside, to an eighth of Go's memory limit.
	maxAside = 1 << 30
)

// helmSlots bound how many Helm actions are under way. One that waits for objects, for Helm's hooks or for a slow
// answer of the API server, which may take minutes, moves aside to a place among many, so that those which
// only have work to do, uninstalls among them, need not wait for it. It keeps its slot while there is no
// memory for what it holds meanwhile.
type helmSlots struct {
	working, waiting chan struct{}
	memory           *semaphore.Weighted
	most             int64
}

func newHelmSlots(limit int64, waiting int) *helmSlots {
	most := min(limit/8, maxAside)
	return &helmSlots{
		working: make(chan struct{}, max(min(limit/memoryOfRelease, maxReleases), 1)), waiting: make(chan struct{}, waiting),
		memory: semaphore.NewWeighted(most), most: most,
	}
}

// take waits for a slot. aside gives it back once there is memory for what the action holds, and queues for a place
// among those that wait while the action lasts; once there was memory, another call does nothing. leave gives back what
// is held. Helm may call aside after that: nothing is held then, so nothing moves.
func (s *helmSlots) take(ctx context.Context) (aside func(action context.Context, holds int64), leave func(), err error) {
	select {
	case s.working <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, errStopping
	}
	ctx, left := context.WithCancel(ctx)
	var mu sync.Mutex
	held, memory := s.working, int64(0)          // held is nil while it queues, and once it has left
	turn, moved := make(chan struct{}, 1), false // several requests of an action may be slow at once
	move := func(action context.Context, holds int64) {
		action, end := context.WithCancel(action)
		defer end()
		defer context.AfterFunc(ctx, end)()
		holds = min(holds, s.most)
		if s.memory.Acquire(action, holds) != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() != nil {
			s.memory.Release(holds)
			return
		}
		<-held
		held, memory, moved = nil, holds, true
		mu.Unlock()
		got := false
		select {
		case s.waiting <- struct{}{}:
			got = true
		case <-action.Done():
		}
		mu.Lock()
		switch {
		case got && ctx.Err() != nil:
			<-s.waiting
		case got:
			held = s.waiting
		}
	}
	aside = func(action context.Context, holds int64) {
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
			if !moved {
				move(action, holds)
			}
		case <-action.Done():
		}
	}
	return aside, func() {
		mu.Lock()
		defer mu.Unlock()
		left()
		if held != nil {
			<-held
		}
		s.memory.Release(memory)
		held, memory = nil, 0
	}, nil
}
