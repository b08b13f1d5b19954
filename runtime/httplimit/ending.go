package httplimit

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// keptFor is how long connections that clients keep open have for one more request as a server ends.
	keptFor = time.Second
	// stopWithin is how long requests under way may take when a server stops.
	stopWithin = 2 * time.Second
)

// Ending is the end of a server that loses no request. Over HTTP/1.1 a request may be on its way on a kept connection
// as the server closes it. A client cannot know whether it was worked on: so the API server refuses the object.
type Ending struct {
	server *http.Server
	// Begun is closed as [Ending.Drain] or [Ending.Stop] begins.
	Begun  chan struct{}
	begin  func()
	open   atomic.Int32 // connections
	served sync.WaitGroup
}

// Ends prepares a server for its end, before it serves.
func Ends(server *http.Server) *Ending {
	e := &Ending{server: server, Begun: make(chan struct{})}
	e.begin = sync.OnceFunc(func() { close(e.Begun) })
	answer := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-e.Begun:
			w.Header().Set("Connection", "close")
		default:
		}
		answer.ServeHTTP(w, r)
	})
	server.ConnState = func(_ net.Conn, is http.ConnState) {
		switch is {
		case http.StateNew:
			e.open.Add(1)
		case http.StateClosed, http.StateHijacked:
			e.open.Add(-1)
		}
	}
	return e
}

// Serve has the server serve; failed is told if it does not do so until its end.
func (e *Ending) Serve(serve func() error, failed func(error)) {
	e.served.Go(func() {
		if err := serve(); !errors.Is(err, http.ErrServerClosed) {
			failed(err)
		}
	})
}

// Drain has each connection close with its next answer. Once none is open, or a second later, the server takes no more
// requests, and those under way are answered until ctx ends.
func (e *Ending) Drain(ctx context.Context) {
	e.begin()
	for began := time.Now(); e.open.Load() > 0 && time.Since(began) < keptFor && ctx.Err() == nil; {
		time.Sleep(10 * time.Millisecond)
	}
	_ = e.server.Shutdown(ctx)
}

// Stop lets requests under way be answered, for a moment, and waits for the end.
func (e *Ending) Stop() {
	e.begin()
	ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
	defer cancel()
	if e.server.Shutdown(ctx) != nil {
		e.server.Close()
	}
	e.served.Wait()
}
