package engine

import (
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/engine/timers"
	"github.com/starling-operator/starling/runtime/object"
)

const tickPrefix = "tick."

// startTimer plans the first tick, and makes up for those that were missed.
func (e *Engine) startTimer(h *hook, t *timers.Timer) {
	if e.standsBy() {
		return
	}
	if t.Start(e.now) {
		e.queue(h, h.fire(t, e.now))
	}
	h.module.keepTick(t)
}

// fire is the event of a tick.
func (h *hook) fire(t *timers.Timer, tick time.Time) builtins.Event {
	t.Fire(tick, h.lane.Busy(h.gen.ID))
	return builtins.Event{Type: "schedule", Binding: t.Binding}
}

// fireSchedules queues what has fallen due of a module.
func (e *Engine) fireSchedules(m *module) {
	if m.life == down {
		return
	}
	for _, h := range m.hooks {
		var events []builtins.Event
		for _, t := range h.schedules {
			if tick, due := t.Due(e.now); due {
				events = append(events, h.fire(t, tick))
			}
		}
		if len(events) > 0 {
			e.queue(h, events...)
		}
	}
}

// readTick takes over the last tick of a schedule.
func (m *module) readTick(data []byte) (known bool, err error) {
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
