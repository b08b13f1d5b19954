package watch

import (
	"errors"
	"testing"
	"time"

	"go.starlark.net/starlark"
)

func marked(name, version string, deleting, held bool) map[string]any {
	meta := map[string]any{"name": name, "resourceVersion": version}
	if deleting {
		meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
	}
	if held {
		meta["finalizers"] = []any{"other", "starling.dev/f"}
	}
	return map[string]any{"metadata": meta}
}

// Events tell who holds an object beside what the filter makes of it, and of one that the
// filter fails on, too: its cleanup must come all the same.
func TestMarksAreToldBesideResults(t *testing.T) {
	fails := false
	v := newView(Spec{Finalizer: "starling.dev/f", Filter: func(map[string]any) (starlark.Value, bool, error) {
		if fails {
			return nil, false, errors.New("malformed")
		}
		return starlark.String("same"), true, nil
	}})
	put := func(version uint64, deleting, held bool) (Event, bool) {
		return v.put(objectKey{"", "a"}, version, v.run(marked("a", "", deleting, held)), time.Time{}, false)
	}
	if ev, ok := put(1, false, false); !ok || ev.Type != Added || ev.Same || ev.Marks != (Marks{}) {
		t.Errorf("got %+v", ev)
	}
	if ev, ok := put(2, false, true); !ok || ev.Type != Modified || !ev.Same || !ev.Marks.Held || ev.Marks.Deleting {
		t.Errorf("got %+v", ev)
	}
	if _, ok := put(3, false, true); ok {
		t.Error("an event without a change")
	}
	fails = true
	if ev, ok := put(4, true, true); !ok || !ev.Same || !ev.Marks.Deleting || ev.Result != starlark.String("same") {
		t.Errorf("got %+v", ev)
	}
	fails = false
	list := func(marks Marks, err error) []Event {
		return v.replace([]entry{{objectKey{"", "a"}, 9, outcome{value: starlark.String("same"), keep: err == nil, err: err, marks: marks}}}, 9, time.Time{}, false)
	}
	if events := list(Marks{Held: true}, errors.New("malformed")); len(events) != 1 || !events[0].Same || events[0].Marks.Deleting {
		t.Errorf("got %+v", events)
	}
	if events := list(Marks{}, nil); len(events) != 1 || !events[0].Same || events[0].Marks.Held {
		t.Errorf("got %+v", events)
	}
}
