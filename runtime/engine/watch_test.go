package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/lane"
)

// watching is a watch on v1 Node, changed by edit.
func watching(name string, edit func(*builtins.WatchBinding)) builtins.Binding {
	b := onWatch(name)
	edit(b.Watch)
	return b
}

func quiet(b *builtins.WatchBinding)    { b.Quiet = true }
func required(b *builtins.WatchBinding) { b.Require = true }
func silent(b *builtins.WatchBinding)   { b.Events = []string{} }

// tell tells of one change of each type given.
func (w *world) tell(id string, types ...string) {
	w.t.Helper()
	var events []builtins.Event
	for _, typ := range types {
		events = append(events, builtins.Event{Type: typ, Binding: WatchBinding(id), Name: "a"})
	}
	w.in(WatchChanged{ID: id, Events: events})
}

func TestWatchEventsThatTrigger(t *testing.T) {
	for _, tc := range []struct {
		name   string
		events []string
		want   []string
	}{
		{"all", nil, []string{"web/a added", "web/a modified", "web/a deleted", "web/a added,modified,deleted"}},
		{"some", []string{"added", "deleted"}, []string{"web/a added", "web/a deleted", "web/a added,deleted"}},
		{"none", []string{}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, mod("web", isOn(), hk("a", watching("nodes", func(b *builtins.WatchBinding) { b.Events = tc.events }))))
			w.start()
			w.wantRuns("web/a sync")
			w.tell("web/a#nodes", "added")
			w.tell("web/a#nodes", "modified")
			w.tell("web/a#nodes", "deleted")
			w.tell("web/a#nodes", "added", "modified", "deleted")
			w.wantRuns(tc.want...)
			w.wantReleased("web#1")
		})
	}
}

func TestWatchWithoutSyncIsNoGate(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("a", watching("nodes", quiet))))
	w.unsynced["web/a#nodes"] = true
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) { return effect.Effects{}, errBoom }
	w.start()
	w.wantReleased("web#1") // not even its snapshot is waited for
	w.in(WatchSynced{ID: "web/a#nodes", Served: true})
	w.wantRuns()
	w.tell("web/a#nodes", "added")
	w.wantRuns("web/a added")
	w.state("web", status.ModuleReady, "")
}

// The chart does not wait for a watch that says so; its first run comes all the same.
func TestWatchWithoutGate(t *testing.T) {
	late := func(b *builtins.WatchBinding) { b.NoGate = true }
	w := newWorld(t, mod("web", isOn(), hk("a", watching("nodes", late))))
	w.unsynced["web/a#nodes"] = true
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) { return set("n", int64(1)), nil }
	w.start()
	w.wantReleased("web#1")
	w.wantRuns()
	w.in(WatchSynced{ID: "web/a#nodes", Served: true})
	w.wantRuns("web/a sync")
	w.wantReleased("web#1", "web#2")

	w = newWorld(t, mod("web", isOn(), hk("a", watching("nodes", late), onWatch("pods"))))
	w.unsynced["web/a#nodes"] = true
	w.start()
	w.wantReleased() // the other watch has a run, which needs both snapshots
	w.in(WatchSynced{ID: "web/a#nodes", Served: true})
	w.wantReleased("web#1")
}

func TestWatchWithoutSyncBesideOthers(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("a", watching("quiet", quiet), onWatch("loud"))))
	w.unsynced["web/a#quiet"] = true
	w.start()
	w.wantRuns()
	w.wantReleased()
	w.in(WatchSynced{ID: "web/a#quiet", Served: true})
	w.wantRuns("web/a sync")
	w.wantReleased("web#1")
}

