package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
)

const childrenID = "web/a#children"

// parents is a module whose hook has runs for objects, and watches their children.
func parents(t *testing.T, names ...string) *world {
	h := eachHook("a", false)
	h.Bindings = append(h.Bindings, onWatch("children"))
	w := newWorld(t, mod("web", isOn(), h))
	for _, name := range names {
		w.objects[name] = Object{Name: name}
	}
	w.start()
	w.runs = nil
	return w
}

func child(name string, wakes *effect.Wakes) builtins.Event {
	return builtins.Event{Type: "modified", Binding: "children", Name: name, Wakes: wakes}
}

func (w *world) children(events ...builtins.Event) {
	w.in(WatchChanged{ID: childrenID, Events: events})
}

func TestAnEventWakesWhomItIsFor(t *testing.T) {
	x, y, both := effect.WakesKeys("x"), effect.WakesKeys("y"), effect.WakesKeys("x", "y")
	many := func(n int, wakes *effect.Wakes) (out []builtins.Event) {
		for i := range n {
			out = append(out, child(fmt.Sprint("c", i), wakes))
		}
		return out
	}
	for name, c := range map[string]struct {
		events []builtins.Event
		want   string
	}{
		"one":                 {[]builtins.Event{child("c", x)}, "web/a[x] modified"},
		"a move":              {[]builtins.Event{child("c", both)}, "web/a[x] modified; web/a[y] modified"},
		"an unknown key":      {[]builtins.Event{child("c", effect.WakesKeys("nobody", ""))}, ""},
		"nobody":              {[]builtins.Event{child("c", effect.WakesKeys())}, ""},
		"all":                 {[]builtins.Event{child("c", nil)}, "web/a[x] modified; web/a[y] modified; web/a[z] modified"},
		"one after the other": {[]builtins.Event{child("c", x), child("d", y), child("e", x)}, "web/a[x] modified,modified; web/a[y] modified"},
		"some for all":        {[]builtins.Event{child("c", x), child("d", nil)}, "web/a[x] modified,modified; web/a[y] modified; web/a[z] modified"},
		"many for one":        {many(50, x), "web/a[x] " + strings.Repeat("modified,", 49) + "modified"},
		"many for all":        {append(many(11, nil), child("c", x)), "web/a[x] modified,sync; web/a[y] sync; web/a[z] sync"},
	} {
		w := parents(t, "x", "y", "z")
		w.hooks["web/a"] = func(r RunHook) (effect.Effects, error) {
			if slices.ContainsFunc(r.Events, func(ev builtins.Event) bool { return ev.Wakes != nil }) {
				t.Errorf("%s: a run hears whom its event is for: %+v", name, r.Events)
			}
			return effect.Effects{}, nil
		}
		w.children(c.events...)
		if got := sorted(w.runs); got != c.want {
			t.Errorf("%s: runs %q, want %q", name, got, c.want)
		}
	}
}

// An event has the failed run of that object tried again, and no other.
func TestAnEventRetriesItsOwnObject(t *testing.T) {
	w := parents(t, "x", "y")
	fails := true
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) {
		if fails {
			return effect.Effects{}, &builtins.FailError{Msg: "wrong", Permanent: true}
		}
		return effect.Effects{}, nil
	}
	w.children(child("c", nil))
	w.ran("web/a[x] modified; web/a[y] modified")
	fails = false
	w.children(child("c", effect.WakesKeys("x")))
	w.advance(time.Hour)
	w.ran("web/a[x] modified,modified")
	w.children(child("c", nil))
	w.advance(time.Hour)
	w.ran("web/a[x] modified; web/a[y] modified,modified")
}

// Nothing of it is kept: after a restart each object has its first run, and then events are as exact.
func TestEventsAreExactAfterARestart(t *testing.T) {
	w := parents(t, "x", "y")
	w.start()
	w.ran("web/a[x] sync,sync; web/a[y] sync,sync")
	w.children(builtins.Event{Type: "deleted", Binding: "children", Name: "c", Wakes: effect.WakesKeys("y")})
	w.ran("web/a[y] deleted")
}

// Other wakes are another watch: each object has a run once that is complete, so that nothing of the
// time between is missed. Events of the one before count for nothing.
func TestAReloadOfWakes(t *testing.T) {
	with := func(digest, wakes string) *builtins.WatchBinding {
		return &builtins.WatchBinding{APIVersion: "v1", Kind: "Node", WakesID: wakes, WakesAll: digest == "3"}
	}
	w := parents(t, "x", "y")
	for _, digest := range []string{"1", "2", "3"} {
		before := w.e.Watches("web", "web/a")
		h := eachHook("a", false)
		h.Bindings = append(h.Bindings, builtins.Binding{Name: "children", Watch: with(digest, "of "+digest)})
		w.reload(mod("web", isOn(), code(digest, h)))
		after := w.e.Watches("web", "web/a")
		if before["children"] == after["children"] || before["nodes"] != after["nodes"] {
			t.Errorf("%s: the watches are %v, they were %v", digest, after, before)
		}
		w.ran("web/a[x] sync,sync; web/a[y] sync,sync")
		w.in(WatchChanged{ID: before["children"], Events: []builtins.Event{child("c", effect.WakesKeys("x"))}})
		w.ran("")
		w.in(WatchChanged{ID: after["children"], Events: []builtins.Event{child("c", effect.WakesKeys("y"))}})
		w.ran("web/a[y] modified")
	}
}

// Objects come and go, and events are for some of them, for all, or for nobody that is there: each
// object hears of all that is for it, in order, and of nothing else.
func TestRandomEventsWakeWhomTheyAreFor(t *testing.T) {
	names := []string{"p0", "p1", "p2", "p3"}
	for seed := range seeds(200) {
		r := rand.New(rand.NewPCG(seed, 12))
		w := parents(t, "p0", "p1")
		got := map[string][]string{}
		w.hooks["web/a"] = func(a RunHook) (effect.Effects, error) {
			for _, ev := range a.Events {
				if ev.Binding == "children" {
					got[a.Key] = append(got[a.Key], ev.Name)
				}
			}
			return effect.Effects{}, nil
		}
		want := map[string][]string{}
		for step := range 50 {
			if name := names[r.IntN(len(names))]; r.IntN(4) == 0 {
				if _, there := w.objects[name]; there {
					w.happens("deleted", name)
				} else {
					w.happens("added", name)
				}
			}
			var events []builtins.Event
			for i := range 1 + r.IntN(5) {
				ev := child(fmt.Sprint(step, ".", i), nil)
				if r.IntN(4) > 0 {
					ev.Wakes = effect.WakesKeys(names[r.IntN(4)], names[r.IntN(4)])
				}
				for _, name := range names {
					if _, there := w.objects[name]; there && (ev.Wakes == nil || slices.Contains(ev.Wakes.Keys, name)) {
						want[name] = append(want[name], ev.Name)
					}
				}
				events = append(events, ev)
			}
			w.children(events...)
		}
		for _, name := range names {
			if !slices.Equal(got[name], want[name]) {
				t.Fatalf("seed %d: %s has heard of %v, want %v", seed, name, got[name], want[name])
			}
		}
	}
}
