package httplimit

import (
	"context"
	"errors"
	"sync"
)

// ErrFull says that there is no room now.
var ErrFull = errors.New("there is no room for more")

// Room is memory that requests take while they are read and answered. Each request counts
// for some who share it, such as its client or its path: one of them may have its share
// at most, so that something is left for others. A single request may be larger than a
// share. It is safe for concurrent use.
type Room struct {
	mu    sync.Mutex
	free  int64
	held  map[Share]int64
	freed chan struct{} // closed when some is given back
}

// Share is one of those who share a room.
type Share struct {
	// Of names it.
	Of string
	// Most is how many bytes it may have.
	Most int64
}

// NewRoom returns a room of so many bytes.
func NewRoom(bytes int64) *Room {
	return &Room{free: bytes, held: map[Share]int64{}, freed: make(chan struct{})}
}

// Hold is what one request has of a room.
type Hold struct {
	room   *Room
	shares []Share
	bytes  int64
}

// Hold begins a request that counts for these shares, and has nothing yet. Its Release
// must be called.
func (r *Room) Hold(shares ...Share) *Hold { return &Hold{room: r, shares: shares} }

// Try takes more, or returns ErrFull.
func (h *Hold) Try(bytes int64) error {
	h.room.mu.Lock()
	defer h.room.mu.Unlock()
	return h.try(bytes)
}

func (h *Hold) try(bytes int64) error {
	r := h.room
	if bytes > r.free {
		return ErrFull
	}
	for _, s := range h.shares {
		if others := r.held[s] - h.bytes; others > 0 && others+h.bytes+bytes > s.Most {
			return ErrFull
		}
	}
	r.free -= bytes
	h.bytes += bytes
	for _, s := range h.shares {
		r.held[s] += bytes
	}
	return nil
}

// Take waits until there is room, or ctx ends.
func (h *Hold) Take(ctx context.Context, bytes int64) error {
	for {
		h.room.mu.Lock()
		err, freed := h.try(bytes), h.room.freed
		h.room.mu.Unlock()
		if err == nil {
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return ErrFull
		}
	}
}

// Release gives back all that the request has.
func (h *Hold) Release() {
	r := h.room
	r.mu.Lock()
	defer r.mu.Unlock()
	if h.bytes == 0 {
		return
	}
	r.free += h.bytes
	for _, s := range h.shares {
		if r.held[s] -= h.bytes; r.held[s] == 0 {
			delete(r.held, s)
		}
	}
	h.bytes = 0
	close(r.freed)
	r.freed = make(chan struct{})
}
