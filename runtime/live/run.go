package live

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/engine"
)

// Run works until ctx ends: it leads while it has the Lease, and stands by else. It returns nil after all work under
// way has stopped, and an error when this process must not go on.
func (d *Driver) Run(ctx context.Context) error {
	stopReceiving := d.startReceive()
	defer stopReceiving() // after what waits has been told
	defer close(d.done)
	defer patiently(d.watches.Shutdown)
	defer d.stopServing()
	d.watchConfig()
	lock, err := d.leaseLock()
	if err != nil {
		return err
	}
	d.o.Client.Hold()
	d.o.Client.WritesOf(d.trees.own())
	reviewed := make(chan struct{})
	defer context.AfterFunc(ctx, func() { defer close(reviewed); d.drainReviews() })()
	looped := make(chan struct{})
	go func() { defer close(looped); d.loop(ctx) }()

	t := d.term.Load()
	for {
		var over bool
		if err, over = d.supervise(ctx, t, lock, looped); over {
			break
		}
		ended := d.stop(t, d.o.Lease.grace(), endWithin)
		t.stopRenewing()
		if t.lease.Wait(); !ended {
			err = errUnending
			break
		}
		t = d.renew(err)
	}
	d.quit()
	grace := stopGrace
	if err != nil {
		grace = d.o.Lease.grace()
	}
	clean := d.stop(t, grace, 0)
	d.clearMarks()
	t.stopRenewing()
	t.lease.Wait()
	if clean {
		d.leave(lock)
	}
	if err == nil {
		<-reviewed // ctx has ended
	}
	d.endServing()
	return err
}

// leave gives the Lease back. A process that has not led has nothing to give: that it cannot ask is no news.
func (d *Driver) leave(lock resourcelock.Interface) {
	ctx, cancel := context.WithTimeout(context.Background(), d.o.Lease.Retry)
	defer cancel()
	err := giveBack(ctx, lock)
	if is, _ := d.holder.now(); err != nil && is.role >= takesOver {
		d.o.Log.Warn().Err(err).Msg("the lease could not be given back; another process follows once it has run out")
	}
}

// endServing has the API server be answered no more.
func (d *Driver) endServing() {
	d.stopServing()
	patiently(func() { <-d.serving.close() })
	d.web.Close()
	if err := d.marks.Clear(); err != nil {
		d.o.Log.Warn().Err(err).Msg("marks of reviews stay in --state-dir")
	}
}

// patiently waits for f, but not for one step of a hook, a filter or a file that does not
// end: nothing is written any more, so nothing is lost with it.
func patiently(f func()) { within(stopPatience, f) }

// within says whether f has ended within a time.
func within(patience time.Duration, f func()) bool {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
		return true
	case <-time.After(patience):
		return false
	}
}

// supervise hands a term to the loop, and returns once it has ended, with the reason. Over says that this process
// ends: ctx has, or it must not go on. It does not wait for a loop that hangs.
func (d *Driver) supervise(ctx context.Context, t *term, lock resourcelock.Interface, looped chan struct{}) (err error, over bool) {
	look := time.NewTicker(slowAfter / 3)
	defer look.Stop()
	next, stopping, patience := d.terms, ctx.Done(), (<-chan time.Time)(nil)
	for {
		select {
		case next <- t:
			next = nil
			d.seek(t, lock)
		case <-t.lost:
			if ctx.Err() != nil {
				return nil, true
			}
			return t.cause, t.fatal
		case <-looped: // after ctx
			return nil, true
		case <-stopping:
			stopping, patience = nil, time.After(drainWithin+time.Second)
		case <-patience:
			d.o.Log.Warn().Msg("the engine does not end its last step; the process ends without it")
			return nil, true
		case <-look.C:
			if why, hung := d.pulse.hung(); hung {
				err = errors.New(why)
				d.end(t, err)
				return err, true
			}
		}
	}
}

// loop hands one input after the other to the engine. It is the engine's only goroutine.
func (d *Driver) loop(ctx context.Context) {
	stopping, drained := ctx.Done(), (<-chan struct{})(nil)
	var led, waits, lost, inputs chan struct{} // none between two terms
	terms := d.terms                           // nil until the last one has ended
	step := func(f func()) { d.pulse.step(func() { f(); d.noteReady() }) }
	for {
		select {
		case <-stopping:
			stopping, drained = nil, d.drainReceive()
		case <-drained:
			return
		case <-d.done:
			return
		case t := <-terms:
			terms = nil
			led, waits, lost, inputs = t.led, t.waits, t.lost, d.inbox.signal
			step(func() { d.enter(t) })
		case <-lost:
			led, waits, lost, inputs, terms = nil, nil, nil, nil, d.terms
			step(d.stepDown)
		case <-waits:
			if waits = nil; !d.standsBy() {
				step(d.standBy)
			}
		case <-led:
			led, waits = nil, nil
			d.o.Log.Debug().Msg("holds the lease")
			d.metrics.leader.Set(1)
			step(d.takeOver)
			d.busy().Go(d.beginLeading)
			d.keepRecords()
			d.busy().Go(d.showRole)
			d.busy().Go(d.followKinds)
			if d.o.ModuleObjects {
				d.busy().Go(func() { d.objects.Run(d.work()) })
			}
		case <-inputs:
			if in, ok := d.inbox.take(); ok {
				step(func() { d.handle(in) })
			}
		case <-d.timer.C:
			step(d.wake)
		case <-d.look.C:
			d.looking = false
			step(func() { d.metrics.state.look(d.engine.Load(), d.clock.now()) })
		case ask := <-d.asks:
			step(func() { ask(d.engine) })
		}
	}
}

