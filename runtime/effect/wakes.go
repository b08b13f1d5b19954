package effect

import "slices"

// Wakes says which objects of a hook with for_each an event is for. Nil: all of them.
type Wakes struct {
	// Keys are those of the objects, sorted, each once; none: the event is for nobody.
	Keys []string
}

// WakesKeys wakes the objects of these keys.
func WakesKeys(keys ...string) *Wakes {
	return &Wakes{slices.Compact(slices.Sorted(slices.Values(keys)))}
}

// And wakes all that either wakes: an object has moved from one to the other.
func (w *Wakes) And(other *Wakes) *Wakes {
	switch {
	case w == nil || other == nil:
		return nil
	case w.Equal(other):
		return w
	}
	return WakesKeys(slices.Concat(w.Keys, other.Keys)...)
}

// Equal says whether both wake the same.
func (w *Wakes) Equal(other *Wakes) bool {
	if w == nil || other == nil {
		return w == other
	}
	return slices.Equal(w.Keys, other.Keys)
}
