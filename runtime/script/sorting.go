package script

import (
	"fmt"
	"sort"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// sorted, min and max compare many values in one step. These are the language's own, with
// looks at the limits of the run in between.

// runOf returns the run of a thread, nil when it has none.
func runOf(t *starlark.Thread) *run {
	r, _ := t.Local(runKey).(*run)
	return r
}

func boundedSorted(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var iterable starlark.Iterable
	var key starlark.Callable
	var reverse bool
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "iterable", &iterable, "key?", &key, "reverse?", &reverse); err != nil {
		return nil, err
	}
	n, err := firstSize(b.Name(), starlark.Tuple{iterable}, maxElements, elementCost)
	if err == nil {
		err = room(t, n)
	}
	if err != nil {
		return nil, err
	}
	s := &sorting{comparison: runOf(t).comparison()}
	it := iterable.Iterate()
	defer it.Done()
	s.values = make([]starlark.Value, 0, max(starlark.Len(iterable), 0))
	for x := starlark.Value(nil); it.Next(&x); {
		s.values = append(s.values, x)
	}
	s.keys = s.values
	if key != nil {
		s.keys = make([]starlark.Value, len(s.values))
		for i, v := range s.values {
			if s.keys[i], err = starlark.Call(t, key, starlark.Tuple{v}, nil); err != nil {
				return nil, err
			}
		}
	}
	if err := s.sort(key != nil, reverse); err != nil {
		return nil, err
	}
	return starlark.NewList(s.values), s.err
}

// sorting sorts values by keys, which may be the values.
type sorting struct {
	*comparison
	keys, values []starlark.Value
	keyed        bool
	err          error // of the last comparison that failed
}

// stopped is how a sort is left that shall not go on.
type stopped struct{ cause error }

func (s *sorting) sort(keyed, reverse bool) (err error) {
	defer func() {
		if p := recover(); p != nil {
			end, ok := p.(stopped)
			if !ok {
				panic(p)
			}
			err = end.cause
		}
	}()
	s.keyed = keyed
	more := s.more
	s.more = func() (int, error) {
		n, err := more()
		if err != nil {
			panic(stopped{err})
		}
		return n, nil
	}
	if reverse {
		sort.Stable(sort.Reverse(s))
	} else {
		sort.Stable(s)
	}
	return nil
}

// Len, Less and Swap are for package sort.
func (s *sorting) Len() int { return len(s.values) }

func (s *sorting) Less(i, j int) bool {
	less, err := s.compare(syntax.LT, s.keys[i], s.keys[j], starlark.CompareLimit)
	if err != nil {
		s.err = err
	}
	return less
}

func (s *sorting) Swap(i, j int) {
	_ = s.count(1) // a stable sort swaps more often than it compares
	if s.keyed {
		s.keys[i], s.keys[j] = s.keys[j], s.keys[i]
	}
	s.values[i], s.values[j] = s.values[j], s.values[i]
}

// boundedExtreme is min and max.
func boundedExtreme(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) == 0 {
		return nil, fmt.Errorf("%s requires at least one positional argument", b.Name())
	}
	var by starlark.Callable
	if err := starlark.UnpackArgs(b.Name(), nil, kwargs, "key?", &by); err != nil {
		return nil, err
	}
	key := func(x starlark.Value) (starlark.Value, error) {
		if by == nil {
			return x, nil
		}
		return starlark.Call(t, by, starlark.Tuple{x}, nil)
	}
	op := syntax.LT
	if b.Name() == "max" {
		op = syntax.GT
	}
	var of starlark.Value = args
	if len(args) == 1 {
		of = args[0]
	}
	it := starlark.Iterate(of)
	if it == nil {
		return nil, fmt.Errorf("%s: %s value is not iterable", b.Name(), of.Type())
	}
	defer it.Done()
	var best starlark.Value
	if !it.Next(&best) {
		return nil, fmt.Errorf("%s: argument is an empty sequence", b.Name())
	}
	bestKey, err := key(best)
	if err != nil {
		return nil, err
	}
	c := runOf(t).comparison()
	for x := starlark.Value(nil); it.Next(&x); {
		k, err := key(x)
		if err != nil {
			return nil, err
		}
		better, err := c.compare(op, k, bestKey, starlark.CompareLimit)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.Name(), err)
		}
		if better {
			best, bestKey = x, k
		}
	}
	return best, nil
}
