package httpserver

import (
	"crypto/sha256"
	"sync"
	"time"
)

// maxTaken bounds how many requests a path remembers.
const maxTaken = 50_000

// taken remembers requests by their signatures, so that none is taken twice. It is lost
// with the process.
type taken struct {
	mu    sync.Mutex
	known map[[sha256.Size]byte]*request
	order []*request // as they came
}

type request struct {
	sum   [sha256.Size]byte
	until time.Time
	done  bool // else it is being answered
}

// state is what is known of a request.
type state int

const (
	fresh state = iota
	underWay
	before
)

// begin notes a request that is fresh, until a time.
func (t *taken) begin(signature []byte, now, until time.Time) (*request, state) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil {
		t.known = map[[sha256.Size]byte]*request{}
	}
	r := &request{sum: [sha256.Size]byte(signature), until: until}
	switch old := t.known[r.sum]; {
	case old == nil || !now.Before(old.until):
	case old.done:
		return nil, before
	default:
		return nil, underWay
	}
	for len(t.order) > 0 && (len(t.order) >= maxTaken || !now.Before(t.order[0].until)) {
		t.forget(t.order[0])
		t.order = t.order[1:]
	}
	t.known[r.sum] = r
	t.order = append(t.order, r)
	return r, fresh
}

// end says what became of a request: one that failed may come again.
func (t *taken) end(r *request, ok bool) {
	if r == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.done = ok; !ok {
		t.forget(r)
	}
}

func (t *taken) forget(r *request) {
	if t.known[r.sum] == r {
		delete(t.known, r.sum)
	}
}
