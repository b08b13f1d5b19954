package script

import (
	"fmt"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
)

// A tuple or struct may be a key, so it may be hashed, which recurses through all that it
// holds and goes through a part once for each place that holds it: one that lies a million
// deep overflows the stack, and one of two that are one of two, and so on, takes for ever.
// So each is weighed when it is made.

const (
	// maxWeight is how many values a tuple or struct may hold, counted at each place; 64
	// bytes of text count as one.
	maxWeight = 8_000_000
	// maxNesting is how deep tuples and structs may lie in each other.
	maxNesting = 1000
	// remembered is the weight from which on a weight is not worked out again, and
	// maxRemembered how many are known at once.
	remembered    = 64
	maxRemembered = 10_000
)

// weight is what a tuple or struct holds.
type weight struct{ values, depth int }

// tuples are the weights of one run. A tuple is known by where its elements are, and how
// many.
type tuples map[tupleKey]weight

type tupleKey struct {
	first any
	n     int
}

// weigh returns why a value may not be made that holds so much, nil when it may.
func weigh(t *starlark.Thread, v starlark.Value) error {
	r, _ := t.Local(runKey).(*run)
	if r == nil {
		return nil
	}
	_, err := r.weigh(v, 0)
	return err
}

// weighAll weighs v and, where v is a list, each element: a new tuple.
func weighAll(t *starlark.Thread, v starlark.Value) error {
	list, ok := v.(*starlark.List)
	if !ok {
		return weigh(t, v)
	}
	for i := range list.Len() {
		if err := weigh(t, list.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) weigh(v starlark.Value, level int) (w weight, err error) {
	w.values = 1
	var key tupleKey
	switch v := v.(type) {
	case starlark.String:
		w.values += len(v) / 64
		return w, nil
	case starlark.Bytes:
		w.values += len(v) / 64
		return w, nil
	case starlark.Tuple:
		if len(v) == 0 {
			return w, nil
		}
		key = tupleKey{&v[0], len(v)}
	case *starlarkstruct.Struct:
		key = tupleKey{v, 0}
	default:
		return w, nil
	}
	if known, ok := r.tuples[key]; ok {
		return known, nil
	}
	if level > maxNesting {
		return w, tooDeep()
	}
	w.depth = 1
	add := func(x starlark.Value) error {
		of, err := r.weigh(x, level+1)
		w.values += of.values
		w.depth = max(w.depth, of.depth+1)
		switch {
		case err != nil:
			return err
		case w.depth > maxNesting:
			return tooDeep()
		case w.values > maxWeight:
			return fmt.Errorf("a tuple or struct holds more than %d values", maxWeight)
		}
		return nil
	}
	switch v := v.(type) {
	case starlark.Tuple:
		for _, x := range v {
			if err := add(x); err != nil {
				return w, err
			}
		}
	case *starlarkstruct.Struct:
		for _, x := range v.Entries() {
			if err := add(x); err != nil {
				return w, err
			}
		}
	}
	if w.values > remembered || w.depth > remembered {
		if r.tuples == nil || len(r.tuples) >= maxRemembered {
			r.tuples = tuples{}
		}
		r.tuples[key] = w
	}
	return w, nil
}

func tooDeep() error {
	return fmt.Errorf("tuples or structs lie in each other more than %d deep", maxNesting)
}
