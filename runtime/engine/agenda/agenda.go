// Package agenda knows which modules the engine has to look at, in which order, and when
// something falls due: the tick of a module, another run about a subject. Modules that
// nothing has touched cost nothing. It does no I/O.
package agenda

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/starling-operator/starling/runtime/lane"
)

// Agenda is the state machine of looks and times. Looks come in sweeps, each in the order of
// the modules: one that is touched behind the place where the sweep is waits for the next one.
// Modules that are not in the tree come last, once no other one has to be looked at.
//
// Each sweep has one turn for each module: a number, higher than those of sweeps before.
type Agenda struct {
	order  [2][]string    // of the modules in the tree, and of the others
	places map[string]int // their turns in the first sweep
	looks  []int          // the turns to come, sorted
	taken  [2]int         // the last turn of a module in the tree, and of another one

	soonest times
	entries map[lane.ID]*entry
}

// others is the first turn of a module that is not in the tree.
const others = 1 << 40

// New returns an agenda without modules.
func New() *Agenda { return &Agenda{entries: map[lane.ID]*entry{}} }

// Arrange puts the modules in order: those in the tree, then the rest. All looks are
// forgotten, no time is.
func (a *Agenda) Arrange(tree, rest []string) {
	a.order, a.places = [2][]string{tree, rest}, map[string]int{}
	for which, names := range a.order {
		for i, name := range names {
			a.places[name] = which*others + i
		}
	}
	a.looks, a.taken = nil, [2]int{-1, -1}
}

// Tree returns the modules in the tree, in order.
func (a *Agenda) Tree() []string { return a.order[0] }

// Others returns the modules that are not in the tree, in order.
func (a *Agenda) Others() []string { return a.order[1] }

// Touch has a module looked at, and the time of its tick worked out anew. One that is not in
// the order is not looked at.
func (a *Agenda) Touch(module string) {
	a.Moved(module)
	turn, known := a.places[module]
	if !known {
		return
	}
	if last, sweep := a.taken[turn/others], len(a.order[turn/others]); turn <= last {
		turn += sweep * ((last-turn)/sweep + 1)
	}
	if at, queued := slices.BinarySearch(a.looks, turn); !queued {
		a.looks = slices.Insert(a.looks, at, turn)
	}
}

// Next takes the next module of the tree out, "" without any.
func (a *Agenda) Next() string { return a.next(0) }

// NextOther takes the next module out that is not in the tree, "" without any. It is for when
// Next has none.
func (a *Agenda) NextOther() string { return a.next(1) }

func (a *Agenda) next(which int) string {
	if len(a.looks) == 0 || a.looks[0]/others > which {
		a.taken[which] = -1 // the next sweep begins with the first one
		return ""
	}
	turn := a.looks[0]
	a.looks = slices.Delete(a.looks, 0, 1)
	a.taken[which] = turn
	names := a.order[turn/others]
	return names[turn%others%len(names)]
}

// Module is what the tick of a module goes by. All else are runs about subjects.
func Module(name string) lane.ID { return lane.ID{Group: name} }

// Moved has the time of a module's tick worked out anew.
func (a *Agenda) Moved(module string) { a.put(Module(module), time.Time{}) }

// Unknown names a module for whose tick no time was set since it moved, "" without any.
func (a *Agenda) Unknown() string {
	if len(a.soonest) == 0 || !a.soonest[0].at.IsZero() {
		return ""
	}
	return a.soonest[0].id.Group
}

// Set sets when something falls due; zero: never.
func (a *Agenda) Set(id lane.ID, at time.Time) {
	if !at.IsZero() {
		a.put(id, at)
	} else if e := a.entries[id]; e != nil {
		heap.Remove(&a.soonest, e.place)
		delete(a.entries, id)
	}
}

func (a *Agenda) put(id lane.ID, at time.Time) {
	if e := a.entries[id]; e != nil {
		e.at = at
		heap.Fix(&a.soonest, e.place)
		return
	}
	a.entries[id] = &entry{id: id, at: at}
	heap.Push(&a.soonest, a.entries[id])
}

// At is when something falls due; zero: never.
func (a *Agenda) At(id lane.ID) time.Time {
	if e := a.entries[id]; e != nil {
		return e.at
	}
	return time.Time{}
}

// Len is how much is going to fall due.
func (a *Agenda) Len() int { return len(a.entries) }

// Due takes out what has fallen due, the soonest first. Modules that have moved are among it:
// nobody knows whether they are due.
func (a *Agenda) Due(now time.Time) (id lane.ID, due bool) {
	if len(a.soonest) == 0 || a.soonest[0].at.After(now) {
		return lane.ID{}, false
	}
	id = a.soonest[0].id
	a.Set(id, time.Time{})
	return id, true
}

// Soonest is when something falls due next; zero: nothing does.
func (a *Agenda) Soonest() time.Time {
	if len(a.soonest) == 0 {
		return time.Time{}
	}
	return a.soonest[0].at
}

// entry is one time.
type entry struct {
	id    lane.ID
	at    time.Time // zero: it has to be worked out
	place int       // in the heap
}

// times is a heap of entries, the soonest first.
type times []*entry

func (t times) Len() int { return len(t) }

func (t times) Less(i, j int) bool {
	x, y := t[i], t[j]
	// The same inputs lead to the same order.
	return cmp.Or(x.at.Compare(y.at), cmp.Compare(x.id.Group, y.id.Group), cmp.Compare(x.id.Key, y.id.Key)) < 0
}

func (t times) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].place, t[j].place = i, j
}

func (t *times) Push(x any) {
	e := x.(*entry)
	e.place = len(*t)
	*t = append(*t, e)
}

func (t *times) Pop() any {
	last := len(*t) - 1
	e := (*t)[last]
	*t = slices.Delete(*t, last, last+1) // which clears its place
	return e
}
