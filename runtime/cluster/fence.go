package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// ErrFenced is returned for a write after [Client.Shut] or [Client.Fence], or past the time of
// [Client.WritesUntil].
var ErrFenced = errors.New("starling has lost the lease, or is stopping, and writes nothing any more")

// ErrStandby is returned for a write between [Client.Hold] and the first [Client.WritesUntil].
var ErrStandby = errors.New("starling stands by and writes nothing before it holds the lease")

// errUntold is that of a write that has waited in vain for the Lease to say which module tree it is of.
var errUntold = errors.New("the lease does not say which module tree is in force")

// fence lets mutating requests pass until it is closed, and knows how many are
// under way.
type fence struct {
	mu     sync.Mutex
	tree   string        // the module tree that writes are of
	said   string        // the tree that the Lease names: a write of another one waits
	moved  chan struct{} // closed when a write that waits should look again; nil: none waits
	held   bool          // nothing passes yet
	closed bool
	until  time.Time // nothing passes after it; zero: no end is known
	active int
	idle   chan struct{} // closed once the fence is closed and active is 0
}

func newFence() *fence { return &fence{idle: make(chan struct{})} }

// enter waits, at most as long as ctx, until the Lease says which module tree writes are of.
func (f *fence) enter(ctx context.Context) error {
	for {
		moved, err := f.pass()
		if moved == nil {
			return err
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", errUntold, ctx.Err())
		}
	}
}

// pass lets a request through, or says why not, or returns what is closed when it should be tried again.
func (f *fence) pass() (moved chan struct{}, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed || f.over(time.Now()):
		return nil, ErrFenced
	case f.held:
		return nil, ErrStandby
	case f.tree != f.said:
		if f.moved == nil {
			f.moved = make(chan struct{})
		}
		return f.moved, nil
	}
	f.active++
	return nil, nil
}

// wake has writes that wait look again. It is called with mu held.
func (f *fence) wake() {
	if f.moved != nil {
		close(f.moved)
		f.moved = nil
	}
}

// late says whether the time is over for a request that has passed already.
func (f *fence) late() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.over(time.Now())
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

func (f *fence) close() (idle <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.closed = true
		f.wake()
		if f.active == 0 {
			close(f.idle)
		}
	}
	return f.idle
}

// Shut stops writing: from the moment of the call no mutating request of this
// client, of its Config, or of Helm on top of it leaves the process; they fail with
// [ErrFenced]. Reads and watches go on, and so do writes that are under way.
func (c *Client) Shut() { c.fence.close() }

// Hold has no mutating request leave the process before the next [Client.WritesUntil]; they fail
// with [ErrStandby]. Reads and watches go on. After [Client.Fence] all that comes from then on is written again: call it
// once nothing of before can write any more.
func (c *Client) Hold() {
	c.fence.mu.Lock()
	defer c.fence.mu.Unlock()
	c.fence.held, c.fence.until = true, time.Time{}
	if c.fence.closed && c.fence.active == 0 {
		c.fence.closed, c.fence.idle = false, make(chan struct{})
	}
}

// WritesUntil says until when writes may leave the process, so that one that has been
// stopped for a while does not write before it knows that it has lost the Lease. A body
// that has not been sent by then is not sent. The Lease says that writes are of this module tree.
func (c *Client) WritesUntil(t time.Time, tree string) {
	c.fence.mu.Lock()
	defer c.fence.mu.Unlock()
	c.fence.until, c.fence.held, c.fence.said = t, false, tree
	c.fence.wake()
}

// WritesOf names the module tree that writes come from, from now on. They wait until the Lease says so: a process that
// follows, and has an older tree, must not take for gone what the newer one has made.
func (c *Client) WritesOf(tree string) {
	c.fence.mu.Lock()
	defer c.fence.mu.Unlock()
	c.fence.tree = tree
	c.fence.wake()
}

// Fence is [Client.Shut], and returns when the writes that were under way have been
// answered, or with ctx's error when ctx ends first. After a nil return it is safe to
// give the Lease back.
func (c *Client) Fence(ctx context.Context) error {
	idle := c.fence.close()
	select {
	case <-idle:
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

// RoundTrip refuses mutating requests before the fence opens, and once it is closed.
func (t *fencedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	switch req.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return t.next.RoundTrip(req)
	}
	if err := t.fence.enter(req.Context()); err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	defer t.fence.leave()
	return t.next.RoundTrip(t.guarded(req))
}

// guarded returns the request with a body that looks at the fence again as it is sent: the
// process may have been stopped, or have waited for a connection, since the request passed.
func (t *fencedTransport) guarded(req *http.Request) *http.Request {
	if req.Body == nil || req.Body == http.NoBody {
		return req
	}
	out := req.WithContext(req.Context()) // a transport leaves the request of its caller alone
	out.Body = &lateBody{ReadCloser: req.Body, fence: t.fence}
	if again := req.GetBody; again != nil {
		out.GetBody = func() (io.ReadCloser, error) {
			body, err := again()
			if err != nil {
				return nil, err
			}
			return &lateBody{ReadCloser: body, fence: t.fence}, nil
		}
	}
	return out
}

// lateBody ends with an error once the time of the fence is over. The API server carries out no
// request whose body is not complete.
type lateBody struct {
	io.ReadCloser
	fence *fence
}

// Read reads what is sent next.
func (b *lateBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.fence.late() {
		return 0, ErrFenced
	}
	return n, err
}

// WrappedRoundTripper lets client-go look through the fence, to close idle
// connections for instance.
func (t *fencedTransport) WrappedRoundTripper() http.RoundTripper { return t.next }
