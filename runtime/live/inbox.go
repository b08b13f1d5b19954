package live

import (
	"sync"

	"github.com/starling-operator/starling/runtime/engine"
)

// inbox is the queue in front of the engine. It has no bound, so that whoever
// reports something never waits for the engine: watches, runs and releases are
// bounded where they start.
type inbox struct {
	mu     sync.Mutex
	queue  []engine.Input
	signal chan struct{}
}

func newInbox() *inbox { return &inbox{signal: make(chan struct{}, 1)} }

func (b *inbox) put(in engine.Input) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = append(b.queue, in)
	b.tell()
}

func (b *inbox) tell() {
	select {
	case b.signal <- struct{}{}:
	default:
	}
}

// take returns what is next, and signals again when there is more.
func (b *inbox) take() (in engine.Input, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		return nil, false
	}
	in = b.queue[0]
	b.queue[0] = nil
	if b.queue = b.queue[1:]; len(b.queue) > 0 {
		b.tell()
	}
	return in, true
}
