package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/reconcile"
)

const readsID = "web/a#reads-pods"

func reader(digest string) *generation.Hook {
	h := code(digest, eachHook("a", false))
	h.Controller = &builtins.ControllerDecl{}
	pods := onWatch("reads-pods")
	pods.Watch.Kind, pods.Watch.Read = "Pod", "pods"
	h.Bindings = append(h.Bindings, pods)
	return h
}

// readers is a module with a controller that has a parent for each of these lookups, by name.
func readers(t *testing.T, looks map[string]string) *world {
	w := newWorld(t, mod("web", isOn(), reader("1")))
	w.looks, w.due = map[string][]effect.Lookup{}, map[string]time.Time{}
	for name, places := range looks {
		w.objects[name] = Object{Name: name}
		w.looks[name] = placesAt(places)
	}
	w.start()
	w.runs = nil
	return w
}

func placesAt(places string) (out []effect.Lookup) {
	for _, at := range strings.Fields(places) {
		l := effect.Lookup{Watch: "reads-pods", At: at}
		if at == "values" {
			l = effect.Lookup{At: effect.Everywhere}
		}
		out = append(out, l)
	}
	return out
}

func pod(name string, index ...string) builtins.Event {
	return builtins.Event{Type: "modified", Binding: "reads-pods", Namespace: "a", Name: name, Wakes: effect.WakesKeys(index...)}
}

func (w *world) pods(events ...builtins.Event) {
	w.in(WatchChanged{ID: readsID, Events: events})
}

func TestRowsWakeThoseThatHaveLooked(t *testing.T) {
	w := readers(t, map[string]string{"name": "/a/p", "zone": "zone=x", "all": "*", "values": "values", "none": ""})
	w.pods(pod("p", "zone=y"))
	w.ran("web/a[all] modified; web/a[name] modified")
	w.pods(pod("q", "zone=x", "zone=y"))
	w.ran("web/a[all] modified; web/a[zone] modified")
	var many []builtins.Event
	for i := range 50 {
		many = append(many, pod(fmt.Sprint("m", i)))
	}
	w.pods(append(many, pod("p"))...)
	w.ran("web/a[all] sync; web/a[name] sync")
	w.in(Config{State: ConfigPresent, Data: map[string]string{"webEnabled": "true", "web": "color: blue\n"}})
	w.ran("web/a[values] values")

	// Where the last run has looked counts.
	w.looks["all"], w.looks["none"] = nil, placesAt("/a/p")
	w.happens("modified", "all")
	w.happens("modified", "none")
	w.ran("web/a[all] modified; web/a[none] modified")
	w.pods(pod("p"))
	w.ran("web/a[name] modified; web/a[none] modified")
	w.happens("deleted", "none")
	delete(w.objects, "name")
	w.in(WatchSynced{ID: "web/a#nodes", Served: true, Objects: []Object{{Name: "all"}}})
	w.runs = nil
	w.pods(pod("p"))
	w.ran("")
	if got := w.e.modules["web"].hooks[0].lookups.Move("reads-pods", []string{"/a/p", "zone=x"}, 0, false); len(got) > 0 {
		t.Errorf("%v are gone, and not forgotten", got)
	}
}

// A row that moves while a run is under way may have come too late for it.
func TestRowsMoveDuringARun(t *testing.T) {
	w := readers(t, map[string]string{"x": ""})
	for what, c := range map[string]struct {
		move  func()
		again string
	}{
		"where it looks": {func() { w.pods(pod("p")) }, "web/a[x] modified"},
		"elsewhere":      {func() { w.pods(pod("q", "zone=y")) }, ""},
		"the values": {func() {
			w.in(Config{State: ConfigPresent, Data: map[string]string{"webEnabled": "true", "web": "n: 1\n"}})
		}, "web/a[x] values"},
	} {
		w.looks["x"] = nil
		w.happens("modified", "x")
		w.hold, w.looks["x"], w.runs = "web/a", placesAt("/a/p values"), nil
		w.happens("modified", "x")
		w.ran("web/a[x] modified")
		w.hold = ""
		c.move()
		run := w.held["web/a"][0].(RunHook)
		w.in(RunDone{Run: run.Run, Lookups: w.looks["x"]})
		if got := strings.Join(w.runs, "; "); got != c.again {
			t.Errorf("%s: ran %q, want %q", what, got, c.again)
		}
		w.runs = nil
	}
}

// A reload, and a module that is off for a while, have all parents look anew.
func TestLookupsOfAnotherLife(t *testing.T) {
	w := readers(t, map[string]string{"x": "/a/p", "y": ""})
	w.reload(mod("web", isOn(), reader("2")))
	w.ran("web/a[x] sync,sync; web/a[y] sync,sync")
	w.pods(pod("p"))
	w.ran("web/a[x] modified")
	for _, on := range []string{"false", "true"} {
		w.in(Config{State: ConfigPresent, Data: map[string]string{"webEnabled": on}})
	}
	w.ran("web/a[x] sync,sync; web/a[y] sync,sync")
	w.in(WatchChanged{ID: w.e.Watches("web", "web/a")["reads-pods"], Events: []builtins.Event{pod("p")}})
	w.ran("web/a[x] modified")
}

