package engine

import (
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
)

// The driver's timer and another input may come at the same moment: what has fallen
// due must not be forgotten because that input was handled first.
func TestAnotherInputDoesNotSwallowATimer(t *testing.T) {
	nightly := builtins.Binding{Name: "nightly", Schedule: &builtins.ScheduleBinding{Cron: "0 3 * * *"}}
	w := newWorld(t, mod("web", isOn(), hk("a", onStartup(0)), hk("b", nightly)), mod("other", isOn(), hk("n", onWatch("nodes"))))
	fails := true
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) {
		if fails {
			return effect.Effects{}, errBoom
		}
		return effect.Effects{}, nil
	}
	w.start()
	w.wantRuns("web/a startup", "other/n sync")
	fails = false
	w.now = w.wakeAt.Add(time.Millisecond)
	w.changed("other/n#nodes")
	w.advance(0)
	w.wantRuns("other/n modified", "web/a startup")

	w.now = w.wakeAt.Add(time.Millisecond)
	w.changed("other/n#nodes")
	w.advance(0)
	w.wantRuns("other/n modified", "web/b schedule")
	if w.wakeAt.IsZero() {
		t.Error("no timer is set for the next night")
	}
}

// A tick that comes while its hook runs belongs to the run after: a crash before
// that one has it made up for.
func TestATickDuringARunIsNotDoneByIt(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("a", onSchedule(builtins.ScheduleBinding{Cron: "0 3 * * *", Timezone: "UTC", CatchUp: true}))))
	w.hold = "web/a"
	w.start()
	w.advance(28 * time.Hour)
	w.wantRuns("web/a schedule")
	w.in(RunDone{Run: w.held["web/a"][0].(RunHook).Run})
	w.wantRuns("web/a schedule")
	w.hold = ""
	w.start()
	w.wantRuns("web/a schedule")
	w.start()
	w.wantRuns()
}
