package engine

import "container/heap"

// worklist holds the modules that something has touched, until they are looked at: one
// sweep after the other, each in the order of the modules. One that is touched behind the
// place where the sweep is waits for the next sweep. Modules that nothing has touched cost
// nothing.
type worklist struct {
	names  []string       // by place
	places map[string]int // by name
	queued []bool         // by place
	sweep  places         // still to come in this sweep
	later  places         // for the next one
	at     int            // place of the last one taken in this sweep, -1 before the first
}

// arrange begins anew with other modules, or in another order.
func (w *worklist) arrange(order ...string) {
	*w = worklist{names: order, places: make(map[string]int, len(order)), at: -1}
	w.queued = make([]bool, len(w.names))
	for place, name := range w.names {
		w.places[name] = place
	}
}

// add has a module looked at. One that is not in the order is not.
func (w *worklist) add(name string) {
	place, known := w.places[name]
	if !known || w.queued[place] {
		return
	}
	w.queued[place] = true
	if place > w.at {
		heap.Push(&w.sweep, place)
	} else {
		heap.Push(&w.later, place)
	}
}

// next takes the name of the next module out, or "".
func (w *worklist) next() string {
	if len(w.sweep) == 0 {
		w.sweep, w.later, w.at = w.later, w.sweep, -1
	}
	if len(w.sweep) == 0 {
		return ""
	}
	w.at = heap.Pop(&w.sweep).(int)
	w.queued[w.at] = false
	return w.names[w.at]
}

// places is a heap of places in the order of modules.
type places []int

func (p places) Len() int           { return len(p) }
func (p places) Less(i, j int) bool { return p[i] < p[j] }
func (p places) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }
func (p *places) Push(x any)        { *p = append(*p, x.(int)) }

func (p *places) Pop() any {
	last := len(*p) - 1
	place := (*p)[last]
	*p = (*p)[:last]
	return place
}
