package live

import (
	"context"
	"sync"
	"time"
)

// drainWithin is how long requests under way may take once the process is to end.
const drainWithin = 8 * time.Second

// drain takes no more requests, and lets those under way be answered: everything goes on
// meanwhile. The channel is closed when they are, or when there is no more time.
func (d *Driver) drain() <-chan struct{} {
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		ctx, cancel := context.WithTimeout(context.Background(), drainWithin)
		defer cancel()
		var busy sync.WaitGroup
		busy.Go(func() { d.webhooks.Drain(ctx) })
		if d.receive != nil {
			busy.Go(func() { d.receive.Drain(ctx) })
		}
		busy.Wait()
	}()
	return drained
}
