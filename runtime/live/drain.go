package live

import (
	"context"
	"time"
)

// drainWithin is how long requests under way may take once the process is to end.
const drainWithin = 8 * time.Second

// drainReceive takes no more requests for http.receive, and lets those under way be answered by hooks, which go on
// meanwhile. The channel is closed when they are, or when there is no more time.
func (d *Driver) drainReceive() <-chan struct{} {
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		if d.receive == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), drainWithin)
		defer cancel()
		d.receive.Drain(ctx)
	}()
	return drained
}

// drainReviews does the same with what the API server asks. No engine is needed for its answers, and nothing is
// written for them: another process has the Lease meanwhile.
func (d *Driver) drainReviews() {
	ctx, cancel := context.WithTimeout(context.Background(), drainWithin)
	defer cancel()
	d.webhooks.Drain(ctx)
}
