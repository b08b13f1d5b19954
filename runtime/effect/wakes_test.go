package effect

import (
	"slices"
	"testing"
)

func TestWakes(t *testing.T) {
	nobody, a, ab, b := WakesKeys(), WakesKeys("a"), WakesKeys("b", "a", "b"), WakesKeys("b")
	for name, c := range map[string]struct{ one, other, want *Wakes }{
		"all and one":       {nil, a, nil},
		"one and all":       {a, nil, nil},
		"nobody and one":    {nobody, a, a},
		"one and another":   {b, a, ab},
		"one and more":      {a, ab, ab},
		"nobody and nobody": {nobody, nobody, nobody},
	} {
		if got := c.one.And(c.other); !got.Equal(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if !slices.Equal(ab.Keys, []string{"a", "b"}) || nobody.Equal(nil) || a.Equal(ab) || a.And(a) != a {
		t.Errorf("%v", ab)
	}
}
