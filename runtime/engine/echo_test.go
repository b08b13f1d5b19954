package engine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine/causes"
)

// patches has a hook write something else each time to a Node, as long as it is to.
func (w *world) patches(hook, node string, again *bool) {
	w.hooks[hook] = func(RunHook) (effect.Effects, error) {
		if !*again {
			return effect.Effects{}, nil
		}
		return effect.Effects{Writes: []effect.Write{{Kind: effect.WritePatch, Ref: effect.Ref{APIVersion: "v1", Kind: "Node", Name: node}}}}, nil
	}
}

// answers has the API server answer each write with an event, for a while: watches are those
// that see it, by hook.
func (w *world) answers(d time.Duration, watches map[string]string) {
	heard := len(w.runs) - 1
	for end := w.now.Add(d); w.now.Before(end); w.advance(time.Second) {
		for range 100 { // as fast as they come
			if heard >= len(w.runs) {
				break
			}
			for ; heard < len(w.runs); heard++ {
				hook, _, _ := strings.Cut(w.runs[heard], " ")
				if id := watches[hook]; id != "" {
					w.heard(id, "a")
				}
			}
		}
	}
}

// A hook that writes something else each time to the object that it watches is slowed
// down, and the status says so; a change by somebody else has it run at once.
func TestAHookThatWakesItself(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("a", onWatch("nodes"))))
	again := true
	w.patches("web/a", "a", &again)
	w.start()
	w.answers(time.Hour, map[string]string{"web/a": "web/a#nodes"})
	if len(w.runs) > causes.MaxEchoes+30 {
		t.Errorf("%d runs in an hour", len(w.runs))
	}
	if problems := strings.Join(w.module("web").Problems, "\n"); !strings.Contains(problems, "a: wakes itself: it writes Node a, which the k8s.watch of ") {
		t.Errorf("problems: %q", problems)
	}
	before := len(w.runs)
	w.in(WatchChanged{ID: "web/a#nodes", Events: []builtins.Event{{Type: "modified", Binding: "nodes", Name: "b"}}})
	if len(w.runs) != before+1 {
		t.Error("news have to wait")
	}
	again = false
	w.heard("web/a#nodes", "a")
	w.advance(time.Hour)
	if problems := w.module("web").Problems; len(problems) > 0 {
		t.Errorf("problems: %v", problems)
	}
}

// Hooks that wake each other are slowed down as one that wakes itself; one that only sees
// what they write is not.
func TestHooksThatWakeEachOther(t *testing.T) {
	w := newWorld(t, mod("db", isOn(), hk("b", onWatch("nodes"))), mod("log", isOn(), hk("c", onWatch("nodes"))), mod("web", isOn(), hk("a", onWatch("nodes"))))
	again, never := true, false
	w.patches("web/a", "a", &again)
	w.patches("db/b", "a", &again)
	w.patches("log/c", "a", &never)
	w.start()
	ring := map[string]string{"web/a": "db/b#nodes", "db/b": "web/a#nodes"}
	w.runs = []string{"web/a sync"}
	w.in(WatchChanged{ID: "db/b#nodes", Events: []builtins.Event{{Type: "modified", Binding: "nodes", Name: "a"}}})
	w.answers(time.Hour, ring)
	if len(w.runs) > 3*causes.MaxEchoes+60 {
		t.Errorf("%d runs in an hour", len(w.runs))
	}
	problems := strings.Join(slices.Concat(w.module("web").Problems, w.module("db").Problems), "\n")
	if !strings.Contains(problems, "wakes itself by way of ") || !strings.Contains(problems, " writes Node a, which the k8s.watch of ") {
		t.Errorf("problems: %q", problems)
	}
	before := len(w.runs)
	w.heard("log/c#nodes", "a")
	if len(w.runs) != before+1 {
		t.Error("who only sees the ring has to wait")
	}
	if problems := w.module("log").Problems; len(problems) > 0 {
		t.Errorf("problems of who only sees the ring: %v", problems)
	}
	again = false
	w.advance(time.Hour)
	for _, name := range []string{"web", "db"} {
		if problems := w.module(name).Problems; len(problems) > 0 {
			t.Errorf("problems of %s once it has ended: %v", name, problems)
		}
	}
}

// A ring may go by way of values and the hooks of a release.
func TestAHookThatWakesItselfByWayOfARelease(t *testing.T) {
	w := newWorld(t, mod(globalName, isOn(), hk("g", onWatch("nodes"))), mod("web", isOn(), hk("a", onAfter())))
	n := 0
	w.hooks["global/g"] = func(RunHook) (effect.Effects, error) { n++; return set("global.n", n), nil }
	again := true
	w.patches("web/a", "a", &again)
	w.start()
	w.answers(time.Hour, map[string]string{"web/a": "global/g#nodes"})
	if n > 3*causes.MaxEchoes {
		t.Errorf("%d runs in an hour", n)
	}
	if failures := w.e.Failures(); len(failures) != 1 || !strings.Contains(failures[0].Reason, "wakes itself by way of web/a") {
		t.Errorf("failures: %+v", failures)
	}
}

// A hook that puts an object right each time somebody else has changed it does not wake
// itself, however often that happens; nor does one that follows what others write there,
// whether or not it sees what it writes.
func TestAHookThatCorrectsOthersDoesNotWakeItself(t *testing.T) {
	for _, sees := range []bool{true, false} {
		w := newWorld(t, mod("web", isOn(), hk("a", onWatch("nodes"))))
		again := true
		w.patches("web/a", "a", &again)
		w.start()
		for i := range 3 * causes.MaxEchoes {
			before := len(w.runs)
			again = true
			w.changed("web/a#nodes") // by somebody else
			if len(w.runs) != before+1 {
				t.Fatalf("change %d has to wait: %v", i, w.module("web").Problems)
			}
			if again = false; sees {
				w.heard("web/a#nodes", "a")
			}
		}
		if problems := w.module("web").Problems; len(problems) > 0 {
			t.Errorf("problems: %v", problems)
		}
	}
}

// An event may come before the answer to the write that it tells of.
func TestAnEventBeforeTheAnswerToItsWrite(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("a", onWatch("nodes"))))
	again := true
	w.patches("web/a", "a", &again)
	w.early = func() {
		w.in(WatchChanged{ID: "web/a#nodes", Events: []builtins.Event{{Type: "modified", Binding: "nodes", Name: "a"}}})
	}
	w.start()
	w.advance(time.Hour)
	if len(w.runs) > causes.MaxEchoes+30 {
		t.Errorf("%d runs in an hour", len(w.runs))
	}
}
