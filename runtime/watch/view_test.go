package watch

import (
	"fmt"
	"testing"
	"time"

	"go.starlark.net/starlark"
)

// A snapshot is put together once for all runs until a value changes, and what a run has
// got stays as it was.
func TestSnapshotsAreShared(t *testing.T) {
	v := newView(Spec{Filter: func(map[string]any) (starlark.Value, bool, error) { return nil, true, nil }})
	put := func(name string, version uint64, value string) []starlark.Value {
		v.put(objectKey{name: name}, version, outcome{value: starlark.String(value), keep: true}, time.Time{}, false)
		return v.snapshot()
	}
	put("a", 1, "1")
	first := put("b", 2, "2")
	if same := put("a", 3, "1"); &same[0] != &first[0] {
		t.Error("put together again though no value has changed")
	}
	changed := put("a", 4, "3")
	v.remove(objectKey{name: "b"}, 5, time.Time{}, false)
	removed := v.snapshot()
	v.replace([]entry{{objectKey{name: "c"}, 6, outcome{value: starlark.String("4"), keep: true}}}, 6, time.Time{}, false)
	if got, want := fmt.Sprint(first, changed, removed, v.snapshot()), `["1" "2"] ["3" "2"] ["3"] ["4"]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
