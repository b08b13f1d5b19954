package live

import (
	"time"

	"github.com/starling-operator/starling/runtime/engine"
)

// maxNap is how long a timer runs at most. Timers go by a clock that stands still while a
// machine is suspended, and that nobody can set; schedules go by another one. So that
// one is looked at again and again.
const maxNap = time.Minute

// sleep has the engine woken at this time; zero: never.
func (d *Driver) sleep(until time.Time) {
	d.wakeAt = until
	d.timer.Stop()
	if !until.IsZero() {
		d.timer.Reset(nap(until, d.clock.now()))
	}
}

// wake wakes the engine if it is time.
func (d *Driver) wake() {
	if d.clock.now().Before(d.wakeAt) {
		d.sleep(d.wakeAt)
		return
	}
	d.handle(engine.Tick{})
}

// nap is how long to sleep before the next look at the clock.
func nap(until, now time.Time) time.Duration { return min(max(until.Sub(now), 0), maxNap) }
