package engine

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/schedule"
)

// timer is one schedule binding.
type timer struct {
	decl    builtins.ScheduleBinding
	id      string // "<hook>#<binding>"
	binding string
	cron    schedule.Cron
	jitter  time.Duration
	catchUp bool

	tick  time.Time // the next time that the cron text names
	next  time.Time // when it comes, jitter included
	fired time.Time // the last tick that was queued
	later time.Time // the last tick that came during a run: it counts for the next
	// last is the last tick that a run succeeded for. It is kept across
	// restarts with catchUp, and only then used.
	last time.Time
}

func newTimer(hook, binding string, b *builtins.ScheduleBinding) *timer {
	t := &timer{decl: *b, id: hook + "#" + binding, binding: binding, jitter: b.Jitter, catchUp: b.CatchUp}
	// Text and zone were checked as the file was loaded; what fails here all the
	// same, as on a machine without that zone, never falls due.
	if cron, err := schedule.Parse(b.Cron); err == nil {
		t.cron = cron
		if b.Timezone != "" {
			t.cron, _ = cron.In(b.Timezone)
		}
	}
	return t
}

// plan finds the next tick after a time.
func (t *timer) plan(after time.Time) {
	t.tick, t.next = t.cron.Next(after), time.Time{}
	if !t.tick.IsZero() {
		t.next = t.tick.Add(schedule.Jitter(t.id, t.tick, t.jitter))
	}
}

// startTimer plans the first tick, and makes up for those that were missed.
func (e *Engine) startTimer(h *hook, t *timer) {
	t.plan(e.now)
	t.later = time.Time{}
	if !t.catchUp {
		return
	}
	if t.last.IsZero() {
		// Ticks before the first start were not missed.
		t.last = e.now
		h.module.keepTick(t)
		return
	}
	if missed := t.cron.Next(t.last); !missed.IsZero() && !missed.After(e.now) {
		e.fire(h, t, e.now)
	}
}

func (e *Engine) fire(h *hook, t *timer, tick time.Time) {
	if h.lane.Busy(h.gen.ID) {
		t.later = tick
	} else {
		t.fired = tick
	}
	e.queue(h, builtins.Event{Type: "schedule", Binding: t.binding})
}

// ran notes that the ticks queued before it have had their run.
func (h *hook) ran(events []builtins.Event) {
	for _, ev := range events {
		for _, t := range h.schedules {
			if ev.Type == "schedule" && ev.Binding == t.binding && t.catchUp && t.fired.After(t.last) {
				t.last = t.fired
				h.module.keepTick(t)
			}
		}
	}
	for _, t := range h.schedules {
		if !t.later.IsZero() {
			t.fired, t.later = t.later, time.Time{}
		}
	}
}

// fireSchedules queues what has fallen due of a module.
func (e *Engine) fireSchedules(m *module) {
	if !m.started {
		return
	}
	for _, h := range m.hooks {
		for _, t := range h.schedules {
			if !t.next.IsZero() && !t.next.After(e.now) {
				e.fire(h, t, t.tick)
				t.plan(e.now)
			}
		}
	}
}

// keptTick is what stands in a Secret for the last tick of one schedule.
type keptTick struct {
	Timer string    `json:"timer"`
	Tick  time.Time `json:"tick"`
}

const tickPrefix = "tick."

// readTick takes over the last tick of a schedule, unless that is gone, or no longer asks
// for it.
func (m *module) readTick(data []byte) (known bool, err error) {
	var k keptTick
	if err := json.Unmarshal(data, &k); err != nil {
		return false, err
	}
	for _, h := range m.hooks {
		for _, t := range h.schedules {
			if t.id == k.Timer && t.catchUp {
				t.last = k.Tick
				return true, nil
			}
		}
	}
	return false, nil
}

// keepTicks keeps the ticks of the schedules that there are now, and of those before only
// theirs.
func (m *module) keepTicks(before, now []*timer) {
	for _, t := range before {
		if !slices.ContainsFunc(now, func(other *timer) bool { return other.id == t.id }) {
			t.last = time.Time{}
			m.keepTick(t)
		}
	}
	for _, t := range now {
		m.keepTick(t)
	}
}

// keepTick keeps the last tick of a schedule that asks for it.
func (m *module) keepTick(t *timer) {
	var data []byte
	if t.catchUp && !t.last.IsZero() {
		data, _ = json.Marshal(keptTick{t.id, t.last.UTC()}) // a text and a time
	}
	m.store.Put(keptKey(tickPrefix, t.id), data)
}
