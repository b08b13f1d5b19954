package lane

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestQueue(t *testing.T) {
	now := time.Unix(0, 0)
	l := New(Options[int]{Overflow: func([]int) []int { return nil }})
	ready := func(ID) bool { return true }
	queue := func() []Queued {
		out := l.Queue()
		slices.SortFunc(out, func(a, b Queued) int { return strings.Compare(a.ID.Group, b.ID.Group) })
		return out
	}
	l.Add(ID{Group: "a"}, 0, 1)
	l.Add(ID{Group: "b"}, 1, 1)
	l.Add(ID{Group: "a"}, 0, 2)
	if diff := cmp.Diff([]Queued{{ID: ID{Group: "a"}, Seq: 1}, {ID: ID{Group: "b"}, Seq: 2}}, queue()); diff != "" {
		t.Error(diff)
	}
	w, _ := l.Next(now, ready)
	if diff := cmp.Diff([]Queued{{ID: ID{Group: "b"}, Seq: 2}}, queue()); diff != "" {
		t.Error(diff)
	}
	l.Failed(w, now.Add(time.Hour))
	if len(queue()) != 2 {
		t.Errorf("what is tried again does not wait: %v", queue())
	}
	w, _ = l.Next(now, ready)
	l.AwaitChange(w)
	l.Add(ID{Group: "a"}, 0, 3)
	if got := queue(); len(got) != 1 || got[0].ID.Group != "a" {
		t.Errorf("got %v", got)
	}
}

func TestLineIsInTheOrderInWhichWorkIsTaken(t *testing.T) {
	l := newLane()
	l.Add(ID{Group: "failing"}, Unordered, "1")
	l.Failed(next(t, l, t0), t0.Add(time.Minute))
	l.Add(ID{Group: "late"}, Unordered, "1")
	l.Add(ID{Group: "first"}, 1, "1")
	l.Add(ID{Group: "later"}, Unordered, "1")
	l.Ask(ID{Group: "asked", Ask: 7})
	var got []string
	for _, w := range l.Line() {
		got = append(got, fmt.Sprint(w.ID.Group, w.Failures, w.NotBefore.Equal(t0.Add(time.Minute))))
	}
	if want := []string{"asked0 false", "first0 false", "late0 false", "later0 false", "failing1 true"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, want := range []string{"asked", "first", "late", "later"} {
		w := next(t, l, t0)
		if taken := l.Taken(); w.ID.Group != want || !slices.Equal(taken, []ID{w.ID}) {
			t.Errorf("took %v, under way are %v, want %s", w.ID, taken, want)
		}
		l.Done(w)
	}
	if len(l.Line()) != 1 || len(l.Taken()) != 0 {
		t.Errorf("left: %v, %v", l.Line(), l.Taken())
	}
}