// TestKindThatComesAndGoesIsAChange: what comes with a kind has no events,
// so that a sync must stand for it, also where the first one does not trigger.
func TestKindThatComesAndGoesIsAChange(t *testing.T) {
	for _, tc := range []struct {
		name string
		edit func(*builtins.WatchBinding)
		want [][]string // first, served, gone, served again
	}{
		{"default", func(*builtins.WatchBinding) {}, [][]string{{"web/a sync"}, {"web/a sync"}, {"web/a sync"}, {"web/a sync"}}},
		{"quiet", quiet, [][]string{nil, {"web/a sync"}, {"web/a sync"}, {"web/a sync"}}},
		{"snapshot only", silent, [][]string{{"web/a sync"}, {"web/a sync"}, nil, nil}},
		{"quiet, deletions", func(b *builtins.WatchBinding) { b.Quiet, b.Events = true, []string{"deleted"} }, [][]string{nil, nil, {"web/a sync"}, nil}},
		{"required", required, [][]string{nil, {"web/a sync"}, nil, {"web/a sync"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, mod("web", isOn(), hk("a", watching("nodes", tc.edit))))
			w.unsynced["web/a#nodes"] = true
			w.start()
			for i, served := range []bool{false, true, false, true} {
				w.in(WatchSynced{ID: "web/a#nodes", Served: served})
				got := w.runs
				w.runs = nil
				if !slices.Equal(got, tc.want[i]) {
					t.Errorf("step %d: runs %v, want %v", i, got, tc.want[i])
				}
			}
		})
	}
}

func TestRequiredKindHoldsHookAndGate(t *testing.T) {
	later := isOn()
	later.After = []string{"web"}
	w := newWorld(t,
		mod("web", isOn(), hk("a", onStartup(0), watching("nodes", required)), hk("b", onStartup(1))),
		mod("crds", later))
	w.unsynced["web/a#nodes"] = true
	w.start()
	w.in(WatchSynced{ID: "web/a#nodes", Served: false})
	// Nobody else is held back: not the hooks behind it, not the modules.
	w.wantRuns("web/b startup")
	w.wantReleased("crds#1")
	w.state("web", status.ModuleWaiting, "hook a waits for v1/Node, which is not served")
	if ready, why := w.e.Ready(); !ready {
		t.Errorf("not ready: %s", why)
	}
	for _, h := range w.e.Status().Hooks {
		if h.ID == "web/a" && (h.State != status.HookWaiting || !slices.Equal(h.NotServed, []string{"v1/Node"})) {
			t.Errorf("hook a is %s, not served %v", h.State, h.NotServed)
		}
	}
	w.in(WatchSynced{ID: "web/a#nodes", Served: true})
	w.wantRuns("web/a startup,sync")
	w.wantReleased("crds#1", "web#1")
	w.state("web", status.ModuleReady, "")

	// The kind goes away: the hook waits, the gate stays open.
	w.tell("web/a#nodes", "deleted")
	w.wantRuns("web/a deleted")
	w.in(WatchSynced{ID: "web/a#nodes", Served: false})
	w.tell("web/a#nodes", "deleted")
	w.wantRuns()
	w.state("web", status.ModuleReady, "")
	w.in(WatchSynced{ID: "web/a#nodes", Served: true})
	w.wantRuns("web/a deleted,sync")
}

func TestRequiredKindWithoutSyncHoldsTheGateUntilServed(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("a", watching("nodes", func(b *builtins.WatchBinding) { b.Quiet, b.Require = true, true }))))
	w.unsynced["web/a#nodes"] = true
	w.start()
	w.state("web", status.ModuleStarting, "waits for hook a")
	w.in(WatchSynced{ID: "web/a#nodes", Served: false})
	w.state("web", status.ModuleWaiting, "waits for v1/Node")
	w.in(WatchFailed{ID: "web/a#nodes", Reason: "not allowed"})
	w.state("web", status.ModuleFailed, "not allowed")
	w.in(WatchFailed{ID: "web/a#nodes"})
	w.wantReleased()
	w.in(WatchSynced{ID: "web/a#nodes", Served: true})
	w.wantRuns() // sync=False: no run, and none is waited for
	w.wantReleased("web#1")
}

