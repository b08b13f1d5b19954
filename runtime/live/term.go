package live

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/starling-operator/starling/runtime/engine"
)

// A term is the time in which a process asks for the Lease, has it, and loses it. Then the process stands by in place:
// watches go on, and what was said of reviews counts on. The next term begins once all work of the last one has ended,
// so nothing of one term is written in another: what was under way has no result, and the engine that leads in the
// next term begins as after a restart.

// term is what belongs to one of them.
type term struct {
	// work is the context of runs, commits and releases: it ends first.
	work     context.Context
	stopWork context.CancelFunc
	busy     tasks
	overtake sync.Map // by op: what ends the waits of the [engine.Release] that is under way
	// numbers is where the numbers of its engines begin: none is that of an earlier one.
	numbers uint64
	// began says that the engine that stands by has been told to begin.
	began atomic.Bool

	led, waits chan struct{}
	again      bool // it is not the first one
	// after is how long it waits before it asks for the Lease.
	after        time.Duration
	lease        sync.WaitGroup
	stopRenewing context.CancelFunc

	lose  sync.Once
	lost  chan struct{} // closed once nothing of it must be written any more
	cause error         // why; set before lost is closed
	fatal bool          // the process ends with it; set before lost is closed
}

func newTerm() *term {
	t := &term{led: make(chan struct{}), waits: make(chan struct{}), lost: make(chan struct{}), stopRenewing: func() {}}
	t.work, t.stopWork = context.WithCancel(context.Background())
	return t
}

// endWithin bounds how long the work of a term may take to end. It writes nothing any more: only the next term waits.
const endWithin = 30 * time.Second

var (
	errLost     = errors.New("the lease was lost: another process may work now")
	errUnending = errors.New("work of the time before the lease was lost has not ended within " + endWithin.String() + ": the process ends")
)

// work is the context of what is under way in this term, busy are its goroutines.
func (d *Driver) work() context.Context { return d.term.Load().work }
func (d *Driver) busy() *tasks          { return &d.term.Load().busy }

// lose ends the term; nothing leaves the process afterwards.
func (d *Driver) lose(err error) { d.end(d.term.Load(), err) }

// end ends a term: first of all nothing is written any more.
func (d *Driver) end(t *term, err error) {
	t.lose.Do(func() {
		d.o.Client.Shut()
		t.stopWork()
		d.metrics.leader.Set(0)
		t.cause = err
		close(t.lost)
	})
}

// seek asks for the Lease until the term ends.
func (d *Driver) seek(t *term, lock resourcelock.Interface) {
	ctx, stop := context.WithCancel(context.Background())
	t.stopRenewing = stop
	t.lease.Go(func() {
		select {
		case <-time.After(t.after):
		case <-ctx.Done():
		}
		err := lead(ctx, leadOptions{
			name: d.o.Name, lock: lock, times: d.o.Lease, log: d.o.Log, led: func() { close(t.led) }, waits: func() { close(t.waits) },
			free: d.freed, renews: d.marks.hurry, until: func(t time.Time) { d.o.Client.WritesUntil(t, d.trees.told()) }, again: t.again,
		})
		switch {
		case err == nil:
			err = errLost
		case !errors.Is(err, errTaken):
			t.fatal = true
		}
		d.end(t, err) // here, and not in the loop, which may be at something else
	})
}

// renew has the next term know nothing: another process may have worked. It is called once the work of the last one has
// ended. Where the Lease was not the reason, others may have it first.
func (d *Driver) renew(cause error) *term {
	d.releases.Begin()
	d.writer.Forget()
	d.marks.yield()
	d.sight.begin()
	d.trees.begin()
	d.o.Client.Hold()
	t := newTerm()
	t.again = true
	if !errors.Is(cause, errLost) && !errors.Is(cause, errTaken) {
		t.after = d.o.Lease.Duration
	}
	return t
}

// enter begins a term. The engine stands by since the last one has ended.
func (d *Driver) enter(t *term) {
	if !t.again {
		return
	}
	d.inbox.clear()
	d.drift.Reset() // here, and not in renew: the last step of the engine before may have gone on until now
	d.outbox.begin()
	d.metrics.hooks.Clear()
	d.repairs.Clear()
	d.clock.begin()
	t.numbers = d.used
	d.term.Store(t)
	d.o.Inputs.Next()
	d.leading = engine.New(d.o.Inputs.Options(d.engineOptions()))
	d.standBy()
	d.busy().Go(d.endOwed)
}

// stepDown begins to stand by. The answers of its engine to reviews count on.
func (d *Driver) stepDown() {
	d.o.Log.Warn().Err(d.term.Load().cause).Msg("this process leads no more: it stands by, and leads again when it has the lease")
	d.webhooks.Yield()
	d.metrics.leader.Set(0)
	d.started.Store(false)
	if is, _ := d.holder.now(); is.role >= takesOver {
		d.holder.sees(d.identity, true) // until another one is seen
	}
	d.holder.becomes(waits)
	d.handOver(engine.New(d.engineOptions()))
}
