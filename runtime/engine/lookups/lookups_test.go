package lookups

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/starling-operator/starling/runtime/effect"
)

func at(watch, place string) effect.Lookup { return effect.Lookup{Watch: watch, At: place} }

func wakes(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("woken %q, want %q", got, want)
	}
}

func TestThoseThatHaveLookedThereAreWoken(t *testing.T) {
	s := New()
	s.Ran("a", 1, []effect.Lookup{at("nodes", effect.AtObject("n1")), at("nodes", effect.AtIndex("zone", "x"))})
	s.Ran("b", 2, []effect.Lookup{at("nodes", effect.AtObject("n2")), at("", effect.Everywhere)})
	s.Ran("c", 3, []effect.Lookup{at("nodes", effect.Everywhere), at("pods", effect.AtObject("n1"))})
	wakes(t, s.Move("nodes", []string{effect.AtObject("n1")}, 3, false), "a", "c")
	wakes(t, s.Move("nodes", []string{effect.AtObject("n2")}, 3, false), "b", "c")
	wakes(t, s.Move("nodes", []string{effect.AtObject("n3"), "zone=y", "zone=x"}, 3, false), "a", "c") // from y to x
	wakes(t, s.Move("nodes", []string{effect.AtObject("n3")}, 3, false), "c")
	wakes(t, s.Move("pods", []string{effect.AtObject("n2")}, 3, false))
	wakes(t, s.Move("", nil, 3, false), "b")

	if got, want := s.Of("b"), []effect.Lookup{at("", effect.Everywhere), at("nodes", effect.AtObject("n2"))}; !slices.Equal(got, want) {
		t.Errorf("it has looked at %v, want %v", got, want)
	}

	s.Ran("c", 4, nil)
	wakes(t, s.Move("nodes", []string{effect.AtObject("n1")}, 4, false), "a")
	s.Forget("a")
	s.Forget("b")
	if len(s.readers)+len(s.of) > 0 {
		t.Errorf("something is left: %v, %v", s.readers, s.of)
	}
}

// Of two lookups in one watch both count, and of many it is enough that the watch was looked at.
func TestManyPlacesAreAllOfThem(t *testing.T) {
	var many []effect.Lookup
	for i := range MaxPlaces {
		many = append(many, at("nodes", effect.AtObject(fmt.Sprint(i))))
	}
	s := New()
	s.Ran("a", 1, slices.Concat(many, many))
	wakes(t, s.Move("nodes", []string{effect.AtObject("x")}, 1, false))
	wakes(t, s.Move("nodes", []string{effect.AtObject("7")}, 1, false), "a")
	s.Ran("a", 2, append(many, at("nodes", effect.AtObject("y")), at("pods", effect.AtObject("y"))))
	wakes(t, s.Move("nodes", []string{effect.AtObject("x")}, 2, false), "a")
	wakes(t, s.Move("pods", []string{effect.AtObject("x")}, 2, false))
	if n := len(s.of["a"]); n != 2 {
		t.Errorf("%d lookups are kept, want 2", n)
	}
}

// A move while a run is under way has it run again, if it has looked there.
func TestMovesDuringARun(t *testing.T) {
	s := New()
	there, elsewhere := []effect.Lookup{at("nodes", effect.AtObject("n1")), at("nodes", "zone=x")}, []effect.Lookup{at("nodes", effect.AtObject("n2"))}
	s.Move("nodes", []string{effect.AtObject("n1")}, 4, true) // before run 5 begins
	if stale := s.Ran("a", 5, there); stale != nil {
		t.Errorf("stale %v", stale)
	}
	s.Move("nodes", []string{effect.AtObject("n1"), "zone=x"}, 6, true)
	if stale := s.Ran("b", 6, elsewhere); stale != nil {
		t.Errorf("stale %v", stale)
	}
	if stale := s.Ran("b", 6, there); !slices.Equal(stale, there[:1]) {
		t.Errorf("stale %v", stale)
	}
	for i := range maxMoved {
		s.Move("nodes", []string{effect.AtObject(fmt.Sprint("x", i))}, 7, true)
	}
	if n := len(s.moved); n > maxMoved {
		t.Errorf("%d moves are remembered", n)
	}
	if stale := s.Ran("b", 7, elsewhere); len(stale) != 1 {
		t.Errorf("stale %v, though nobody knows", stale)
	}
	if stale := s.Ran("b", 8, elsewhere); stale != nil {
		t.Errorf("stale %v", stale)
	}
	s.Move("pods", nil, 8, false)
	if len(s.moved) > 0 {
		t.Errorf("moves are remembered for nobody: %v", s.moved)
	}
}

// lab is a cluster of rows whose events come late, and parents that look at them.
type lab struct {
	*Set
	r      *rand.Rand
	rows   map[string]string // zone by name
	events [][]string        // places, on their way
	begun  uint64
	runs   map[string]uint64 // under way: the number
	seen   map[string]answer // by runs under way that have read
	shown  map[string]string // what the last run of each has made of the rows
	woken  map[string]bool
}