func TestKindRequiredByGlobalHookHoldsFirstInstalls(t *testing.T) {
	w := newWorld(t, mod("global", isOn(), hk("g", watching("nodes", required))), mod("web", isOn()))
	w.unsynced["global/g#nodes"] = true
	w.start()
	w.in(WatchSynced{ID: "global/g#nodes", Served: false})
	w.state("web", status.ModuleBlocked, "not installed while global hook global/g")
	w.in(WatchSynced{ID: "global/g#nodes", Served: true})
	w.wantReleased("web#1")
}

// A filter that fails on one object after the other has a new error with each: the status
// has the last one, the log a line a minute.
func TestAnErrorThatChangesIsNotLoggedEachTime(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("a", onWatch("nodes"))))
	w.start()
	lines := 0
	fail := func(n int) {
		w.now = w.now.Add(time.Second)
		for _, a := range w.e.Handle(w.now, WatchFailed{ID: "web/a#nodes", Reason: fmt.Sprintf("the filter fails on Node n (and on %d more)", n)}) {
			if note, ok := a.(Note); ok && strings.Contains(note.Message, "the filter fails") {
				lines++
			}
		}
	}
	for n := range 50 {
		fail(n)
	}
	w.state("web", status.ModuleReady, "")
	if h := w.e.Status().Hooks[0]; lines != 1 || !strings.Contains(fmt.Sprint(h), "and on 49 more") {
		t.Errorf("%d lines, the status says %+v", lines, h)
	}
	for n := range 30 {
		fail(n)
	}
	if lines != 2 {
		t.Errorf("%d lines in 80 seconds", lines)
	}
}

// A watch that is complete once more has been stopped meanwhile: objects may have gone as well
// as come, and no event tells of them.
func TestAWatchThatIsCompleteAgainTellsOfWhatItHasMissed(t *testing.T) {
	for events, want := range map[string][]string{"added": {"web/a sync"}, "deleted": {"web/a sync"}, "": nil} {
		b := onWatch("nodes")
		b.Watch.Events = slices.DeleteFunc([]string{events}, func(e string) bool { return e == "" })
		w := newWorld(t, mod("web", isOn(), hk("a", b)))
		w.start()
		w.runs = nil
		w.in(WatchFailed{ID: "web/a#nodes", Reason: "stopped", Lacks: true})
		w.in(WatchFailed{ID: "web/a#nodes"})
		w.in(WatchSynced{ID: "web/a#nodes", Served: true})
		w.wantRuns(want...)
	}
}

// An object that changes while its hook fails, or waits for another watch, has the newest event of each type wait: each
// may hold a whole version of it. The run is still told what the first of them has replaced.
func TestOneVersionOfAnObjectWaits(t *testing.T) {
	for name, key := range map[string]string{"a hook": "", "an object of for_each": "x"} {
		h := hk("a", onWatch("nodes"))
		if key != "" {
			h = eachHook("a", false)
		}
		w := newWorld(t, mod("web", isOn(), h))
		w.objects["x"] = Object{Name: "x"}
		var ran []builtins.Event
		fails := true
		w.hooks["web/a"] = func(a RunHook) (effect.Effects, error) {
			if ran = a.Events; fails {
				return effect.Effects{}, errBoom
			}
			return effect.Effects{}, nil
		}
		w.start()
		for i := range 900 {
			w.in(WatchChanged{ID: eachID, Events: []builtins.Event{{Type: "modified", Binding: "nodes", Name: "x", Result: starlark.MakeInt(i), Old: starlark.MakeInt(i - 1)}}})
			if i%300 == 0 {
				w.advance(2 * time.Second)
			}
		}
		if n := len(w.e.modules["web"].hooks[0].lane.Pending(lane.ID{Group: "web/a", Key: key})); n > 20 {
			t.Errorf("%s: %d events wait for it", name, n)
		}
		fails = false
		w.advance(time.Minute)
		first, last := ran[slices.IndexFunc(ran, func(ev builtins.Event) bool { return ev.Type == "modified" })], ran[len(ran)-1]
		if first.Old != starlark.MakeInt(-1) || last.Result != starlark.MakeInt(899) || len(ran) > 20 {
			t.Errorf("%s: told of %v to %v by %d events", name, first.Old, last.Result, len(ran))
		}
	}
}
