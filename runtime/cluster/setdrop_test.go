package cluster

import (
	"context"
	"slices"
	"testing"

	"github.com/starling-operator/starling/runtime/effect"
)

// applyFor applies the set "children" of one object of a hook with for_each.
func (s *setWorld) applyFor(key string, owned bool, members ...string) {
	s.t.Helper()
	w := effect.Write{Kind: effect.WriteSet, Set: &effect.Set{Name: key + " children"}}
	if owned {
		w.Owner = &effect.Owner{Ref: configRef, UID: "uid-of-" + key}
	}
	for _, name := range members {
		ref := configRef
		ref.Name = name
		w.Set.Members = append(w.Set.Members, effect.Write{Kind: effect.WriteApply, Ref: ref, Force: true, Object: configMap("a", name)})
	}
	if err := s.writer.Write(context.Background(), "starling/web/f", w); err != nil {
		s.t.Fatal(err)
	}
}

// Objects come and go; what is known of their sets must not stay for ever.
func TestSetsGoWithTheirObjects(t *testing.T) {
	const manager = "starling/web/f"
	s := newSetWorld(t)
	expect := func(want int, what string) {
		t.Helper()
		if got := len(s.sets()); got != want {
			t.Errorf("%s: %d sets in memory, want %d", what, got, want)
		}
	}
	drop := func(key string) { s.writer.DropSets(manager, func(of string) bool { return of == key }) }
	sweep := func(keys ...string) {
		s.writer.DropSets(manager, func(of string) bool { return !slices.Contains(keys, of) })
	}
	s.applyFor("a/one", true, "b")
	s.applyFor("a/on", true, "c")
	s.applyFor("a/two", false, "d")
	expect(3, "applied")
	if n := s.records(); n != 1 {
		t.Errorf("%d records of one hook", n)
	}

	drop("a/two")
	drop("a/o")
	s.writer.DropSets("starling/web/g", func(string) bool { return true })
	expect(3, "without an owner, of another object, of another hook")
	drop("a/on")
	expect(2, "gone")
	drop("a/on")

	sweep("a/one")
	expect(2, "still there")
	sweep("a/three")
	expect(1, "gone while nobody looked")

	// The end of an object is seen to while its set is applied; another one of its name comes then.
	const name = "a/one children"
	s.applyFor("a/one", true, "b")
	_, unlock := s.writer.hooks[manager].lock(name)
	drop("a/one")
	expect(2, "under way")
	unlock()
	expect(1, "after the apply")
	s.applyFor("a/one", true, "b")
	_, unlock = s.writer.hooks[manager].lock(name)
	drop("a/one")
	unlockLater := unlock
	s.writer.mu.Lock()
	s.sets()[name].at++ // as a later apply does
	s.writer.mu.Unlock()
	unlockLater()
	expect(2, "come again")

	s.restart()
	s.applyFor("a/one", true, "e")
	expect(3, "all that is there")
	s.expect("c", "d", "e") // what nobody applies any more is up to the garbage collector
}
