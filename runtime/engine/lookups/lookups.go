// Package lookups knows which subjects of a controller have looked where, among the rows of its watches and
// in the values of its module. So what happens to a row wakes those that have looked there, also when they
// found nothing, and nobody else. It does no I/O.
package lookups

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/starling-operator/starling/runtime/effect"
)

// MaxPlaces is how many places of one watch are kept apart for one subject. One that has looked at more
// counts as one that has looked everywhere: it is woken too often, and never too seldom.
const MaxPlaces = 100

// maxMoved bounds what is remembered of moves while runs are under way.
const maxMoved = 10_000

// Set holds the lookups of the subjects of one controller.
type Set struct {
	readers map[effect.Lookup]map[string]bool // who has looked there, by key
	of      map[string][]effect.Lookup        // where the last run of a key has looked
	// Places that have moved while runs were under way, whose lookups nobody knows yet, with the number of
	// the run that had begun last. Up to forgotten, any place may have.
	moved     map[effect.Lookup]uint64
	forgotten uint64
}

// New returns a set without lookups.
func New() *Set {
	return &Set{readers: map[effect.Lookup]map[string]bool{}, of: map[string][]effect.Lookup{}, moved: map[effect.Lookup]uint64{}}
}

// Move takes in that something has happened at places of one watch, and returns who has looked there, by
// key. Last is the number of the run that began last; running says that some are under way.
func (t *Set) Move(watch string, places []string, last uint64, running bool) (readers []string) {
	found := map[string]bool{}
	for _, place := range append(slices.Clip(places), effect.Everywhere) {
		l := effect.Lookup{Watch: watch, At: place}
		maps.Copy(found, t.readers[l])
		if running {
			t.moved[l] = last
		}
	}
	switch {
	case !running:
		clear(t.moved)
	case len(t.moved) > maxMoved:
		clear(t.moved)
		t.forgotten = last
	}
	return slices.Sorted(maps.Keys(found))
}

// Ran takes in where a run of this number, about a key, has looked, in the place of the run before it. It
// returns lookups of which the answer may be another one by now, because something has moved there since the
// run began: the first one of each watch.
func (t *Set) Ran(key string, run uint64, lookups []effect.Lookup) (stale []effect.Lookup) {
	lookups = fewer(lookups)
	if !slices.Equal(t.of[key], lookups) {
		t.Forget(key)
		for _, l := range lookups {
			if t.readers[l] == nil {
				t.readers[l] = map[string]bool{}
			}
			t.readers[l][key] = true
		}
		if len(lookups) > 0 {
			t.of[key] = lookups
		}
	}
	for _, l := range lookups {
		at, moved := t.moved[l]
		if n := len(stale); (moved && at >= run || t.forgotten >= run) && (n == 0 || stale[n-1].Watch != l.Watch) {
			stale = append(stale, l)
		}
	}
	return stale
}

// Of returns where the last run of a key has looked, sorted.
func (t *Set) Of(key string) []effect.Lookup { return slices.Clone(t.of[key]) }

// Forget drops a key.
func (t *Set) Forget(key string) {
	for _, l := range t.of[key] {
		delete(t.readers[l], key)
		if len(t.readers[l]) == 0 {
			delete(t.readers, l)
		}
	}
	delete(t.of, key)
}

// fewer are lookups sorted, each once, of each watch few enough.
func fewer(lookups []effect.Lookup) (out []effect.Lookup) {
	rest := slices.Compact(slices.SortedFunc(slices.Values(lookups), compare))
	for len(rest) > 0 {
		watch := rest[0].Watch
		n := slices.IndexFunc(rest, func(l effect.Lookup) bool { return l.Watch != watch })
		if n < 0 {
			n = len(rest)
		}
		if all := (effect.Lookup{Watch: watch, At: effect.Everywhere}); n > MaxPlaces || slices.Contains(rest[:n], all) {
			out = append(out, all)
		} else {
			out = append(out, rest[:n]...)
		}
		rest = rest[n:]
	}
	return out
}

func compare(a, b effect.Lookup) int {
	return cmp.Or(strings.Compare(a.Watch, b.Watch), strings.Compare(a.At, b.At))
}
