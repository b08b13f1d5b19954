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
	b.queue = append(b.queue, in)
	b.mu.Unlock()
	select {
	case b.signal <- struct{}{}:
	default:
	}
}

// take returns all that waits, in order.
func (b *inbox) take() []engine.Input {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.queue
	b.queue = nil
	return out
}
