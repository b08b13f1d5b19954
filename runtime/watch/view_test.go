package watch

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/object"
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

// A list that is older than what the stream has brought takes no failure of the filter
// away: what failed was newer.
func TestAnOldListTakesNoFailureAway(t *testing.T) {
	v := newView(Spec{Filter: func(map[string]any) (starlark.Value, bool, error) { return nil, true, nil }})
	good := outcome{value: starlark.String("good"), keep: true}
	v.put(objectKey{name: "a"}, 7, outcome{err: errors.New("boom")}, time.Time{}, true)
	v.put(objectKey{name: "b"}, 3, outcome{err: errors.New("long ago")}, time.Time{}, true)
	v.replace([]entry{{objectKey{name: "a"}, 4, good}, {objectKey{name: "b"}, 4, good}}, 5, time.Time{}, false)
	if err := v.failed.err("Node", false); err == nil || !strings.HasSuffix(err.Error(), "a: boom") {
		t.Errorf("got %v", err)
	}
	v.put(objectKey{name: "a"}, 8, good, time.Time{}, false)
	if err := v.failed.err("Node", false); err != nil {
		t.Errorf("got %v", err)
	}
	v.put(objectKey{name: "a"}, 9, outcome{err: errors.New("boom")}, time.Time{}, true)
	if v.replace([]entry{{objectKey{name: "a"}, 1, good}}, 2, time.Time{}, true); v.failed.err("Node", false) != nil {
		t.Error("the history begins anew, and the failure stays")
	}
}

// A watch of single objects tells of one without a result, and of its first result as of an
// object that is new; its snapshot does not show it.
func TestAnObjectWithoutAResultIsKeptAsOne(t *testing.T) {
	v := newView(Spec{Kind: "Node", Each: true, Filter: func(map[string]any) (starlark.Value, bool, error) { return nil, true, nil }})
	good, bad := outcome{value: starlark.String("good"), keep: true}, outcome{err: errors.New("boom")}
	a := objectKey{name: "a"}
	var told []string
	tell := func(ev Event, changed bool) {
		if changed {
			told = append(told, fmt.Sprintf("%s lacks=%t", ev.Type, ev.Lacks))
		}
	}
	for _, ev := range v.replace([]entry{{a, 1, bad}}, 1, time.Time{}, false) {
		tell(ev, true)
	}
	tell(v.put(a, 2, bad, time.Time{}, false))
	if err, lacks := v.trouble(); err == nil || lacks || len(v.snapshot()) > 0 {
		t.Errorf("%v, lacks %t, snapshot %v", err, lacks, v.snapshot())
	}
	tell(v.put(a, 3, good, time.Time{}, false))
	tell(v.put(a, 4, bad, time.Time{}, false)) // the result stays
	tell(v.remove(a, 5, time.Time{}, false))
	tell(v.put(a, 6, bad, time.Time{}, false))
	tell(v.remove(a, 7, time.Time{}, false))
	if got, want := strings.Join(told, ", "), "added lacks=true, added lacks=false, deleted lacks=false, added lacks=true, deleted lacks=true"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if err, _ := v.trouble(); err != nil {
		t.Error(err)
	}
}

// A result that holds the object is shown as it is now, and only what the filter makes of it counts as a
// change; an event of a change tells the result of before.
func TestResultsWithTheirObjectsAndOfBefore(t *testing.T) {
	spec := configMaps("w")
	spec.KeepObject, spec.Both, spec.Old = true, true, true
	local := NewLocal(spec)
	put := func(d, noise, version string) []Event {
		obj := configMap("a", "x", d)
		obj["data"].(map[string]any)["noise"] = noise
		obj["metadata"].(map[string]any)["resourceVersion"] = version
		return local.Replace([]map[string]any{obj}, time.Time{})
	}
	shown := func(v starlark.Value) string {
		both := v.(*object.Object).Map()
		return fmt.Sprint(both["result"], " of ", both["object"].(map[string]any)["data"].(map[string]any)["noise"])
	}
	if events := put("1", "quiet", "1"); len(events) != 1 || events[0].Type != Added || events[0].Old != nil || shown(events[0].Result) != "1 of quiet" {
		t.Errorf("got %v", events)
	}
	if events := put("1", "loud", "2"); len(events) != 0 || shown(local.view.snapshot()[0]) != "1 of loud" {
		t.Errorf("got %v, and the snapshot %v", events, local.view.snapshot())
	}
	events := put("2", "loud", "3")
	if len(events) != 1 || shown(events[0].Result) != "2 of loud" || shown(events[0].Old) != "1 of loud" {
		t.Errorf("got %v", events)
	}
	// By a stream it is the same.
	obj := configMap("a", "x", "2")
	obj["data"].(map[string]any)["noise"] = "silent"
	if ev, changed := local.view.put(objectKey{"a", "x"}, 4, local.view.run(obj), time.Time{}, false); changed || shown(local.view.snapshot()[0]) != "2 of silent" {
		t.Errorf("got %v, and the snapshot %v", ev, local.view.snapshot())
	}
	out, plain := local.view.run(obj), newView(configMaps("w")).run(obj)
	if size := weigh(obj); out.size < size || out.size > 2*size+plain.size {
		t.Errorf("the object of %d bytes is counted as %d", size, out.size)
	}
}
