package drift

import (
	"testing"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/watch"
)

// An object that is deleted while Helm works, or while a repair of all does, after these have seen
// it there, is missing. One that the release does not hold is not.
func TestObjectsThatGoMeanwhile(t *testing.T) {
	w := newWorld(t)
	w.Expect(web, all(left("a", 10, 1)))
	w.Synced(w.id(), []watch.Entry{is("a", 10, 1)}, nil)
	w.Begin(web, nil)
	for _, name := range []string{"b", "c"} {
		w.Changed(w.id(), changes(is(name, 20, 1)))
		w.Changed(w.id(), deleted(name, 21))
	}
	w.Expect(web, all(left("a", 10, 1), left("b", 20, 1)))
	w.want(true, "b missing")
	w.Changed(w.id(), changes(is("b", 30, 1)))
	w.want(true)

	w = newWorld(t) // after a restart, with a digest from before the last repair
	noted := all(left("a", 10, 1))
	noted.Seen = nil
	w.Expect(web, noted)
	w.Synced(w.id(), []watch.Entry{is("a", 11, 2)}, nil)
	w.want(true, "verify")
	w.Changed(w.id(), deleted("a", 12))
	w.Repaired(web, Repair{Objects: all(left("a", 11, 2)), Ended: true})
	w.want(true, "a missing")
}

// An object that has gone while nobody looked is missing after a repair that only reports, too.
func TestMissingObjectsThatAreReported(t *testing.T) {
	w := newWorld(t)
	noted := all(left("a", 10, 1), left("b", 10, 1))
	noted.Seen = nil
	w.Expect(web, noted)
	w.Synced(w.id(), []watch.Entry{is("a", 11, 2)}, nil)
	w.want(true, "verify")
	gone := left("b", 0, 1)
	gone.Missing = true
	w.Repaired(web, Repair{Objects: all(left("a", 11, 1), gone), Ended: true})
	w.want(true, "a changed", "b missing")
	w.Changed(w.id(), changes(is("b", 30, 1)))
	w.want(true, "a changed")
}

// Of objects of a kind that nobody watches any more, a repair that was asked for before keeps nothing.
func TestRepairsOfKindsThatAreGone(t *testing.T) {
	w := newWorld(t)
	w.released(left("a", 10, 1))
	asked := []effect.Ref{{APIVersion: "gone.example.com/v1", Kind: "Gadget", Namespace: "shop", Name: "a"}}
	w.Repaired(web, Repair{Asked: asked, Objects: all(left("a", 10, 1)), Ended: true})
	if len(w.kinds) != 1 {
		t.Errorf("kinds: %v", w.kinds)
	}
}
