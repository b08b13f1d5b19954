package sim

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"github.com/starling-operator/starling/modules/release"
	"github.com/starling-operator/starling/runtime/engine"
)

// flight is an action that waits for Jobs of a chart's hooks while other things happen. One goroutine works at a time:
// the world waits until the flight does, or has ended.
type flight struct {
	actor  string
	began  time.Time
	cancel context.CancelCauseFunc
	// op is that of an [engine.Release], whose waits overtake ends; 0 otherwise.
	op       uint64
	overtake context.CancelFunc
	turn     chan struct{} // it may go on
	awaits   chan struct{} // it waits
	done     chan engine.Input
	// until a time, or until the cluster has another version, there is nothing to do for it.
	until   time.Time
	version string
}

type flightKey struct{}

var errKilled = errors.New("the process is killed")

// fly begins an action that may wait; without workloads that move it does not.
func (w *World) fly(ctx context.Context, a engine.Action, work func(ctx context.Context) engine.Input) engine.Input {
	if w.moving == nil {
		return work(ctx)
	}
	f := &flight{actor: actor(a), began: w.now, turn: make(chan struct{}), awaits: make(chan struct{}), done: make(chan engine.Input)}
	if r, is := a.(engine.Release); is {
		f.op = r.Op
	}
	ctx, f.overtake = release.Overtakable(context.WithValue(context.WithoutCancel(ctx), flightKey{}, f))
	ctx, f.cancel = context.WithCancelCause(ctx)
	go func() { f.done <- work(ctx) }()
	return w.watchOver(f)
}

// overtake has a release wait no more.
func (w *World) overtake(op uint64) {
	for _, f := range w.flights {
		if f.op == op {
			f.overtake()
			f.version = "" // there is something to do for it
		}
	}
}

// watchOver returns when a flight waits, or with its answer.
func (w *World) watchOver(f *flight) engine.Input {
	select {
	case in := <-f.done:
		f.cancel(nil)
		return in
	case <-f.awaits:
		w.flights = append(w.flights, f)
		return nil
	}
}

// hold is how releases wait, see [release.Options].
func (w *World) hold(ctx context.Context, timeout error, within time.Duration, look func() (done bool, err error)) error {
	f, flies := ctx.Value(flightKey{}).(*flight)
	if !flies {
		return nil // nothing moves
	}
	for ctx.Err() == nil {
		if done, err := look(); done || err != nil {
			return err
		}
		if f.until = f.began.Add(within); !w.now.Before(f.until) {
			f.cancel(timeout)
			break
		}
		f.version = w.store.Version()
		f.awaits <- struct{}{}
		<-f.turn
	}
	return context.Cause(ctx)
}

// resume has one flight go on whose wait may be over, and says whether there is one.
func (w *World) resume() bool {
	for i, f := range w.flights {
		if f.version == w.store.Version() && w.now.Before(f.until) {
			continue
		}
		w.flights = append(w.flights[:i:i], w.flights[i+1:]...)
		w.store.As(f.actor)
		f.turn <- struct{}{}
		in := w.watchOver(f)
		w.store.As("")
		if in != nil {
			w.handle(in)
		}
		return true
	}
	return false
}

// Stop ends the process as kill -9 does; the cluster stays as it is. Flights end, and write nothing any more.
func (w *World) Stop() {
	if w.line != nil {
		w.line.cut.Store(true)
	}
	for _, f := range w.flights {
		f.cancel(errKilled)
		f.turn <- struct{}{}
		<-f.done
	}
	w.engine, w.pending, w.flights, w.watches, w.drifting, w.wakeAt = nil, nil, nil, nil, nil, time.Time{}
}

// dialled is how releases of a new process reach the API server.
func (w *World) dialled() *rest.Config {
	w.line = &line{}
	config := rest.CopyConfig(w.client.Config())
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		w.line.next = next
		return w.line
	})
	return config
}

// line is how the releases of one process reach the API server.
type line struct {
	next http.RoundTripper
	cut  atomic.Bool
}

// RoundTrip implements [http.RoundTripper].
func (l *line) RoundTrip(r *http.Request) (*http.Response, error) {
	if l.cut.Load() {
		return nil, errKilled
	}
	return l.next.RoundTrip(r)
}
