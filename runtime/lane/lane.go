// Package lane holds the line of work of one module: which hook runs next, with which events, and when a failed one is
// tried again. It is data and decisions only: no goroutines, no clock. The engine asks, a driver acts.
package lane

import (
	"math"
	"slices"
	"time"
)

// MaxEvents is how many events may wait for one hook, or for one object of it. Past it the events are replaced by what
// [Options].Overflow returns: snapshots tell the whole truth, events are hints.
const MaxEvents = 1000

// Unordered is the order of work that has no say in who goes first: after all that has one, in the order of arrival.
const Unordered = math.MaxInt

// ID names what events wait for.
type ID struct {
	// Group is a hook: groups of a lane go one at a time, and take turns.
	Group string
	// Key is one object of a hook with for_each, else "". All that waits for one ID is one piece of work.
	Key string
	// Ask is the number of work that somebody waits for, else 0: see [Lane.Ask].
	Ask uint64
}

// Options configures a [Lane].
type Options[E any] struct {
	// Overflow stands in for events that are too many to keep. It must not be nil.
	Overflow func(dropped []E) []E
	// Fewer leaves out events that later ones make void. Nil: none does.
	Fewer func(events []E) []E
	// Parallel says how many pieces of work of a group may be taken at a time. Nil means one.
	Parallel func(group string) int
	// Pause is the least time from the beginning of a try that has failed to the next one, once
	// there are events that came after it began. Nil means none.
	Pause func(group string) time.Duration
}

// Lane is the line of work of one module. Work that is taken at a time is of one group. Each piece of it has a place
// until it is given back, or gives that up. A Lane is not safe for concurrent use.
type Lane[E any] struct {
	o      Options[E]
	groups map[string]*group[E]
	taken  map[ID]bool // true: it has its place
	places int         // how many do
	turn   string      // the group of what is taken; "" for an ask
	asks   []Work[E]   // that wait
	seq    int
}

// Work is one piece of work taken from a lane.
type Work[E any] struct {
	ID     ID
	Events []E
	// Attempt is 1 for a first try, 2 after one failure, and so on.
	Attempt int
}

// New returns an empty lane.
func New[E any](o Options[E]) *Lane[E] {
	if o.Parallel == nil {
		o.Parallel = func(string) int { return 1 }
	}
	if o.Fewer == nil {
		o.Fewer = func(events []E) []E { return events }
	}
	if o.Pause == nil {
		o.Pause = func(string) time.Duration { return 0 }
	}
	return &Lane[E]{o: o, groups: map[string]*group[E]{}, taken: map[ID]bool{}}
}

// Add makes events wait, joined with those that already wait for the same. Order puts a first attempt before those
// with a higher order. Work that has failed, or fails in the try that is under way, waits no longer than the pause:
// something changed, so a long backoff has lost its reason. After a failure for good it does not wait at all.
func (l *Lane[E]) Add(id ID, order int, events ...E) {
	g := l.groups[id.Group]
	if g == nil {
		g = newGroup[E]()
		l.groups[id.Group] = g
	}
	it := g.items[id.Key]
	if it == nil {
		it = &item[E]{key: id.Key, at: -1}
		g.items[id.Key] = it
	}
	if len(it.events) == 0 {
		l.seq++
		it.seq, it.order = l.seq, order
	}
	it.order = min(it.order, order)
	l.join(it, append(it.events, events...))
	it.awaitsChange = false
	l.sooner(id, g, it, l.o.Pause(id.Group))
}

// place puts an item where [Lane.Next] and [Lane.Wake] look for it.
func (l *Lane[E]) place(id ID, g *group[E], it *item[E]) {
	if _, taken := l.taken[id]; taken || len(it.events) == 0 || it.awaitsChange {
		g.hold(it)
		return
	}
	g.wait(it)
}

