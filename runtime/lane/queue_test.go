package lane

import (
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
	if diff := cmp.Diff([]Queued{{ID{Group: "a"}, 1}, {ID{Group: "b"}, 2}}, queue()); diff != "" {
		t.Error(diff)
	}
	w, _ := l.Next(now, ready)
	if diff := cmp.Diff([]Queued{{ID{Group: "b"}, 2}}, queue()); diff != "" {
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
