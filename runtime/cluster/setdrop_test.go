package cluster

import (
	"context"
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
	ctx := context.Background()
	s := newSetWorld(t)
	expect := func(want int, what string) {
		t.Helper()
		if got := len(s.writer.sets); got != want {
			t.Errorf("%s: %d sets in memory, want %d", what, got, want)
		}
	}
	drop := func(key string, mark uint64) {
		t.Helper()
		if err := s.writer.DropSets(ctx, manager, key, mark); err != nil {
			t.Fatal(err)
		}
	}
	sweep := func(mark uint64, keys ...string) {
		t.Helper()
		there := map[string]bool{}
		for _, key := range keys {
			there[key] = true
		}
		if err := s.writer.SweepSets(ctx, manager, there, mark); err != nil {
			t.Fatal(err)
		}
	}
	s.applyFor("a/one", true, "b")
	s.applyFor("a/on", true, "c")
	s.applyFor("a/two", false, "d")
	expect(3, "applied")
	if n := s.records(); n != 1 {
		t.Errorf("%d records of one hook", n)
	}

	drop("a/two", s.writer.SetMark())
	drop("a/o", s.writer.SetMark())
	if err := s.writer.DropSets(ctx, "starling/web/g", "a/on", s.writer.SetMark()); err != nil {
		t.Fatal(err)
	}
	expect(3, "without an owner, of another object, of another hook")
	drop("a/on", s.writer.SetMark())
	expect(2, "gone")
	drop("a/on", s.writer.SetMark())

	// Another object of the same name has come before the end of the first was seen to.
	mark := s.writer.SetMark()
	s.applyFor("a/one", true, "b", "e")
	drop("a/one", mark)
	sweep(mark)
	expect(2, "come again")
	sweep(s.writer.SetMark(), "a/one")
	expect(2, "still there")
	sweep(s.writer.SetMark(), "a/three")
	expect(1, "gone while nobody looked")

	s.restart()
	s.applyFor("a/one", true, "e")
	expect(3, "all that is there")
	s.expect("c", "d", "e") // what nobody applies any more is up to the garbage collector
}