// People are told where a parent has looked. A value that may come out of a Secret, or of the values, is left out.
func TestPeopleAreToldWhereAParentHasLooked(t *testing.T) {
	w := readers(t, map[string]string{"x": "/a/p zone=x", "y": "values zone=x *", "z": "values zone=x", "none": ""})
	told := func(name string) string {
		parents, err := w.e.Parents("web", name)
		if err != nil || len(parents) != 1 {
			t.Fatal(parents, err)
		}
		return strings.Join(parents[0].Looked, "; ")
	}
	for name, want := range map[string]string{
		"x": `ctx.reads.pods.get("a/p"); ctx.reads.pods.by("zone", "x")`, "y": "values; ctx.reads.pods.all()",
		"z": `values; ctx.reads.pods.by("zone", …)`, "none": "",
	} {
		if got := told(name); got != want {
			t.Errorf("%s: told %s, want %s", name, got, want)
		}
	}
	w.e.modules["web"].hooks[0].gen.Bindings[1].Watch.Kind = "Secret"
	if got := told("x"); got != `ctx.reads.pods.get("a/p"); ctx.reads.pods.by("zone", …)` {
		t.Errorf("told %s", got)
	}
}

func TestATimeThatAControllerAsksFor(t *testing.T) {
	w := readers(t, map[string]string{"x": "", "y": ""})
	at := w.now.Add(time.Minute)
	w.due["x"] = at
	w.happens("modified", "x")
	w.runs = nil
	if parents, err := w.e.Parents("web", "x"); err != nil || parents[0].Next == nil || !parents[0].Next.Equal(at) {
		t.Errorf("people are told %+v, %v", parents, err)
	}
	w.advance(59 * time.Second)
	w.ran("")
	delete(w.due, "x")
	w.advance(time.Second)
	w.ran("web/a[x] requeue")
	if parents, err := w.e.Parents("web", "x"); err != nil || parents[0].Next != nil {
		t.Errorf("people are told %+v, %v", parents, err)
	}
	w.advance(time.Hour)
	w.ran("")

	// Another run, which does not ask, and one that has failed for good.
	w.due["x"] = w.now.Add(time.Minute)
	w.happens("modified", "x")
	delete(w.due, "x")
	w.happens("modified", "x")
	w.runs = nil
	w.advance(time.Hour)
	w.ran("")
	w.due["x"] = w.now.Add(time.Minute)
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) {
		return effect.Effects{}, &builtins.FailError{Msg: "not yet", Permanent: true}
	}
	w.happens("modified", "x")
	w.hooks["web/a"], w.runs = nil, nil
	delete(w.due, "x")
	w.advance(time.Minute)
	w.ran("web/a[x] modified,requeue")

	// One that waits for its next try is tried once the time has come.
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) { return effect.Effects{}, errors.New("boom") }
	w.happens("modified", "x")
	for range 8 {
		w.advance(5 * time.Minute)
	}
	w.due["x"] = w.now.Add(7 * time.Minute)
	w.advance(5 * time.Minute)
	w.runs, w.hooks["web/a"] = nil, nil
	delete(w.due, "x")
	w.advance(2 * time.Minute)
	w.ran("web/a[x] modified,requeue")
}

// The sooner of a time and of requeue counts, and not too many runs are made by times.
func TestTimesAndRequeues(t *testing.T) {
	w := readers(t, map[string]string{"x": ""})
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) { return effect.Effects{Requeue: time.Second}, nil }
	w.due["x"] = w.now.Add(time.Minute)
	w.happens("modified", "x")
	w.runs = nil
	w.advance(time.Second)
	w.ran("web/a[x] requeue")
	w.due["x"] = w.now.Add(time.Nanosecond)
	w.happens("modified", "x")
	w.runs, w.hooks["web/a"] = nil, nil
	delete(w.due, "x")
	w.advance(minLook - 1)
	w.ran("")
	w.advance(1)
	w.ran("web/a[x] requeue")
}

// Of a kind that is read and is not served any more nobody knows the rows: runs know that, so nothing is
// deleted. A parent that is being deleted goes, unless its cleanup looks there.
func TestAKindThatIsReadIsNotServedAnyMore(t *testing.T) {
	w := readers(t, map[string]string{"x": "rows"})
	var unsynced []reconcile.Kind
	w.seen = func(a RunHook) {
		unsynced = a.Unsynced
		w.waits = reconcile.Unsure(a.Unsynced)
		if len(a.Unserved) != 1 || !strings.HasSuffix(readsID, "#"+a.Unserved[0]) {
			t.Errorf("unserved %v of a cleanup: %t", a.Unserved, a.Cleanup)
		}
	}
	w.in(WatchSynced{ID: readsID})
	if len(w.runs) == 0 || len(unsynced) != 1 || unsynced[0].Kind != "Pod" {
		t.Errorf("runs %v, unsynced %v", w.runs, unsynced)
	}
	w.happens("deleted", "x")
	w.advance(time.Hour)
	if _, there := w.objects["x"]; there {
		t.Error("the parent is still there")
	}
}