// followKinds has the releases looked at again whose charts asked for kinds that have come or gone.
func (d *Driver) followKinds() {
	_ = d.guard(func() error {
		d.releases.Follow(d.work(), func(module string) { d.inbox.put(engine.Reconcile{Module: module}) })
		return nil
	})
}

// beginLeading has the engine that leads start, and tells it when its tree takes away what it lacks.
func (d *Driver) beginLeading() {
	stays, until := d.stays(time.Now()), ""
	d.begin(func() (engine.Start, error) {
		var asks sync.WaitGroup
		asks.Go(func() { until = stays() })
		start, err := d.readStart()
		asks.Wait()
		start.Stays = until
		return start, err
	})
	if d.endStays(until, stays) {
		d.trees.settle()
		d.marks.renew() // the Lease says so
		d.webhooks.TakeAway()
	}
}

// begin reads what earlier processes kept and lets the engine start.
func (d *Driver) begin(read func() (engine.Start, error)) {
	wait := time.Second
	for {
		start, err := read()
		if err == nil {
			d.inbox.put(start)
			return
		}
		if d.work().Err() != nil {
			return
		}
		d.o.Log.Error().Err(err).Stringer("next_try", wait).Msg("cannot read what was kept; nothing is done before")
		select {
		case <-d.work().Done():
			return
		case <-time.After(wait):
		}
		wait = min(wait*2, 30*time.Second)
	}
}

// readStart reads all of it, side by side: nothing is done before.
func (d *Driver) readStart() (engine.Start, error) {
	var start engine.Start
	var keptErr, setsErr, sealErr error
	var reads sync.WaitGroup
	reads.Go(func() { start.Kept, keptErr = d.kept.Load(d.work()) })
	reads.Go(func() { start.Sets, setsErr = d.executor.Sets(d.work()) })
	reads.Go(func() { sealErr = d.openSeal(d.work(), true) })
	refs, err := d.releases.Installed(d.work())
	if err == nil {
		start.Installed = refsOf(refs)
		d.busy().Go(func() { // while hooks and watches begin; the next call that asks meets its error
			_ = d.guard(func() error { d.releases.Expect(d.work(), refs); return nil })
		})
	}
	reads.Wait()
	switch {
	case err != nil:
		return start, fmt.Errorf("release records: %w", err)
	case keptErr != nil:
		return start, fmt.Errorf("kept values: %w", keptErr)
	case setsErr != nil:
		return start, fmt.Errorf("records of sets: %w", setsErr)
	case sealErr != nil:
		return start, fmt.Errorf("the key of marks: %w", sealErr)
	}
	return start, nil
}

// leaseSeal signs the Lease, and says whether another process has.
func (d *Driver) leaseSeal() leaseSeal {
	return leaseSeal{d.o.Client.Seal(), func(ctx context.Context) error { return d.openSeal(ctx, false) }}
}

// awaitSeal waits for the key that the process which leads makes: reviews look at marks, too. If that one signs with
// another key, somebody has deleted the Secret, and there is a new one.
func (d *Driver) awaitSeal() {
	for {
		is, moved := d.holder.now()
		if is.role != waits {
			return
		}
		var again <-chan time.Time
		if is.forged || !d.o.Client.Seal().Ready() {
			_ = d.openSeal(d.work(), false)           // the process that leads tells of a key that cannot be read
			moved, again = nil, time.After(sealAgain) // however often somebody writes the Lease
		}
		select {
		case <-d.work().Done():
			return
		case <-moved:
		case <-again:
		}
	}
}

const sealAgain = 5 * time.Second

// openSeal gets the key that signs marks. The process that leads makes it before anything is written; others take the
// one that is there.
func (d *Driver) openSeal(ctx context.Context, lead bool) error {
	warning, err := cluster.SecretKey{
		Client: d.o.Client, Namespace: d.o.Namespace, Name: d.o.Name, Instance: d.kept.Instance(),
	}.OpenSeal(ctx, time.Now(), lead)
	if warning != "" {
		d.o.Log.Warn().Msg(warning)
	}
	return err
}

// stop ends all work of a term: no new write leaves the process, and what is under way may end within the grace.
// With patience it waits for all that still runs. It returns false when something of it may still be under way: then
// the Lease must run out by itself.
func (d *Driver) stop(t *term, grace, patience time.Duration) (clean bool) {
	sending, end := context.WithTimeout(context.Background(), grace)
	defer end()
	ctx, cancel := context.WithTimeout(context.Background(), max(grace, patience))
	defer cancel()
	d.webhooks.Yield()
	t.stopWork()
	idle := t.busy.close()
	defer d.metrics.leader.Set(0)
	clean = true
	if err := d.releases.Fence(ctx); err != nil {
		clean = false
		d.o.Log.Warn().Err(err).Msg("a release did not end in time; it is taken over at the next start")
	}
	if err := d.o.Client.Fence(ctx); err != nil {
		clean = false
		d.o.Log.Warn().Err(err).Msg("a write did not end in time")
	}
	if !within(max(stopPatience, patience), func() { <-idle }) && patience > 0 {
		clean = false
	}
	lost, left := d.outbox.stop(sending)
	if lost > 0 {
		d.o.Log.Warn().Int("messages", lost).Msg("messages that have not arrived are lost")
	}
	if left > 0 {
		d.o.Log.Info().Int("messages", left).Msg("messages that have not arrived are sent by the next process that leads")
	}
	return clean
}

// clearMarks says that this process ends as it should, unless it hangs.
func (d *Driver) clearMarks() {
	if _, hung := d.pulse.hung(); hung {
		d.marks.Stay() // they say at what
	}
	if err := errors.Join(d.marks.Clear(), d.marks.End(d.identity)); err != nil {
		d.o.Log.Warn().Err(err).Msg("marks of runs stay in --state-dir")
	}
}
