package causes

import (
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
)

// row is the cause of what so many runs about one subject have led to, each by a watch.
func row(subject string, runs int) *effect.Cause {
	var c *effect.Cause
	for range runs {
		c = c.Then(subject, true, "")
	}
	return c
}

func event(name string, cause *effect.Cause) builtins.Event {
	return builtins.Event{Type: "modified", Binding: "nodes", Name: name, Cause: cause}
}

func none() float64 { return 0 }

// Of one object the longest row counts, of several the shortest: something else has brought
// the run about as well.
func TestTheCauseOfARun(t *testing.T) {
	short, long := row("a", 1), row("a", 5)
	for name, c := range map[string]struct {
		events []builtins.Event
		want   *effect.Cause
		slowed bool
	}{
		"nothing":         {nil, nil, false},
		"one object":      {[]builtins.Event{event("x", short), event("x", long), event("x", nil)}, long, false},
		"several objects": {[]builtins.Event{event("x", long), event("y", short)}, short, false},
		"news":            {[]builtins.Event{event("x", long), event("y", nil)}, nil, false},
		"goes round":      {[]builtins.Event{event("x", row("a", MaxEchoes)), event("y", row("a", MaxEchoes))}, row("a", MaxEchoes), true},
		"round, and news": {[]builtins.Event{event("x", row("a", MaxEchoes)), event("y", nil)}, row("a", MaxEchoes), false},
	} {
		got, slowed := Of(c.events)
		if got.Cause.Compare(c.want) != 0 || slowed != c.slowed {
			t.Errorf("%s: %+v, slowed %t", name, got.Cause, slowed)
		}
	}
}

// A subject that has led to itself many times waits longer each time, unless there is news; it
// is said to wake itself until it has rested.
func TestASubjectThatWakesItselfIsSlowedDown(t *testing.T) {
	now := time.Unix(0, 0)
	var x Echo
	if x.Concerns("a", []builtins.Event{event("x", row("a", MaxEchoes-1))}) {
		t.Fatal("it is slowed down too early")
	}
	for i, want := range []time.Duration{time.Second, 2 * time.Second} {
		events := []builtins.Event{event("x", row("a", MaxEchoes+i))}
		if !x.Concerns("a", events) || x.Concerns("b", events) != !x.Until().IsZero() {
			t.Fatalf("round %d concerns others", i)
		}
		if _, slowed := x.Queue("a", events, now, none); !slowed || !x.Until().Equal(now.Add(want)) {
			t.Fatalf("round %d: slowed %t until %s", i, slowed, x.Until())
		}
		if _, again := x.Queue("a", events, now, none); again {
			t.Error("it is slowed down twice at a time")
		}
		if first := x.Say("wakes itself"); first != (i == 0) {
			t.Errorf("round %d is the first: %t", i, first)
		}
		now = x.Until()
		x.Begin(events[0].Cause)
		x.End(true, now)
	}
	if x.rest(now) || x.rest(now.Add(echoRests-1)) || !x.rest(x.ends) || x.why != "" {
		t.Error("it does not rest")
	}
	x.Queue("a", []builtins.Event{event("x", row("a", MaxEchoes))}, now, none)
	if _, slowed := x.Queue("a", []builtins.Event{event("x", row("a", MaxEchoes)), event("y", nil)}, now, none); slowed || !x.Until().IsZero() {
		t.Error("news wait")
	}
	x.Say("wakes itself")
	if x.End(false, now); x.why != "" {
		t.Error("a run that writes nothing wakes itself")
	}
	x.Say("wakes itself")
	if x.Begin(nil); x.why != "" {
		t.Error("a run for other news is one of the row")
	}
}

// A subject that writes an object which others change, too, waits for seconds at most: as soon as they change it.
func TestASubjectWhoseObjectOthersChange(t *testing.T) {
	now := time.Unix(0, 0)
	var x Echo
	own := event("x", row("a", MaxEchoes+10))
	if _, slowed := x.Queue("a", []builtins.Event{own}, now, none); !slowed || x.Until().Before(now.Add(4*time.Minute)) {
		t.Fatalf("alone: until %s", x.Until())
	}
	now = now.Add(time.Second)
	for range 2 { // a later one does not put it off
		if _, again := x.Queue("a", []builtins.Event{own, event("x", nil)}, now, none); again || !x.Until().Equal(time.Unix(11, 0)) {
			t.Errorf("slowed anew %t until %s", again, x.Until())
		}
		now = now.Add(time.Second)
	}
	x = Echo{}
	if _, slowed := x.Queue("a", []builtins.Event{own, event("x", nil)}, now, none); !slowed || !x.Until().Equal(now.Add(mostNews)) {
		t.Errorf("slowed %t until %s", slowed, x.Until())
	}
}

// Subjects that have rested are forgotten, unless something waits for them.
func TestTheSubjectsOfAHookThatWakeThemselves(t *testing.T) {
	now := time.Unix(0, 0)
	x := Echoes{}
	if x.Of("a").Say("a: wakes itself"); len(x) > 0 || x.Trouble() != "" || !x.Next().IsZero() {
		t.Error("one that is not slowed down is taken note of")
	}
	for i, subject := range []string{"b", "a"} {
		x[subject] = x.Of(subject)
		x[subject].Say(subject + ": wakes itself")
		x[subject].End(true, now.Add(time.Duration(i)*time.Second))
	}
	if got := x.Trouble(); got != "a: wakes itself" || !x.Next().Equal(now.Add(echoRests)) {
		t.Errorf("trouble %q until %s", got, x.Next())
	}
	x.Rest(x.Next())
	if got := x.Trouble(); got != "a: wakes itself" || len(x) != 1 {
		t.Errorf("trouble %q of %d", got, len(x))
	}
	x.Of("a").Queue("a", []builtins.Event{event("x", row("a", MaxEchoes))}, now, none)
	x.Forget()
	if x.Rest(now); x.Trouble() != "" || x.Of("a").Until().IsZero() {
		t.Error("one that waits is forgotten")
	}
	x.Of("a").Begin(nil)
	if x.Rest(now); len(x) > 0 {
		t.Error("one that has rested is left")
	}
}

// An event that comes before the answer to its write has the cause of that, whichever version
// of the API it tells of.
func TestEventsOfWritesUnderWay(t *testing.T) {
	w := Writes{}
	ref := effect.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "ns", Name: "x"}
	writes := []effect.Write{{Kind: effect.WriteApply, Ref: ref}}
	events := []builtins.Event{{Type: "modified", Namespace: "ns", Name: "x"}, {Type: "modified", Namespace: "ns", Name: "y"}}
	first, second := row("a", 1), row("b", 1)
	w.Begin(writes, first)
	if got := w.Caused("apps/v1beta1", "Deployment", events); got[0].Cause != first || got[1].Cause != nil || events[0].Cause != nil {
		t.Errorf("causes %v", got)
	}
	located := []effect.Write{{Kind: effect.WriteApply, Ref: ref, Pos: "a.star:3"}}
	w.Begin(located, first)
	if got := w.Caused("apps/v1", "Deployment", events); got[0].Cause.Pos != "a.star:3" || got[0].Cause.Run != first.Run || first.Pos != "" {
		t.Errorf("the line of the write: %+v", got[0].Cause)
	}
	w.Begin(writes, second)
	w.End(located, first) // the object is written anew meanwhile
	if got := w.Caused("apps/v1", "Deployment", events); got[0].Cause != second {
		t.Errorf("causes %v", got)
	}
	if w.End(writes, second); len(w) > 0 {
		t.Error("something is left")
	}
}