type answer struct {
	text    string
	lookups []effect.Lookup
}

// look is what a parent makes of the rows: where it looks hangs on what it has found.
func (l *lab) look(parent string) (a answer) {
	names := func(place string) string {
		a.lookups = append(a.lookups, at("nodes", place))
		var found []string
		for name, zone := range l.rows {
			if place == effect.Everywhere || place == effect.AtObject(name) || place == effect.AtIndex("zone", zone) {
				found = append(found, name+"@"+zone)
			}
		}
		slices.Sort(found)
		return strings.Join(found, " ")
	}
	n := int(parent[0])
	first := names(effect.AtObject(fmt.Sprint("n", n%5)))
	second := names(effect.AtIndex("zone", fmt.Sprint((n+len(first))%3)))
	a.text = first + "/" + second
	if strings.Count(second, " ") == n%4 {
		a.text += "/" + names(effect.Everywhere)
	}
	return a
}

func (l *lab) change() {
	name, zone := fmt.Sprint("n", l.r.IntN(5)), fmt.Sprint(l.r.IntN(3))
	places := []string{effect.AtObject(name)}
	if before, there := l.rows[name]; there {
		places = append(places, effect.AtIndex("zone", before))
	}
	if l.r.IntN(3) == 0 {
		delete(l.rows, name)
	} else {
		l.rows[name] = zone
		places = append(places, effect.AtIndex("zone", zone))
	}
	l.events = append(l.events, places)
}

func (l *lab) step(t *testing.T) {
	switch parent := fmt.Sprintf("%c", 'a'+rune(l.r.IntN(6))); l.r.IntN(5) {
	case 0:
		if len(l.events) > 0 {
			places := l.events[0]
			l.events = l.events[1:]
			for _, reader := range l.Move("nodes", places, l.begun, len(l.runs) > 0) {
				looked := slices.ContainsFunc(l.of[reader], func(k effect.Lookup) bool { return k.At == effect.Everywhere || slices.Contains(places, k.At) })
				if l.woken[reader] = true; !looked {
					t.Errorf("%s is woken by %q, and has looked at %v alone", reader, places, l.of[reader])
				}
			}
		}
	case 1:
		if l.runs[parent] == 0 && l.woken[parent] {
			l.begun++
			l.runs[parent] = l.begun
			delete(l.woken, parent)
		}
	case 2:
		if l.runs[parent] > 0 {
			l.seen[parent] = l.look(parent)
		}
	case 3, 4:
		if a, read := l.seen[parent]; read {
			if l.Ran(parent, l.runs[parent], a.lookups) != nil {
				l.woken[parent] = true
			}
			l.shown[parent] = a.text
			delete(l.seen, parent)
			delete(l.runs, parent)
		}
	}
}

// Whatever comes between the beginning of a run and the events about what it has read: once all is quiet,
// each parent shows what a run from scratch would show.
func TestRandomWakesMissNothing(t *testing.T) {
	for seed := range uint64(500) {
		l := &lab{Set: New(), r: rand.New(rand.NewPCG(seed, 1)), rows: map[string]string{}, runs: map[string]uint64{}, seen: map[string]answer{}, shown: map[string]string{}, woken: map[string]bool{}}
		for _, parent := range "abcdef" {
			l.woken[string(parent)] = true
		}
		for range l.r.IntN(300) {
			if l.r.IntN(8) == 0 {
				l.change()
			}
			l.step(t)
		}
		for len(l.events)+len(l.runs)+len(l.woken) > 0 {
			l.step(t)
		}
		for _, parent := range slices.Sorted(maps.Keys(l.shown)) {
			if now := l.look(parent).text; l.shown[parent] != now {
				t.Errorf("seed %d: %s shows %q, and would show %q", seed, parent, l.shown[parent], now)
			}
		}
		if t.Failed() {
			return
		}
	}
}

func BenchmarkMove(b *testing.B) {
	for _, parents := range []int{100, 10_000} {
		b.Run(fmt.Sprint(parents), func(b *testing.B) {
			s := New()
			for i := range parents {
				s.Ran(fmt.Sprint("p", i), uint64(i), []effect.Lookup{at("nodes", effect.AtObject(fmt.Sprint("n", i))), at("nodes", effect.AtIndex("zone", fmt.Sprint(i)))})
			}
			for b.Loop() {
				s.Move("nodes", []string{effect.AtObject("n7"), "zone=8"}, 1, true)
				s.Ran("p7", 2, []effect.Lookup{at("nodes", effect.AtObject("n7")), at("nodes", "zone=9")})
				s.Ran("p7", 2, []effect.Lookup{at("nodes", effect.AtObject("n7")), at("nodes", "zone=7")})
			}
		})
	}
}
