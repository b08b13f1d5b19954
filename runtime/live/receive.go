package live

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/httpserver"
)

// openReceive prepares the server of http.receive. It listens from the start, and
// answers 503 before this process has seen the Lease.
func (d *Driver) openReceive(ln *httpserver.Listener) {
	if ln == nil {
		d.warnOfPaths()
		return
	}
	d.forwarder = httpserver.NewForwarder(ln)
	d.receive = httpserver.New(httpserver.Options{
		Namespace: d.o.Namespace, Reader: d.o.Client, Log: d.o.Log,
		Answer: d.answerReceived,
		Moves: func() bool {
			is, _ := d.holder.now()
			return is.role == waits || is.role == takesOver
		},
		Stands: d.holder.stands,
		Leads: func(name string) bool {
			is, _ := d.holder.now()
			return name == d.identity && (is.role == takesOver || is.role == works)
		},
		Observe: func(module, hook string, code int) {
			d.metrics.received.WithLabelValues(module, hook, strconv.Itoa(code)).Inc()
		},
	})
	d.receive.Know(d.generation.Load())
}

const (
	// firstPause and lastPause are between two tries to have a request answered.
	firstPause = 20 * time.Millisecond
	lastPause  = time.Second
)

// answerReceived has a hook answer a request, here or where the Lease is held. A request waits while another
// process takes over: it may have been taken by the one before, and is then taken twice.
func (d *Driver) answerReceived(ctx context.Context, in httpserver.Incoming) (builtins.Response, error) {
	late := time.Now().Add(httpserver.AnswerWithin)
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		is, moved := d.holder.now()
		response, again, err := d.tryReceived(ctx, in, is, moved, late)
		if !again || time.Now().Add(pause).After(late) {
			return response, err
		}
		select {
		case <-moved:
			pause = firstPause
		case <-time.After(pause):
		case <-d.ends.Done():
			return response, fmt.Errorf("%w: %w", errStopping, httpserver.ErrAway)
		}
	}
}

// tryReceived has a hook answer a request where it is answered now. It returns true when another try may find it
// answered.
func (d *Driver) tryReceived(ctx context.Context, in httpserver.Incoming, is holding, moved <-chan struct{}, late time.Time) (response builtins.Response, again bool, err error) {
	if in.Hook == "" && d.tellsNothing(is) {
		return response, false, httpserver.ErrNoPath
	}
	if is.role != waits {
		response, err = d.Request(ctx, in.Hook, in.Request)
		if errors.Is(err, errStopping) {
			return response, d.ends.Err() == nil, fmt.Errorf("%w: %w", err, httpserver.ErrAway) // else it leads no more
		}
		return response, (is.role == takesOver || d.answers.owes(moduleOf(in.Hook))) && errors.Is(err, engine.ErrNotReady), err
	}
	if why := d.unreached(is); why != "" {
		return response, !is.seen, fmt.Errorf("%w: requests are answered %s", httpserver.ErrAway, why)
	}
	if d.next(is.name) {
		return response, true, fmt.Errorf("%w: nobody who takes requests holds it yet", httpserver.ErrAway)
	}
	if is.forged {
		return response, true, fmt.Errorf("%w: the key of this instance has not signed the lease", httpserver.ErrAway)
	}
	_, at := addressesOf(is.name)
	to := httpserver.Peer{Name: is.name, Address: at}
	ctx, end := context.WithDeadline(ctx, late)
	defer end()
	defer context.AfterFunc(d.ends, end)()
	go func() { // an answer of a process that does not lead any more may never come
		select {
		case <-moved:
			end()
		case <-ctx.Done():
		}
	}()
	response, err = d.forwarder.Forward(ctx, to, in)
	return response, errors.Is(err, httpserver.ErrAway), err
}

// unreceived says why a process that stands by has requests of http.receive answered by nobody, or "".
func (d *Driver) unreceived(is holding) string {
	path, why := d.receivesAt(), d.unreached(is)
	if d.receive == nil || path == "" || why == "" {
		return ""
	}
	return fmt.Sprintf("requests to %s are answered %s", path, why)
}

// next says that the next process takes requests, which may be this one: nobody holds the Lease, or one with another tree
// or other flags, or the process whose place this one has, as where its container has started again after a crash.
func (d *Driver) next(holder string) bool {
	_, at := addressesOf(holder)
	return holder == "" || holder == d.identity || strings.HasSuffix(holder, "_"+takesNone) ||
		at != "" && at == d.receiveAt && hostOf(holder) == hostOf(d.identity)
}

// unreached says why a process that stands by can hand no request to the one that holds the Lease, or "".
func (d *Driver) unreached(is holding) string {
	switch _, at := addressesOf(is.name); {
	case !is.seen:
		return "where the lease is held, and this process has not seen who holds it"
	case d.next(is.name):
		return ""
	case at == "":
		return fmt.Sprintf("where the lease is held, by %s, which says no address", is.name)
	case at == d.receiveAt:
		return fmt.Sprintf("where the lease is held, at %s, which is the address of this process, too", at)
	}
	return ""
}

// tellsNothing says that nobody can be asked about a path that no hook of this process has: this process leads by now,
// or the one that does takes no requests, or none from here.
func (d *Driver) tellsNothing(is holding) bool {
	return is.role != waits || is.seen && d.unreached(is) != "" || strings.HasSuffix(is.name, "_"+takesNone)
}

// receivesAt is a path of http.receive, or "".
func (d *Driver) receivesAt() string {
	for _, h := range d.generation.Load().Hooks() {
		for i := range h.Bindings {
			if r := h.Bindings[i].Receive; r != nil {
				return r.Path
			}
		}
	}
	return ""
}

// warnOfPaths names hooks that nobody can reach.
func (d *Driver) warnOfPaths() {
	for m, h := range d.generation.Load().Hooks() {
		for _, b := range h.Bindings {
			if b.Receive != nil {
				d.log(m.Name, h.ID).Log(builtins.LevelWarn, "receives no requests at "+b.Receive.Path+": run starling with --receive-address", nil)
			}
		}
	}
}

// startReceive serves until the function that it returns is called.
func (d *Driver) startReceive() (stop func()) {
	if d.receive == nil {
		return func() {}
	}
	d.receive.Start(d.o.Receive)
	return func() { d.receive.Stop(); d.forwarder.Close() }
}
