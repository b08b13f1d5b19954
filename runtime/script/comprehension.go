package script

import (
	"go.starlark.net/starlark"
)

// A comprehension adds to a list or dict that nothing else sees, so its loops are counted:
// as many elements as the innermost has turns, at most.

// counting is what the comprehension makes that its loops are counted for.
type counting struct {
	table bool // a dict
	n     int
	next  int // at so many, room is asked for
}

// firstTable is from how many elements on a dict that grows is looked at, see tableGrowth.
const firstTable = 13 << 13

// newCounting returns a counter of nothing.
func newCounting(table bool) *counting {
	if table {
		return &counting{table: true, next: firstTable}
	}
	return &counting{next: noticedHeld}
}

// add counts turns, and asks for the room that what is made may take as it grows. It fails
// where there is none.
func (c *counting) add(r *run, turns int) error {
	c.n += turns
	for c.n >= c.next {
		n := c.next
		size := n * elementCost * 5 / 4
		c.next += n / 16 // how much the list holds at most is known, and not how much it has room for
		if c.table {
			size, c.next = n*keyCost, 2*n
		}
		if err := r.room(size); err != nil {
			return err
		}
	}
	return nil
}

// outermost is what the first loop of a comprehension goes over. Innermost says that it is
// the only one.
func outermost(t *starlark.Thread, x starlark.Value, table, innermost bool) starlark.Value {
	r, _ := t.Local(runKey).(*run)
	over, ok := x.(starlark.Iterable)
	if n := starlark.Len(x); r == nil || !ok || innermost && n >= 0 && n < noticedHeld {
		return x
	}
	return counted{over, r, newCounting(table), innermost}
}

// innermost is what the last of several loops goes over.
func innermost(t *starlark.Thread, x starlark.Value) (starlark.Value, error) {
	r, _ := t.Local(runKey).(*run)
	over, ok := x.(starlark.Iterable)
	if r == nil || !ok || len(r.counting) == 0 {
		return x, nil
	}
	c := r.counting[len(r.counting)-1]
	if n := starlark.Len(x); n >= 0 && n < noticedHeld {
		return x, c.add(r, n)
	}
	return counted{over, r, c, true}, nil
}

// counted goes over the same elements, and counts them where it is innermost.
type counted struct {
	starlark.Iterable
	run *run
	*counting
	innermost bool
}

// Iterate begins a loop; all loops of one comprehension share its counter.
func (c counted) Iterate() starlark.Iterator {
	c.run.counting = append(c.run.counting, c.counting)
	return &countedIterator{c.Iterable.Iterate(), c}
}

type countedIterator struct {
	starlark.Iterator
	counted
}

// Next has one more turn, unless there is no room for what it may bring about; the run is
// cancelled then.
func (i *countedIterator) Next(p *starlark.Value) bool {
	if i.innermost && i.add(i.run, 1) != nil {
		return false
	}
	return i.Iterator.Next(p)
}

// Done ends the loop.
func (i *countedIterator) Done() {
	i.Iterator.Done()
	i.run.counting = i.run.counting[:len(i.run.counting)-1]
}

// sliced is a large list, tuple or text of which a part is taken: it asks for the room that
// the part takes. A part of a tuple or text that is in one piece shares its memory.
type sliced struct {
	starlark.Sliceable
	thread *starlark.Thread
}

func slicedValue(t *starlark.Thread, x starlark.Value) starlark.Value {
	if of, ok := x.(starlark.Sliceable); ok && held(x) >= noticed {
		return sliced{of, t}
	}
	return x
}

// Slice returns the part, or None where there is no room; the run is cancelled then.
func (s sliced) Slice(start, end, step int) starlark.Value {
	if _, list := s.Sliceable.(*starlark.List); !list && step == 1 {
		return s.Sliceable.Slice(start, end, step)
	}
	whole := s.Sliceable.Len()
	part := (end - start + step) / step
	if room(s.thread, held(s.Sliceable)/whole*min(max(part, 0), whole)) != nil {
		return starlark.None
	}
	return s.Sliceable.Slice(start, end, step)
}
