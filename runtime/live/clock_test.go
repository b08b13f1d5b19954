package live

import (
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/engine/timers"
)

// machine is a machine whose clock people set.
type machine struct {
	wall   time.Time
	steady time.Duration
}

func (m *machine) clock() *clock {
	return &clock{read: func() (time.Time, time.Duration) { return m.wall, m.steady }}
}

// pass has time pass, and set has people set the clock.
func (m *machine) pass(d time.Duration) { m.wall, m.steady = m.wall.Add(d), m.steady+d }
func (m *machine) set(by time.Duration) { m.wall = m.wall.Add(by) }

var midnight = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestAClockThatIsSet(t *testing.T) {
	for _, c := range []struct {
		name     string
		by       time.Duration
		at, hour time.Duration // after midnight: at once, and an hour later
	}{
		{"nobody sets it", 0, time.Hour, 2 * time.Hour},
		{"forward by an hour, or suspended for one", time.Hour, 2 * time.Hour, 3 * time.Hour},
		{"back by an hour", -time.Hour, time.Hour, time.Hour + time.Hour/2},
		{"back by a second", -time.Second, time.Hour, 2*time.Hour - time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &machine{wall: midnight}
			clock := m.clock()
			clock.now()
			m.pass(time.Hour)
			clock.now()
			m.set(c.by)
			if got := clock.now().Sub(midnight); got != c.at {
				t.Errorf("it is %s", got)
			}
			last := clock.now()
			for range 3600 {
				m.pass(time.Second)
				now := clock.now()
				if now.Before(last) {
					t.Fatalf("it goes back from %s to %s", last, now)
				}
				last = now
			}
			if got := last.Sub(midnight); got != c.hour {
				t.Errorf("an hour later it is %s", got)
			}
			for range 3600 {
				m.pass(time.Second)
				clock.now()
			}
			if got := clock.now(); !got.Equal(m.wall) || clock.wrong() != nil {
				t.Errorf("two hours later it is %s, the machine has %s, wrong: %v", got, m.wall, clock.wrong())
			}
		})
	}
}

// One that is set back, and then forward again, is where it was.
func TestAClockThatIsSetBackAndForward(t *testing.T) {
	m := &machine{wall: midnight}
	clock := m.clock()
	clock.now()
	m.set(-2 * time.Hour)
	clock.now()
	m.set(2 * time.Hour)
	if got := clock.now(); !got.Equal(midnight) {
		t.Errorf("it is %s", got)
	}
	m.set(-mostAhead - time.Second)
	if clock.now(); clock.wrong() == nil {
		t.Error("a clock that is set back by hours is not wrong")
	}
}

// Schedules on a clock that is set: no tick comes twice. Those of a time that was left out are one run.
func TestSchedulesOnAClockThatIsSet(t *testing.T) {
	for _, c := range []struct {
		name, cron, zone string
		begin            time.Time
		by               time.Duration // at begin and an hour
		runs             int           // in the five hours from begin on
	}{
		{"each ten minutes", "*/10 * * * *", "", midnight, 0, 30},
		{"each ten minutes, forward by an hour", "*/10 * * * *", "", midnight, time.Hour, 31},
		{"each ten minutes, back by an hour", "*/10 * * * *", "", midnight, -time.Hour, 24},
		{"nightly, left out", "30 1 * * *", "", midnight, time.Hour, 1},
		{"nightly, seen twice", "30 0 * * *", "", midnight, -time.Hour, 1},
		{"nightly, as clocks go forward", "30 2 * * *", "Europe/Oslo", time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC), 0, 1},
		{"nightly, as clocks go back", "30 2 * * *", "Europe/Oslo", time.Date(2026, 10, 25, 0, 0, 0, 0, time.UTC), 0, 1},
		{"hourly, as clocks go back", "0 * * * *", "Europe/Oslo", time.Date(2026, 10, 25, 0, 0, 0, 0, time.UTC), 0, 5},
		{"hourly, as clocks go forward", "0 * * * *", "Europe/Oslo", time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC), 0, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &machine{wall: c.begin}
			clock := m.clock()
			timer := timers.New("web/a", "a", &builtins.ScheduleBinding{Cron: c.cron, Timezone: c.zone})
			timer.Start(clock.now())
			runs, ticks := 0, map[time.Time]bool{}
			for second := range 5 * 60 * 60 {
				m.pass(time.Second)
				if second == 60*60 {
					m.set(c.by)
				}
				if tick, due := timer.Due(clock.now()); due {
					if runs++; ticks[tick] {
						t.Errorf("the tick of %s comes twice", tick)
					}
					ticks[tick] = true
				}
			}
			if runs != c.runs {
				t.Errorf("%d runs, want %d", runs, c.runs)
			}
		})
	}
}
