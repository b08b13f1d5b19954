package script

import (
	"fmt"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
)

// Freezing walks through all that the globals of a file hold, in one step, recursing,
// and through a tuple or struct once for each place that holds it: one of two that are
// one tuple of two, and so on, takes for ever.

const (
	// maxFrozen is how many values the globals of one file may hold, those in tuples
	// counted at each place.
	maxFrozen = 20_000_000
	// maxFrozenDepth is how deep they may lie in each other.
	maxFrozenDepth = 10_000
)

// freeze freezes the globals of a file, or says why it does not.
func freeze(globals starlark.StringDict) error {
	w := &freezer{left: maxFrozen, seen: map[starlark.Value]bool{}}
	for _, name := range globals.Keys() {
		if err := w.value(globals[name], 0); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	globals.Freeze()
	return nil
}

type freezer struct {
	left int
	seen map[starlark.Value]bool // what is frozen once, wherever it is
}

func (w *freezer) value(v starlark.Value, depth int) error {
	if w.left--; w.left < 0 {
		return fmt.Errorf("holds more than %d values", maxFrozen)
	}
	if depth > maxFrozenDepth {
		return fmt.Errorf("holds values that lie in each other more than %d deep", maxFrozenDepth)
	}
	switch v := v.(type) {
	case starlark.Tuple:
		return w.all(v, depth)
	case *starlarkstruct.Struct:
		for _, name := range v.AttrNames() {
			if x, err := v.Attr(name); err == nil {
				if err := w.value(x, depth+1); err != nil {
					return err
				}
			}
		}
	case *starlark.List, *starlark.Dict, *starlark.Set, *starlark.Function:
		if w.seen[v] {
			return nil
		}
		w.seen[v] = true
		return w.holder(v, depth)
	}
	return nil
}

func (w *freezer) all(values starlark.Tuple, depth int) error {
	for _, x := range values {
		if err := w.value(x, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (w *freezer) holder(v starlark.Value, depth int) error {
	switch v := v.(type) {
	case *starlark.List:
		for i := range v.Len() {
			if err := w.value(v.Index(i), depth+1); err != nil {
				return err
			}
		}
	case *starlark.Dict:
		for k, x := range v.Entries() {
			if err := w.all(starlark.Tuple{k, x}, depth); err != nil {
				return err
			}
		}
	case *starlark.Set:
		for x := range v.Elements() {
			if err := w.value(x, depth+1); err != nil {
				return err
			}
		}
	case *starlark.Function:
		for i := range v.NumParams() {
			if x := v.ParamDefault(i); x != nil {
				if err := w.value(x, depth+1); err != nil {
					return err
				}
			}
		}
		for i := range v.NumFreeVars() {
			if _, x := v.FreeVar(i); x != nil {
				if err := w.value(x, depth+1); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