// RetryAllSoon lets what has failed of a group, or fails in the try that is under way, run again as
// soon as pause has passed since that began, as [Lane.Add] does. The same for what failed for good.
func (l *Lane[E]) RetryAllSoon(group string, pause time.Duration) {
	g := l.groups[group]
	if g == nil {
		return
	}
	for key, it := range g.failing {
		l.sooner(ID{Group: group, Key: key}, g, it, pause)
	}
	for id := range l.taken {
		if it := g.items[id.Key]; it != nil && id.Group == group && id.Ask == 0 {
			l.sooner(id, g, it, pause)
		}
	}
}

// sooner has an item wait no longer than a pause after the beginning of its last try, if that has
// failed, or will have: of one that is under way nobody knows yet how it ends.
func (l *Lane[E]) sooner(id ID, g *group[E], it *item[E], pause time.Duration) {
	soon := it.lastRun.Add(pause)
	if _, taken := l.taken[id]; taken {
		if it.soon.IsZero() || soon.Before(it.soon) {
			it.soon = soon
		}
	} else if it.awaitsChange || it.attempt > 0 && soon.Before(it.notBefore) {
		it.notBefore, it.awaitsChange = soon, false
	}
	l.place(id, g, it)
}

// Next takes the piece of work that is due: by order, then in the order of arrival; a group of which something was
// taken goes behind those that wait already. An ask goes first, unless another one went last. Ready may hold a group
// or an ask back. It returns false when nothing is due, or when it must wait for what is taken.
func (l *Lane[E]) Next(now time.Time, ready func(ID) bool) (Work[E], bool) {
	if l.places > 0 && l.places >= l.o.Parallel(l.turn) {
		return Work[E]{}, false
	}
	var best *group[E]
	var name string
	for candidate, g := range l.groups {
		g.promote(now)
		if len(g.due.items) == 0 || best != nil && !g.before(best) || !ready(ID{Group: candidate}) {
			continue
		}
		best, name = g, candidate
	}
	if best == nil || l.turn != "" {
		if i := slices.IndexFunc(l.asks, func(w Work[E]) bool { return ready(w.ID) }); i >= 0 {
			return l.takeAsk(i)
		}
	}
	if best == nil || len(l.taken) > 0 && name != l.turn {
		return Work[E]{}, false
	}
	it := best.due.items[0]
	w := Work[E]{ID: ID{Group: name, Key: it.key}, Events: it.events, Attempt: it.attempt + 1}
	it.events, it.lastRun, it.soon = nil, now, time.Time{}
	l.take(w, name)
	l.place(w.ID, best, it)
	l.seq++
	best.turn = l.seq
	return w, true
}

// take gives work a place.
func (l *Lane[E]) take(w Work[E], turn string) {
	l.taken[w.ID], l.turn = true, turn
	l.places++
}

// Yield gives up the place of work that is taken and has only to wait: another piece of its
// group may be taken meanwhile, but nothing of the same ID, and nothing of another group.
func (l *Lane[E]) Yield(w Work[E]) {
	if l.taken[w.ID] {
		l.taken[w.ID] = false
		l.places--
	}
}

// Gathers says that some of what is taken has given up its place, and some has not.
func (l *Lane[E]) Gathers() bool { return l.places > 0 && l.places < len(l.taken) }

// giveBack ends that work is taken.
func (l *Lane[E]) giveBack(w Work[E]) {
	l.Yield(w)
	delete(l.taken, w.ID)
}

// Done gives back work that succeeded.
func (l *Lane[E]) Done(w Work[E]) {
	l.giveBack(w)
	g, it := l.find(w.ID)
	if it == nil {
		return
	}
	it.attempt, it.notBefore = 0, time.Time{}
	delete(g.failing, it.key)
	if len(it.events) == 0 {
		delete(g.items, it.key)
	}
	l.place(w.ID, g, it)
}

// Failed gives back work that failed. Its events wait again, before any that came
// in the meantime, until the time given; with such events no longer than the pause.
func (l *Lane[E]) Failed(w Work[E], next time.Time) { l.failed(w, next, false) }

