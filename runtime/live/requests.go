package live

import (
	"context"
	"sync"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/engine"
)

// requests joins the servers, whose goroutines wait for answers, with the engine.
type requests struct {
	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan engine.Respond
}

func newRequests() *requests { return &requests{waiting: map[uint64]chan engine.Respond{}} }

// Request has a hook, by its id, answer a request. It waits for the answer, but no
// longer than ctx.
func (d *Driver) Request(ctx context.Context, hook string, r *builtins.Request) (builtins.Response, error) {
	id, answer := d.requests.expect()
	work := d.work()
	if err := d.inbox.request(engine.Requested{ID: id, Hook: hook, Request: r}); err != nil {
		d.requests.forget(id)
		return builtins.Response{}, err
	}
	select {
	case a := <-answer:
		return a.Response, a.Err
	case <-ctx.Done():
		d.requests.forget(id)
		return builtins.Response{}, ctx.Err()
	case <-work.Done():
		d.requests.forget(id)
		return builtins.Response{}, errStopping
	}
}

func (r *requests) expect() (uint64, chan engine.Respond) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	answer := make(chan engine.Respond, 1)
	r.waiting[r.last] = answer
	return r.last, answer
}

func (r *requests) forget(id uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waiting, id)
}

// respond hands an answer to the request that waits for it, if it still does.
func (r *requests) respond(a engine.Respond) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if answer := r.waiting[a.ID]; answer != nil {
		delete(r.waiting, a.ID)
		answer <- a
	}
}
