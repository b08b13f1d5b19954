package engine

import (
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/engine/timers"
	"github.com/starling-operator/starling/runtime/object"
)

const tickPrefix = "tick."

// startTimer plans the first tick, and makes up for those that were missed.
func (t *turn) startTimer(h *hook, timer *timers.Timer) {
	if timer.Start(t.now) {
		t.queue(h, h.fire(timer, t.now))
	}
	h.module.keepTick(timer)
}

// fire is the event of a tick.
func (h *hook) fire(t *timers.Timer, tick time.Time) builtins.Event {
	t.Fire(tick, h.lane.Busy(h.gen.ID))
	return builtins.Event{Type: "schedule", Binding: t.Binding}
}

// fireSchedules queues what has fallen due of a module.
func (t *turn) fireSchedules(m *module) {
	if m.life == down {
		return
	}
	for _, h := range m.hooks {
		var events []builtins.Event
		for _, timer := range h.schedules {
			if tick, due := timer.Due(t.now); due {
				events = append(events, h.fire(timer, tick))
			}
		}
		if len(events) > 0 {
			t.queue(h, events...)
		}
	}
}

// readTick takes over the last tick of a schedule.
func readTick(_ *turn, m *module, data []byte) (known bool, err error) {
	for _, h := range m.hooks {
		if known, err = h.schedules.Read(data); known || err != nil {
			break
		}
	}
	return known, err
}

// keepTicks keeps the ticks of the schedules that there are now, and of those before only
// theirs.
func (m *module) keepTicks(before, now timers.Set) {
	for _, t := range before {
		if !now.Has(t.ID) {
			t.Forget()
			m.keepTick(t)
		}
	}
	for _, t := range now {
		m.keepTick(t)
	}
}

// keepTick keeps the last tick of a schedule that asks for it.
func (m *module) keepTick(t *timers.Timer) { m.store.Put(object.DataKey(tickPrefix, t.ID), t.Encode()) }
