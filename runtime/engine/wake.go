package engine

import (
	"container/heap"
	"time"
)

// tick looks at whatever has waited for this time.
func (e *Engine) tick() {
	e.fireRequeues()
	for len(e.wakes) > 0 && !e.wakes[0].wake.at.After(e.now) {
		m := heap.Pop(&e.wakes).(*module)
		e.fireSchedules(m)
		e.touch(m)
	}
}

// planWake has the time of the module's next tick worked out anew.
func (e *Engine) planWake(m *module) {
	if !m.touched {
		m.touched = true
		e.touched = append(e.touched, m)
	}
}

// setWake asks for the next tick when that time has moved.
func (e *Engine) setWake() {
	for _, m := range e.touched {
		m.touched = false
		e.wakeModule(m)
	}
	e.touched = e.touched[:0]
	var next time.Time
	if len(e.wakes) > 0 {
		next = e.wakes[0].wake.at
	}
	if len(e.requeues) > 0 && (next.IsZero() || e.requeues[0].requeueAt.Before(next)) {
		next = e.requeues[0].requeueAt
	}
	if !next.Equal(e.wake) {
		e.wake = next
		e.do(Wake{At: next})
	}
}

// wakeModule notes when a module wants a tick.
func (e *Engine) wakeModule(m *module) {
	at, wants := m.nextWake(e.now)
	wants = wants && (m == e.global || e.modules[m.name] == m)
	m.wake.at = at
	switch {
	case wants && m.wake.place > 0:
		heap.Fix(&e.wakes, m.wake.place-1)
	case wants:
		heap.Push(&e.wakes, m)
	case m.wake.place > 0:
		heap.Remove(&e.wakes, m.wake.place-1)
	}
}

// wake is when a module wants a tick.
type wake struct {
	at    time.Time
	place int // among those that want one, plus one
}

// wakes are the modules that want a tick, soonest first.
type wakes []*module

func (w wakes) Len() int { return len(w) }

func (w wakes) Less(i, j int) bool {
	if at, other := w[i].wake.at, w[j].wake.at; !at.Equal(other) {
		return at.Before(other)
	}
	return w[i].name < w[j].name // so that the same inputs lead to the same actions
}

func (w wakes) Swap(i, j int) {
	w[i], w[j] = w[j], w[i]
	w[i].wake.place, w[j].wake.place = i+1, j+1
}

func (w *wakes) Push(x any) {
	m := x.(*module)
	*w = append(*w, m)
	m.wake.place = len(*w)
}

func (w *wakes) Pop() any {
	last := len(*w) - 1
	m := (*w)[last]
	(*w)[last] = nil
	*w = (*w)[:last]
	m.wake.place = 0
	return m
}

// nextWake returns when the module wants a tick.
func (m *module) nextWake(now time.Time) (at time.Time, ok bool) {
	sooner := func(t time.Time) {
		if t.After(now) && (!ok || t.Before(at)) {
			at, ok = t, true
		}
	}
	sooner(m.retry(now))
	sooner(m.store.Until())
	if m.started {
		for _, h := range m.hooks {
			if h.limit != nil && h.lane.Waits(h.gen.ID) {
				sooner(h.allowedAt(now))
			}
			sooner(h.restsAt())
			for _, s := range h.schedules {
				sooner(s.Next())
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
	sooner(m.crds.retry.At)
	sooner(m.strays.retry.At)
	sooner(m.eval.retry.At)
	sooner(m.pass.RetryAt())
	sooner(m.store.Next())
	sooner(m.stays)
	sooner(m.finalizers.Next(now))
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
	for _, m := range e.everyone() {
		sooner(m.retry(e.now))
	}
	return at
}