// AwaitChange gives back work that must not be repeated as it is: it failed for good.
// Its events wait for a new one, which may have come in the meantime, or for a [Lane.RetryAllSoon].
func (l *Lane[E]) AwaitChange(w Work[E]) { l.failed(w, time.Time{}, true) }

func (l *Lane[E]) failed(w Work[E], next time.Time, awaitsChange bool) {
	l.giveBack(w)
	g, it := l.find(w.ID)
	if it == nil {
		return
	}
	it.attempt++
	g.failing[it.key] = it
	if !it.soon.IsZero() && (awaitsChange || it.soon.Before(next)) {
		next, awaitsChange = it.soon, false
	}
	it.notBefore, it.awaitsChange = next, awaitsChange
	// Tried once, its turn no longer goes by order, or it would hold back those behind it.
	it.order = Unordered
	l.seq++
	it.seq = l.seq
	l.join(it, append(slices.Clone(w.Events), it.events...))
	l.place(w.ID, g, it)
}

// fewEvents may wait before any is looked at again.
const fewEvents = 10

// join has events wait for an item. Those that stand in for others may be many, too: so the next time is when there
// are twice as many, or each event would cost as much as all.
func (l *Lane[E]) join(it *item[E], events []E) {
	if len(events) > max(fewEvents, it.most) {
		events = l.o.Fewer(events)
		it.most = min(2*len(events), MaxEvents)
	}
	if len(events) > max(MaxEvents, it.most) {
		events = l.o.Overflow(events)
		it.most = 2 * len(events)
	}
	it.events = events
}

// Delay has what waits for an ID, and has not failed, wait until a time; zero lets it go.
func (l *Lane[E]) Delay(id ID, until time.Time) {
	if g, it := l.find(id); it != nil && it.attempt == 0 {
		it.notBefore = until
		l.place(id, g, it)
	}
}

// Clear drops all that waits but for asks. Work that is taken stays taken until it is given back.
func (l *Lane[E]) Clear() { clear(l.groups) }

// Forget drops what waits for one ID. Work that is taken stays so until it is given back.
func (l *Lane[E]) Forget(id ID) {
	g, it := l.find(id)
	if it == nil {
		return
	}
	g.hold(it)
	delete(g.items, id.Key)
	delete(g.failing, id.Key)
}

func (l *Lane[E]) find(id ID) (*group[E], *item[E]) {
	g := l.groups[id.Group]
	if g == nil || id.Ask != 0 {
		return nil, nil
	}
	return g, g.items[id.Key]
}

// Busy says whether work of the group is under way, asks aside.
func (l *Lane[E]) Busy(group string) bool { return len(l.taken) > 0 && l.turn == group }

// Waiting says whether something waits for the ID, and until when it must.
func (l *Lane[E]) Waiting(id ID) (notBefore time.Time, waits bool) {
	_, it := l.find(id)
	if it == nil || len(it.events) == 0 {
		return time.Time{}, false
	}
	return it.notBefore, true
}

// Waits says whether something of a group waits for its turn, not for a time.
func (l *Lane[E]) Waits(group string) bool {
	g := l.groups[group]
	return g != nil && len(g.due.items) > 0
}

// Attempt returns how often the ID has failed in a row.
func (l *Lane[E]) Attempt(id ID) int {
	if _, it := l.find(id); it != nil {
		return it.attempt
	}
	return 0
}

// Wake returns when the next held piece of work falls due; ok is false when nothing waits for a time.
func (l *Lane[E]) Wake(now time.Time) (at time.Time, ok bool) {
	for _, g := range l.groups {
		g.promote(now)
		if len(g.later.items) == 0 {
			continue
		}
		if first := g.later.items[0].notBefore; !ok || first.Before(at) {
			at, ok = first, true
		}
	}
	return at, ok
}

// Drop forgets a group: all that waits for it but for asks. Work that is taken stays so until it is given back.
func (l *Lane[E]) Drop(group string) { delete(l.groups, group) }
