package values

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// Branches hold what a map would, in the order of the keys, and those before stay as they were.
func TestBranchesAreAMapThatNeverChanges(t *testing.T) {
	for seed := range seeds(20) {
		r := rand.New(rand.NewPCG(seed, 4))
		var b branches
		want := map[string]*joined{}
		for step := range 2000 {
			key, tree := fmt.Sprint(r.IntN(400)), &joined{}
			if r.IntN(1000) < step/2 {
				tree = nil
			}
			before, was := b, maps.Clone(want)
			if b = b.with(key, tree); tree == nil {
				delete(want, key)
			} else {
				want[key] = tree
			}
			if step%50 == 0 {
				holds(t, before, was)
				holds(t, b, want)
			}
		}
	}
}

func holds(t *testing.T, b branches, want map[string]*joined) {
	t.Helper()
	var trees, got []*joined
	for _, key := range slices.Sorted(maps.Keys(want)) {
		trees = append(trees, want[key])
		if b.at(key) != want[key] {
			t.Fatalf("another tree at %q", key)
		}
	}
	for key, tree := range b.all() {
		if got = append(got, tree); want[key] != tree {
			t.Fatalf("another key, %q", key)
		}
	}
	if !slices.Equal(got, trees) || b.empty() != (len(want) == 0) || b.at("nothing") != nil {
		t.Fatalf("%d trees, want %d", len(got), len(trees))
	}
}
