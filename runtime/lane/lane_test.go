package lane

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newLane() *Lane[string] {
	return New(Options[string]{
		Overflow: func([]string) []string { return []string{"sync"} },
		Pause:    func(string) time.Duration { return time.Second },
	})
}

func always(ID) bool { return true }

func take(t *testing.T, l *Lane[string], now time.Time, key string, events ...string) Work[string] {
	t.Helper()
	w, ok := l.Next(now, always)
	if !ok {
		t.Fatalf("nothing is due, want %s", key)
	}
	if diff := cmp.Diff(Work[string]{ID: ID{Group: key}, Events: events, Attempt: w.Attempt}, w); diff != "" {
		t.Fatal(diff)
	}
	return w
}

func nothing(t *testing.T, l *Lane[string], now time.Time) {
	t.Helper()
	if w, ok := l.Next(now, always); ok {
		t.Fatalf("got %v, want nothing", w)
	}
}

func TestAllThatWaitsForAHookIsOneRun(t *testing.T) {
	l := newLane()
	l.Add(ID{Group: "a"}, Unordered, "1")
	l.Add(ID{Group: "b"}, Unordered, "x")
	l.Add(ID{Group: "a"}, Unordered, "2", "3")
	w := take(t, l, t0, "a", "1", "2", "3")
	nothing(t, l, t0) // one at a time
	l.Add(ID{Group: "a"}, Unordered, "4")
	l.Done(w)
	l.Done(take(t, l, t0, "b", "x"))
	l.Done(take(t, l, t0, "a", "4"))
	nothing(t, l, t0)
}

func TestOrderOrdersFirstAttemptsOnly(t *testing.T) {
	l := newLane()
	l.Add(ID{Group: "late"}, 10, "startup")
	l.Add(ID{Group: "soon"}, 1, "startup")
	l.Add(ID{Group: "other"}, Unordered, "added")
	w := take(t, l, t0, "soon", "startup")
	l.Failed(w, t0) // due at once, and yet behind those who wait for their first try
	l.Done(take(t, l, t0, "late", "startup"))
	l.Done(take(t, l, t0, "other", "added"))
	if w := take(t, l, t0, "soon", "startup"); w.Attempt != 2 {
		t.Errorf("attempt %d, want 2", w.Attempt)
	}
}

func TestAFailedHookWaitsAlone(t *testing.T) {
	l := newLane()
	l.Add(ID{Group: "bad"}, Unordered, "1")
	l.Failed(take(t, l, t0, "bad", "1"), t0.Add(time.Minute))
	l.Add(ID{Group: "good"}, Unordered, "x")
	l.Done(take(t, l, t0, "good", "x"))
	nothing(t, l, t0)
	if at, ok := l.Wake(t0); !ok || !at.Equal(t0.Add(time.Minute)) {
		t.Errorf("wakes at %v %v", at, ok)
	}
	if at, waits := l.Waiting(ID{Group: "bad"}); !waits || !at.Equal(t0.Add(time.Minute)) {
		t.Errorf("waits until %v %v", at, waits)
	}
	l.Done(take(t, l, t0.Add(time.Minute), "bad", "1"))
	if l.Attempt(ID{Group: "bad"}) != 0 {
		t.Error("a success ends the count of failures")
	}
}

