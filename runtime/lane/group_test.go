package lane

import (
	"fmt"
	"testing"
	"time"
)

func newParallel(parallel int) *Lane[string] {
	return New(Options[string]{
		Overflow: func([]string) []string { return []string{"sync"} },
		Parallel: func(group string) int {
			if group == "each" {
				return parallel
			}
			return 1
		},
	})
}

func next(t *testing.T, l *Lane[string], now time.Time) Work[string] {
	t.Helper()
	w, ok := l.Next(now, always)
	if !ok {
		t.Fatal("nothing is due")
	}
	return w
}

func TestObjectsOfAHookRunSideBySide(t *testing.T) {
	l := newParallel(2)
	for _, key := range []string{"x", "y", "z"} {
		l.Add(ID{Group: "each", Key: key}, Unordered, "sync")
	}
	x, y := next(t, l, t0), next(t, l, t0)
	nothing(t, l, t0) // two at a time
	if x.ID.Key != "x" || y.ID.Key != "y" {
		t.Errorf("got %v, %v", x.ID, y.ID)
	}
	l.Add(x.ID, Unordered, "modified")
	l.Done(y)
	z := next(t, l, t0)
	if z.ID.Key != "z" {
		t.Errorf("got %v, want z: what is under way does not run twice at once", z.ID)
	}
	l.Done(x)
	if again := next(t, l, t0); again.ID != x.ID || again.Events[0] != "modified" {
		t.Errorf("got %v", again)
	}
}

func TestWorkThatGivesUpItsPlaceHoldsUpItsOwnObjectAlone(t *testing.T) {
	l := newParallel(2)
	for _, key := range []string{"a", "b", "c", "d"} {
		l.Add(ID{Group: "each", Key: key}, Unordered, "sync")
	}
	a, b := next(t, l, t0), next(t, l, t0)
	l.Yield(a)
	l.Yield(a) // once more changes nothing
	c := next(t, l, t0)
	if c.ID.Key != "c" {
		t.Errorf("got %v, want c", c.ID)
	}
	nothing(t, l, t0) // b and c have the two places
	l.Add(a.ID, Unordered, "modified")
	l.Add(ID{Group: "other"}, Unordered, "tick")
	l.Yield(b)
	l.Yield(c)
	d := next(t, l, t0) // it was its turn still when other came
	l.Yield(d)
	nothing(t, l, t0) // now it is that of other, once all have ended
	l.Failed(a, t0)
	l.Done(b)
	nothing(t, l, t0)
	l.Done(c)
	nothing(t, l, t0)
	l.Done(d)
	other := next(t, l, t0)
	if other.ID.Group != "other" {
		t.Fatalf("got %v, want other", other.ID)
	}
	l.Done(other)
	if again := next(t, l, t0); again.ID != a.ID || len(again.Events) != 2 || again.Attempt != 2 {
		t.Errorf("got %v", again)
	}
	l.Add(b.ID, Unordered, "modified")
	l.Add(c.ID, Unordered, "modified")
	next(t, l, t0)
	nothing(t, l, t0) // the places that were given up are two again
}

func TestManyObjectsLetOtherHooksHaveTheirTurn(t *testing.T) {
	l := newParallel(2)
	for i := range 100 {
		l.Add(ID{Group: "each", Key: fmt.Sprint(i)}, Unordered, "sync")
	}
	a, b := next(t, l, t0), next(t, l, t0)
	l.Add(ID{Group: "other"}, Unordered, "tick")
	l.Done(a)
	c := next(t, l, t0) // it was each's turn still when other came
	l.Done(b)
	nothing(t, l, t0) // now it is other's, once what is under way has ended
	l.Done(c)
	w := next(t, l, t0)
	if w.ID.Group != "other" {
		t.Fatalf("got %v, want other", w.ID)
	}
	nothing(t, l, t0)
	l.Done(w)
	if w := next(t, l, t0); w.ID.Group != "each" {
		t.Errorf("got %v", w.ID)
	}
}

func TestOneObjectThatFailsHoldsUpNoOther(t *testing.T) {
	l := newParallel(1)
	bad, good := ID{Group: "each", Key: "bad"}, ID{Group: "each", Key: "good"}
	l.Add(bad, Unordered, "sync")
	l.Failed(next(t, l, t0), t0.Add(time.Minute))
	l.Add(good, Unordered, "sync")
	l.Done(next(t, l, t0))
	if l.Attempt(bad) != 1 || l.Attempt(good) != 0 {
		t.Errorf("attempts %d, %d", l.Attempt(bad), l.Attempt(good))
	}
	l.RetryAllSoon("each", time.Second)
	if w := next(t, l, t0.Add(time.Second)); w.ID != bad || w.Attempt != 2 {
		t.Errorf("got %v", w)
	}
}

func TestForgetDropsWhatWaits(t *testing.T) {
	l := newParallel(1)
	id := ID{Group: "each", Key: "x"}
	l.Add(id, Unordered, "sync")
	l.Forget(id)
	nothing(t, l, t0)
	l.Add(id, Unordered, "sync")
	w := next(t, l, t0)
	l.Forget(id)
	l.Failed(w, t0)
	nothing(t, l, t0.Add(time.Hour))
	if _, waits := l.Waiting(id); waits || l.Attempt(id) != 0 || l.Busy("each") {
		t.Error("something is left")
	}
}
