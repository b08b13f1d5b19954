package cluster

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// ErrFenced is returned for a write after [Client.Shut] or [Client.Fence].
var ErrFenced = errors.New("starling is stopping and writes nothing any more")

// fence lets mutating requests pass until it is closed, and knows how many are
// under way.
type fence struct {
	mu     sync.Mutex
	closed bool
	until  time.Time // nothing passes after it; zero: no end is known
	active int
	idle   chan struct{} // closed once the fence is closed and active is 0
}

func newFence() *fence { return &fence{idle: make(chan struct{})} }

func (f *fence) enter() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.over(time.Now()) {
		return false
	}
	f.active++
	return true
}

// over goes by both clocks: one stands still while the machine is suspended, the other
// one can be set.
func (f *fence) over(now time.Time) bool {
	return !f.until.IsZero() && (now.After(f.until) || now.Round(0).After(f.until.Round(0)))
}

func (f *fence) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.active--
	if f.closed && f.active == 0 {
		close(f.idle)
	}
}

func (f *fence) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	f.closed = true
	if f.active == 0 {
		close(f.idle)
	}
}

// Shut stops writing for good: from the moment of the call no mutating request of this
// client, of its Config, or of Helm on top of it leaves the process; they fail with
// [ErrFenced]. Reads and watches go on, and so do writes that are under way.
func (c *Client) Shut() { c.fence.close() }

// WritesUntil says until when writes may leave the process, so that one that has been
// stopped for a while does not write before it knows that it has lost the Lease.
func (c *Client) WritesUntil(t time.Time) {
	c.fence.mu.Lock()
	defer c.fence.mu.Unlock()
	c.fence.until = t
}

// Fence is [Client.Shut], and returns when the writes that were under way have been
// answered, or with ctx's error when ctx ends first. After a nil return it is safe to
// give the Lease back.
func (c *Client) Fence(ctx context.Context) error {
	c.Shut()
	select {
	case <-c.fence.idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fencedTransport stands between all clients and the network, so that nothing
// that writes can go round it: Helm's actions go on in their own goroutines after
// their context has ended.
type fencedTransport struct {
	fence *fence
	next  http.RoundTripper
}

// RoundTrip refuses mutating requests once the fence is closed.
func (t *fencedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	switch req.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return t.next.RoundTrip(req)
	}
	if !t.fence.enter() {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, ErrFenced
	}
	defer t.fence.leave()
	return t.next.RoundTrip(req)
}

// WrappedRoundTripper lets client-go look through the fence, to close idle
// connections for instance.
func (t *fencedTransport) WrappedRoundTripper() http.RoundTripper { return t.next }