// An event shortens the wait whenever it comes; without one the backoff counts.
func TestAnEventShortensABackoff(t *testing.T) {
	id, long := ID{Group: "a"}, t0.Add(5*time.Minute)
	add := func(l *Lane[string]) { l.Add(id, Unordered, "2") }
	for name, c := range map[string]struct {
		during, after func(*Lane[string])
		long          bool // the backoff counts
	}{
		"after the failure":                {after: add},
		"during the try":                   {during: add},
		"both":                             {during: add, after: add},
		"none":                             {long: true},
		"something else, after it":         {after: func(l *Lane[string]) { l.RetryAllSoon("a", time.Second) }},
		"something else, during the try":   {during: func(l *Lane[string]) { l.RetryAllSoon("a", time.Second) }},
		"another group":                    {during: func(l *Lane[string]) { l.Add(ID{Group: "b"}, Unordered, "1"); l.RetryAllSoon("b", 0) }, long: true},
		"another object of the same group": {during: func(l *Lane[string]) { l.Add(ID{Group: "a", Key: "x"}, Unordered, "1") }, long: true},
	} {
		for attempt := 1; attempt < 4; attempt++ {
			for _, forGood := range []bool{false, true} {
				l, now := newLane(), t0.Add(-time.Hour)
				l.Add(id, Unordered, "1")
				for range attempt - 1 { // tries before it that nothing has shortened
					l.Failed(next(t, l, now), now)
				}
				w := next(t, l, t0)
				if c.during != nil {
					c.during(l)
				}
				l.Yield(w) // as during the write of what is kept
				if forGood {
					l.AwaitChange(w)
				} else {
					l.Failed(w, long)
				}
				if c.after != nil {
					c.after(l)
				}
				l.Forget(ID{Group: "a", Key: "x"})
				l.Drop("b")
				at, waits := l.Wake(t0)
				want := t0.Add(time.Second)
				switch {
				case c.long:
					want = long
				case forGood && name == "after the failure": // it does not wait
					_, now := l.Next(t0, always)
					if !now {
						t.Errorf("%s, attempt %d: it waits", name, attempt)
					}
					continue
				}
				if waits != !(c.long && forGood) || waits && !at.Equal(want) {
					t.Errorf("%s, attempt %d, for good %v: it waits until %s (%v), want %s", name, attempt, forGood, at, waits, want)
					continue
				}
				if !waits {
					continue
				}
				again := next(t, l, want)
				l.Failed(again, long)
				if at, waits := l.Wake(want); waits != long.After(want) || waits && !at.Equal(long) || again.Attempt != attempt+1 {
					t.Errorf("%s, attempt %d: the next failure, of try %d, waits until %s: nothing has come meanwhile", name, attempt, again.Attempt, at)
				}
			}
		}
	}
}

func TestWorkThatFailedForGoodWaitsForAChange(t *testing.T) {
	l := newLane()
	l.Add(ID{Group: "a"}, Unordered, "1")
	l.AwaitChange(take(t, l, t0, "a", "1"))
	nothing(t, l, t0.Add(time.Hour))
	if at, ok := l.Wake(t0); ok {
		t.Errorf("wants to be woken at %s", at)
	}
	l.Add(ID{Group: "a"}, Unordered, "2")
	l.AwaitChange(take(t, l, t0, "a", "1", "2"))
	nothing(t, l, t0.Add(time.Hour))
	l.RetryAllSoon("a", time.Second)
	nothing(t, l, t0)
	take(t, l, t0.Add(time.Second), "a", "1", "2")
}

// A try that takes longer than the pause is followed by the next one at once, as it would be after an event
// that comes later.
func TestAnEventDuringALongTry(t *testing.T) {
	l := newLane()
	l.Add(ID{Group: "a"}, Unordered, "1")
	w := take(t, l, t0, "a", "1")
	l.Add(ID{Group: "a"}, Unordered, "2")
	l.Failed(w, t0.Add(time.Hour))
	take(t, l, t0.Add(30*time.Second), "a", "1", "2")
}

func TestTooManyEventsBecomeOne(t *testing.T) {
	l := newLane()
	for range MaxEvents + 1 {
		l.Add(ID{Group: "a"}, Unordered, "e")
	}
	take(t, l, t0, "a", "sync")
}

func TestReadyHoldsBack(t *testing.T) {
	l := newLane()
	l.Add(ID{Group: "a"}, Unordered, "1")
	if _, ok := l.Next(t0, func(ID) bool { return false }); ok {
		t.Error("a held key ran")
	}
	l.Clear()
	nothing(t, l, t0)
}

func TestBackoff(t *testing.T) {
	b := Backoff{Min: time.Second, Max: 10 * time.Second, Factor: 2}
	for _, c := range []struct {
		failures int
		jitter   float64
		want     time.Duration
	}{
		{1, 0, time.Second}, {2, 0, 2 * time.Second}, {3, 0.5, 4400 * time.Millisecond},
		{5, 0, 10 * time.Second}, {5000, 0.9, 10 * time.Second},
	} {
		if got := b.Delay(c.failures, c.jitter); got != c.want {
			t.Errorf("Delay(%d, %v) = %v, want %v", c.failures, c.jitter, got, c.want)
		}
	}
}
