package lane

import "slices"

// Ask has events wait as work that somebody waits for, with a number as ID.Ask. It is joined
// with nothing, goes before what was not asked for, and alone: nothing else of the lane is
// taken meanwhile. It is given back with [Lane.Done], however it has ended. Groups take turns: the first ask of one goes
// before the second one of another, so that one with many slow asks does not hold up the others.
func (l *Lane[E]) Ask(id ID, events ...E) {
	round, rounds := l.Asks(id.Group)+1, map[string]int{}
	at := slices.IndexFunc(l.asks, func(w Work[E]) bool {
		rounds[w.ID.Group]++
		return rounds[w.ID.Group] > round
	})
	if at < 0 {
		at = len(l.asks)
	}
	l.asks = slices.Insert(l.asks, at, Work[E]{ID: id, Events: events, Attempt: 1})
}

// Asks is how many asks wait for a group.
func (l *Lane[E]) Asks(group string) (n int) {
	for _, w := range l.asks {
		if w.ID.Group == group {
			n++
		}
	}
	return n
}

// DropAsks forgets the asks that wait for a group, and returns their numbers in the order of
// arrival.
func (l *Lane[E]) DropAsks(group string) (asks []uint64) {
	l.asks = slices.DeleteFunc(l.asks, func(w Work[E]) bool {
		if w.ID.Group == group {
			asks = append(asks, w.ID.Ask)
		}
		return w.ID.Group == group
	})
	return asks
}

// takeAsk takes the ask at an index, unless something else is taken.
func (l *Lane[E]) takeAsk(i int) (Work[E], bool) {
	if len(l.taken) > 0 {
		return Work[E]{}, false
	}
	w := l.asks[i]
	l.asks = slices.Delete(l.asks, i, i+1)
	l.take(w, "")
	return w, true
}
