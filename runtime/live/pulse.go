package live

import (
	"cmp"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/starling-operator/starling/runtime/engine"
)

const (
	// slowAfter is how long the engine may be at one thing before this process counts
	// as not ready: long, because a Service that loses its only pod over a slow step
	// loses all requests.
	slowAfter = 15 * time.Second
	// hungAfter is how long it may take before the process gives up: the engine does no
	// I/O, so what takes so long does not end.
	hungAfter = time.Minute
)

// pulse is what is known of the loop beside it: whether it goes on, and what the engine
// said last of its readiness.
type pulse struct {
	base time.Time
	// began is when the step under way began, or what it is at, in nanoseconds after base; 0: none is.
	began atomic.Int64
	ready atomic.Pointer[readiness]
}

type readiness struct {
	// released: every module has once been released, or has a reason; why says which has not.
	released bool
	why      string
	// answers: it answers all that the API server may ask; cold says why not.
	answers bool
	cold    string
	// standby: it is that of a process that stands by.
	standby bool
}

func newPulse() *pulse {
	p := &pulse{base: time.Now().Add(-1)}
	p.ready.Store(&readiness{why: "does not hold the lease", cold: "does not hold the lease"})
	return p
}

// step runs one step of the loop.
func (p *pulse) step(f func()) {
	p.began.Store(int64(time.Since(p.base)))
	f()
	p.began.Store(0)
}

// evaluating has each evaluation count by itself: a reload checks the values of a thousand modules in one step, and that
// these take long together is no sign that the step does not end.
func (p *pulse) evaluating(mark engine.Mark) engine.Mark {
	return func(what, digest string) (func(bool), error) {
		ended, err := mark(what, digest)
		p.goesOn()
		return func(ok bool) { ended(ok); p.goesOn() }, err
	}
}

// goesOn notes that the step under way is at the next thing.
func (p *pulse) goesOn() {
	if p.began.Load() != 0 {
		p.began.Store(int64(time.Since(p.base)))
	}
}

// age is how long the engine has been at the same thing; 0 when it rests.
func (p *pulse) age() time.Duration {
	began := p.began.Load()
	if began == 0 {
		return 0
	}
	return time.Since(p.base) - time.Duration(began)
}

func (p *pulse) hung() (reason string, yes bool) {
	age := p.age()
	return fmt.Sprintf("the engine has been at one step for %s; this is a bug, please report it", age.Round(time.Second)), age > hungAfter
}

// note takes over whether the engine is ready.
func (p *pulse) note(now readiness) {
	if *p.ready.Load() != now {
		p.ready.Store(&now)
	}
}

// noteReady takes over whether the engine is ready. A process that has once been able to answer is able, also while it
// takes over: a module that is switched on later is no reason to be taken out of service.
func (d *Driver) noteReady() {
	now := readiness{standby: d.standsBy(), answers: d.warm}
	if !now.answers {
		now.answers, now.cold = d.engine.Answers()
		d.warm = now.answers
	}
	if now.standby {
		now.why = "this process stands by; the one that holds the lease knows"
		if d.inherits && d.begun { // else it is not told of anything yet
			if whole, _ := d.engine.Answers(); whole {
				d.endOutgoing()
			}
		}
	} else if now.released, now.why = d.engine.Ready(); now.released {
		d.endOutgoing()
		d.holder.becomes(works)
	}
	d.pulse.note(now)
}

// Ready answers /readyz: whether this process serves. It answers the API server, and requests to http.receive come to
// their hooks. It never waits for the engine.
func (d *Driver) Ready() (ready bool, why string) {
	r := d.pulse.ready.Load()
	if why = cmp.Or(d.slow(), r.cold); why != "" || !r.answers {
		return false, why
	}
	if r.standby || !d.served.Load() {
		why = d.unanswered()
	}
	if r.standby && why == "" {
		is, _ := d.holder.now()
		why = d.unreceived(is)
	}
	if why == "" {
		d.served.Store(true) // one that leads tells the API server of new hooks once it answers
	}
	return why == "", why
}

// Released answers /readyz/modules: whether every module has once been released, or has a reason why not. The process
// that leads knows. It never waits for the engine.
func (d *Driver) Released() (released bool, why string) {
	r := d.pulse.ready.Load()
	if why = d.slow(); why != "" {
		return false, why
	}
	return r.released, r.why
}

// Started says whether the work of the start is done: of one that stands by, that it serves.
func (d *Driver) Started() bool {
	started, _ := d.Released()
	if d.pulse.ready.Load().standby {
		started, _ = d.Ready()
	}
	return started
}

// slow says why the loop is taken for one that does not get on, or "".
func (d *Driver) slow() string {
	if age := d.pulse.age(); age > slowAfter {
		return fmt.Sprintf("the engine has been at one step for %s", age.Round(time.Second))
	}
	return ""
}

// Healthy answers /healthz: no means that the process does not get on by itself.
func (d *Driver) Healthy() (healthy bool, why string) {
	why, hung := d.pulse.hung()
	return !hung, why
}
