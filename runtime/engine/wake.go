package engine

import (
	"strings"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/engine/agenda"
	"github.com/starling-operator/starling/runtime/engine/subjects"
	"github.com/starling-operator/starling/runtime/lane"
)

// tick looks at whatever has waited for this time.
func (e *Engine) tick(in Input) {
	var due []*module
	for id, is := e.agenda.Due(e.now); is; id, is = e.agenda.Due(e.now) {
		m := e.moduleOf(id.Group)
		if m == nil || m.barred() {
			continue
		}
		due = append(due, m)
		if h := m.byKey[id.Group]; h != nil {
			e.guard(m, in, func() {
				e.add(h, h.subjects.At(id.Key), lane.Unordered, builtins.Event{Type: "requeue", Binding: "requeue"})
			})
		}
	}
	for _, m := range due {
		e.guard(m, in, func() { e.fireSchedules(m) })
		e.touch(m)
	}
}

// moduleOf returns the module that has this name, or a hook with this id.
func (v *View) moduleOf(id string) *module {
	name, _, _ := strings.Cut(id, "/")
	return v.any(name)
}

// requeueAt sets the time of a subject's next run; zero means none.
func (t *turn) requeueAt(s *subjects.Subject, at time.Time) { t.agenda.Set(work(s), at) }

// setWake asks for the next tick when that is not the one that was asked for.
func (e *Engine) setWake(asked time.Time) {
	for name := e.agenda.Unknown(); name != ""; name = e.agenda.Unknown() {
		var at time.Time
		if m := e.any(name); m != nil && !m.barred() {
			at = m.nextWake(e.now)
		}
		e.agenda.Set(agenda.Module(name), at)
	}
	if next := e.agenda.Soonest(); !next.Equal(asked) {
		e.do(Wake{At: next})
	}
}

// nextWake returns when the module wants a tick; zero when it wants none.
func (m *module) nextWake(now time.Time) (at time.Time) {
	sooner := soonerThan(&at, now)
	sooner(m.retry(now))
	sooner(m.store.Until())
	for _, h := range m.hooks {
		if !h.awake() {
			continue
		}
		if h.limits[ofRuns] != nil && h.lane.Waits(h.gen.ID) {
			sooner(h.allowedAt(now))
		}
		sooner(h.echoes.Next())
		for _, s := range h.schedules {
			sooner(s.Next())
		}
	}
	return at
}

// retry returns when something of the module that has failed is tried again; zero when
// nothing has.
func (m *module) retry(now time.Time) (at time.Time) {
	sooner := soonerThan(&at, now)
	for _, l := range m.lanes() {
		if t, waits := l.Wake(now); waits {
			sooner(t)
		}
	}
	for _, h := range m.hooks {
		for _, s := range h.subjects.Failing() {
			sooner(s.Outcome().Next(nil))
		}
	}
	sooner(m.crds.At)
	sooner(m.sets.Next())
	sooner(m.eval.At)
	sooner(m.pass.Failed().At)
	sooner(m.repairs.Next())
	sooner(m.store.Next())
	sooner(m.stays)
	sooner(m.finalizers.Next(now))
	return at
}

// soonerThan notes times that are to come: at is the soonest, zero without any.
func soonerThan(at *time.Time, now time.Time) func(time.Time) {
	return func(t time.Time) {
		if t.After(now) && (at.IsZero() || t.Before(*at)) {
			*at = t
		}
	}
}

// NextRetry returns when something that has failed is tried again; zero when nothing
// has. Schedules and requeues are no retries.
func (v *View) NextRetry() (at time.Time) {
	if v.gen == nil {
		return at
	}
	sooner := soonerThan(&at, v.now)
	for _, m := range v.everyone() {
		if !m.barred() {
			sooner(m.retry(v.now))
		}
	}
	return at
}
