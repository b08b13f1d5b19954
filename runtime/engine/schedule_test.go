package engine

import (
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
)

func onSchedule(b builtins.ScheduleBinding) builtins.Binding {
	return builtins.Binding{Name: "nightly", Schedule: &b}
}

func TestSchedulesHaveATimeZone(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("a", onSchedule(builtins.ScheduleBinding{Cron: "0 3 * * *", Timezone: "America/New_York"}))))
	w.start() // 2026-01-01 00:00 UTC
	w.advance(8*time.Hour - time.Second)
	w.wantRuns()
	w.advance(time.Second)
	w.wantRuns("web/a schedule")
}

func TestJitterDelaysATickAndSkipsNone(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("a", onSchedule(builtins.ScheduleBinding{Cron: "0 3 * * *", Timezone: "UTC", Jitter: time.Hour}))))
	w.start()
	w.advance(4 * time.Hour)
	w.wantRuns("web/a schedule")
	w.advance(24 * time.Hour)
	w.wantRuns("web/a schedule")
}

func TestMissedTicks(t *testing.T) {
	for _, c := range []struct {
		catchUp bool
		want    []string
	}{{false, nil}, {true, []string{"web/a schedule"}}} {
		w := newWorld(t, mod("web", isOn(), hk("a", onSchedule(builtins.ScheduleBinding{Cron: "0 3 * * *", Timezone: "UTC", CatchUp: c.catchUp}))))
		w.start()
		w.wantRuns() // what came before the first start was not missed
		w.now = w.now.Add(72 * time.Hour)
		w.start()
		w.wantRuns(c.want...)
		// Made up for once; another restart has nothing more to do.
		w.now = w.now.Add(time.Hour)
		w.start()
		w.wantRuns()
		w.advance(24 * time.Hour)
		w.wantRuns("web/a schedule")
	}
}

func TestATickWhoseRunFailedIsMissed(t *testing.T) {
	fails := true
	w := newWorld(t, mod("web", isOn(), hk("a", onSchedule(builtins.ScheduleBinding{Cron: "0 3 * * *", Timezone: "UTC", CatchUp: true}))))
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) {
		if fails {
			return effect.Effects{}, errBoom
		}
		return effect.Effects{}, nil
	}
	w.start()
	w.advance(3 * time.Hour)
	w.wantRuns("web/a schedule")
	fails = false
	w.start() // killed before the retry
	w.wantRuns("web/a schedule")
}
