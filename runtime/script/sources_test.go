package script

import (
	"maps"
	"slices"
	"testing"
	"testing/fstest"
)

func TestSourcesFollowLoads(t *testing.T) {
	h := New(Options{
		Files: fstest.MapFS{
			"m/hooks/a.star": {Data: []byte("load(\"../lib/x.star\", \"x\")\nload(\"@std//s.star\", \"s\")\nload(\"//none.star\", \"n\")\nload(\"bad\", \"b\")\n")},
			"m/lib/x.star":   {Data: []byte("load(\"//m/hooks/a.star\", \"a\")\n")}, // in a circle
			"m/other.star":   {Data: []byte("x = 1\n")},
			"m/broken.star":  {Data: []byte("def (\n")},
		},
		Std: fstest.MapFS{"s.star": {Data: []byte("load(\"./t.star\", \"t\")\n")}, "t.star": {Data: []byte("t = 1\n")}},
	})
	files, err := h.Sources("m/hooks/a.star", "m/broken.star", "m/missing.star")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"@std//s.star", "@std//t.star", "m/broken.star", "m/hooks/a.star", "m/lib/x.star"}
	if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
