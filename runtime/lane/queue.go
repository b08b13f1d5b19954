package lane

import (
	"cmp"
	"slices"
	"time"
)

// Queued is something that waits for its run.
type Queued struct {
	ID ID
	// Seq tells apart what waits now from what has waited under the same ID before.
	Seq int
	// Held says that it waits as its hook wants it (min_interval=).
	Held bool
}

// Queue returns what waits, that included which waits for its next try, but not what
// has failed for good. The order is not defined.
func (l *Lane[E]) Queue() []Queued {
	var out []Queued
	for name, g := range l.groups {
		for key, it := range g.items {
			if len(it.events) > 0 && !it.awaitsChange {
				out = append(out, Queued{ID: ID{Group: name, Key: key}, Seq: it.seq})
			}
		}
	}
	for _, w := range l.asks {
		out = append(out, Queued{ID: w.ID})
	}
	return out
}

// Waiting is work that waits, for people to look at.
type Waiting struct {
	Queued
	// Failures counts those in a row, NotBefore is until when it must wait; zero: no longer. Events is how many wait.
	Failures  int
	NotBefore time.Time
	Events    int
}

// Line returns what [Lane.Queue] does, in the order in which it is taken when nothing else comes
// and nothing is held back.
func (l *Lane[E]) Line() []Waiting {
	type placed struct {
		Waiting
		order, turn int
	}
	var all []placed
	for name, g := range l.groups {
		for key, it := range g.items {
			if len(it.events) > 0 && !it.awaitsChange {
				all = append(all, placed{
					Waiting{Queued{ID: ID{Group: name, Key: key}, Seq: it.seq}, it.attempt, it.notBefore, len(it.events)},
					it.order, max(it.seq, g.turn),
				})
			}
		}
	}
	slices.SortFunc(all, func(a, b placed) int {
		if c := a.NotBefore.Compare(b.NotBefore); c != 0 {
			return c
		}
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.turn, b.turn), cmp.Compare(a.Seq, b.Seq))
	})
	var out []Waiting
	for _, w := range l.asks {
		out = append(out, Waiting{Queued: Queued{ID: w.ID}})
	}
	for _, w := range all {
		out = append(out, w.Waiting)
	}
	return out
}

// Taken returns what is under way, sorted.
func (l *Lane[E]) Taken() []ID {
	var out []ID
	for id := range l.taken {
		out = append(out, id)
	}
	slices.SortFunc(out, func(a, b ID) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Ask, b.Ask))
	})
	return out
}
