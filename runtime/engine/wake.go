package engine

import "time"

// tick looks at whatever may wait for a time.
func (e *Engine) tick() {
	e.fireTimers()
	if e.global != nil {
		e.touchAll()
	}
}

// setWake asks for the next tick when that time has moved.
func (e *Engine) setWake() {
	var next time.Time
	sooner := func(at time.Time, ok bool) {
		if ok && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	if e.global != nil {
		sooner(e.global.nextWake(e.now))
	}
	for _, m := range e.modules {
		sooner(m.nextWake(e.now))
	}
	for _, m := range e.leavers {
		sooner(m.nextWake(e.now))
	}
	if len(e.requeues) > 0 {
		sooner(e.requeues[0].requeueAt, true)
	}
	if !next.Equal(e.wake) {
		e.wake = next
		e.do(Wake{At: next})
	}
}

// wakes is what wake has returned for a module: among many modules one input moves few.
type wakes struct {
	known bool // nothing has touched the module since
	at    time.Time
	ok    bool
}

// nextWake is wake, worked out when the module was touched or that time has passed.
func (m *module) nextWake(now time.Time) (at time.Time, ok bool) {
	if w := &m.wakes; !w.known || w.ok && !w.at.After(now) {
		w.at, w.ok = m.wake(now)
		w.known = true
	}
	return m.wakes.at, m.wakes.ok
}

// wake returns when the module wants a tick.
func (m *module) wake(now time.Time) (at time.Time, ok bool) {
	sooner := func(t time.Time) {
		if t.After(now) && (!ok || t.Before(at)) {
			at, ok = t, true
		}
	}
	sooner(m.retry(now))
	if m.started {
		for _, h := range m.hooks {
			if h.limit != nil && h.lane.Waits(h.gen.ID) {
				sooner(h.allowedAt(now))
			}
			sooner(h.restsAt())
			for _, s := range h.schedules {
				sooner(s.next)
			}
		}
	}
	return at, ok
}

// retry returns when something of the module that has failed is tried again; zero when
// nothing has.
func (m *module) retry(now time.Time) (at time.Time) {
	sooner := func(t time.Time) {
		if t.After(now) && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	for _, l := range m.lanes {
		if t, waits := l.Wake(now); waits {
			sooner(t)
		}
	}
	sooner(m.crds.next)
	sooner(m.strays.next)
	sooner(m.eval.next)
	sooner(m.pass.next)
	sooner(m.saveAt)
	sooner(m.stays)
	sooner(m.finalizerWake(now))
	return at
}

// NextRetry returns when something that has failed is tried again; zero when nothing
// has. Schedules and requeues are no retries.
func (e *Engine) NextRetry() (at time.Time) {
	sooner := func(t time.Time) {
		if t.After(e.now) && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	for _, m := range append(e.all(), e.leavers...) {
		sooner(m.retry(e.now))
	}
	return at
}
