package lane

import (
	"slices"
	"testing"
	"time"
)

func TestAnAskGoesFirstAndAlone(t *testing.T) {
	l := newParallel(2)
	for _, key := range []string{"x", "y", "z"} {
		l.Add(ID{Group: "each", Key: key}, Unordered, "sync")
	}
	x, y := next(t, l, t0), next(t, l, t0)
	l.Ask(ID{Group: "each", Key: "x", Ask: 1}, "request")
	l.Ask(ID{Group: "each", Key: "x", Ask: 2}, "request")
	l.Add(x.ID, Unordered, "modified")
	l.Yield(x)
	nothing(t, l, t0) // what is under way ends first, or has been kept
	l.Failed(x, t0)
	nothing(t, l, t0)
	l.Done(y)
	ask := next(t, l, t0)
	if ask.ID.Ask != 1 || ask.ID.Key != "x" || !slices.Equal(ask.Events, []string{"request"}) || l.Busy("each") {
		t.Fatalf("got %v", ask)
	}
	l.Yield(ask)
	nothing(t, l, t0)
	l.Done(ask)
	if l.Attempt(x.ID) != 1 {
		t.Error("the end of an ask is none of its object's work")
	}
	if z := next(t, l, t0); z.ID.Key != "z" { // something else has its turn
		t.Fatalf("got %v", z)
	} else {
		nothing(t, l, t0)
		l.Done(z)
	}
	l.Done(next(t, l, t0))
	if again := next(t, l, t0); again.ID != x.ID || again.Attempt != 2 || len(again.Events) != 2 {
		t.Errorf("got %v", again)
	}
}

func TestAsksFollowEachOtherWhereNothingElseIsDue(t *testing.T) {
	l := newLane()
	l.Ask(ID{Group: "a", Ask: 1})
	l.Ask(ID{Group: "b", Ask: 2})
	l.Ask(ID{Group: "a", Ask: 3})
	l.Add(ID{Group: "c"}, Unordered, "1")
	notC := func(id ID) bool { return id.Group != "c" && id.Ask != 1 }
	for _, want := range []uint64{2, 3} {
		w, ok := l.Next(t0, notC)
		if !ok || w.ID.Ask != want || w.Attempt != 1 {
			t.Fatalf("got %v, want %d", w, want)
		}
		l.Done(w)
	}
	if got := l.Queue(); len(got) != 2 {
		t.Errorf("waiting: %v", got)
	}
}

func TestAsksStayUntilTheyAreDropped(t *testing.T) {
	l := newLane()
	for ask := range uint64(3) {
		l.Ask(ID{Group: "a", Ask: ask + 1})
	}
	l.Ask(ID{Group: "b", Ask: 9})
	l.Clear()
	l.Drop("a")
	if n := l.Asks("a"); n != 3 {
		t.Errorf("%d wait", n)
	}
	if got := l.DropAsks("a"); !slices.Equal(got, []uint64{1, 2, 3}) || l.Asks("a") != 0 {
		t.Errorf("dropped %v", got)
	}
	if w := next(t, l, t0.Add(time.Second)); w.ID.Ask != 9 {
		t.Errorf("got %v", w)
	}
}

// A hundred asks of one group do not go before the first one of another, in whichever order they came.
func TestGroupsTakeTurnsWithAsks(t *testing.T) {
	l := newLane()
	ask := func(group string, n int) {
		for range n {
			l.Ask(ID{Group: group, Ask: uint64(len(l.asks) + 1)})
		}
	}
	order := func(n int) (groups string) {
		for range n {
			w := next(t, l, t0)
			groups += w.ID.Group
			l.Done(w)
		}
		return groups
	}
	ask("slow", 4)
	ask("b", 2)
	if got := order(2); got != "slowb" {
		t.Errorf("order %s", got)
	}
	ask("c", 1)
	ask("b", 2)
	if got := order(7); got != "slowbcslowbslowb" {
		t.Errorf("order %s", got)
	}
}
