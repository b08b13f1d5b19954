package timers

import (
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func hourly(catchUp bool) *Timer {
	return New("web/a", "hourly", &builtins.ScheduleBinding{Cron: "0 * * * *", CatchUp: catchUp})
}

func ran(s Set) []*Timer {
	return s.Ran([]builtins.Event{{Type: "sync", Binding: "hourly"}, {Type: "schedule", Binding: "hourly"}})
}

func TestATimerFallsDueAtEachTick(t *testing.T) {
	x := hourly(false)
	if x.Start(noon) || !x.Next().Equal(noon.Add(time.Hour)) {
		t.Fatalf("next is %s", x.Next())
	}
	if _, due := x.Due(noon.Add(59 * time.Minute)); due {
		t.Error("it is due too early")
	}
	// Two ticks that came while nobody looked are one.
	if tick, due := x.Due(noon.Add(2*time.Hour + time.Minute)); !due || !tick.Equal(noon.Add(time.Hour)) || !x.Next().Equal(noon.Add(3*time.Hour)) {
		t.Errorf("due %t for %s, next %s", due, tick, x.Next())
	}
	if x.Stop(); !x.Next().IsZero() {
		t.Error("it falls due after its end")
	}
	if bad := New("web/a", "bad", &builtins.ScheduleBinding{Cron: "no"}); bad.Start(noon) || !bad.Next().IsZero() {
		t.Error("what cannot be read falls due")
	}
}

// A process that comes late makes up for a tick that it has missed, once, and not for one
// before its first start.
func TestMissedTicksAreMadeUpFor(t *testing.T) {
	x := hourly(true)
	if x.Start(noon) || x.Encode() == nil {
		t.Fatal("the first start has missed something, or is not kept")
	}
	kept := x.Encode()
	for _, c := range []struct {
		at     time.Time
		missed bool
	}{{noon.Add(59 * time.Minute), false}, {noon.Add(5 * time.Hour), true}} {
		next := hourly(true)
		if known, err := (Set{next}).Read(kept); !known || err != nil {
			t.Fatal(known, err)
		}
		if next.Start(c.at) != c.missed {
			t.Errorf("%s: missed is not %t", c.at, c.missed)
		}
	}
	if known, err := (Set{hourly(false)}).Read(kept); known || err != nil {
		t.Error("one that does not ask for it takes it over", err)
	}
	if _, err := (Set{x}).Read([]byte("{")); err == nil {
		t.Error("what cannot be read has no error")
	}
}

// A tick counts once a run has succeeded that began after it.
func TestATickCountsOnceItsRunHasSucceeded(t *testing.T) {
	x := hourly(true)
	s := Set{x}
	x.Start(noon)
	one, two := noon.Add(time.Hour), noon.Add(2*time.Hour)
	x.Fire(one, false)
	x.Fire(two, true) // during the run for the first one
	for i, want := range []time.Time{one, two} {
		if changed := ran(s); len(changed) != 1 || !x.last.Equal(want) {
			t.Errorf("run %d: %d have changed, last is %s", i, len(changed), x.last)
		}
	}
	if changed := ran(s); len(changed) > 0 {
		t.Error("a run without a tick counts")
	}
	next := hourly(true)
	if next.Follow(x); !next.last.Equal(two) {
		t.Error("other code of the hook does not go on")
	}
	next.Follow(nil)
	if next.Forget(); next.Encode() != nil {
		t.Error("what is forgotten is kept")
	}
	if !next.Is(&builtins.ScheduleBinding{Cron: "0 * * * *", CatchUp: true}) || next.Is(&builtins.ScheduleBinding{Cron: "0 * * * *"}) {
		t.Error("declarations are not told apart")
	}
	if !s.Has(x.ID) || s.Has("web/b#hourly") || s.Of("daily") != nil {
		t.Error("timers are not found")
	}
}
