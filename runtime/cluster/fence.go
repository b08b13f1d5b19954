package cluster

import (
	"context"
	"errors"
	"net/http"
	"sync"
)

// ErrFenced is returned for a write after [Client.Fence].
var ErrFenced = errors.New("starling is stopping and writes nothing any more")

// fence lets mutating requests pass until it is closed, and knows how many are
// under way.
type fence struct {
	mu     sync.Mutex
	closed bool
	active int
	idle   chan struct{} // closed once the fence is closed and active is 0
}

func newFence() *fence { return &fence{idle: make(chan struct{})} }

func (f *fence) enter() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.active++
	return true
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

// Fence stops writing for good: from the moment of the call no mutating request
// of this client, of its Config, or of Helm on top of it leaves the process; they
// fail with [ErrFenced]. Reads and watches go on. It returns when the writes that
// were under way have been answered, or with ctx's error when ctx ends first.
// After a nil return it is safe to give the Lease back.
func (c *Client) Fence(ctx context.Context) error {
	c.fence.close()
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
