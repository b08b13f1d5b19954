package engine

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
)

// A review sees what a run would see; the engine says so again when that changes, and at
// no other time.
func TestReviewsArePublished(t *testing.T) {
	onReview := builtins.Binding{Name: "v", Admission: &builtins.AdmissionBinding{}}
	guard := hk("guard", onReview, onWatch("nodes"))
	w := newWorld(t, mod("web", builtins.ModuleDecl{}, guard), mod("shop", isOn()), mod(globalName, isOn(), hk("sets", onWatch("zones"))))
	request := &builtins.Request{Binding: "v"}
	answer := func(steps string, want string) {
		t.Helper()
		if len(w.reviews) == 0 {
			t.Errorf("%s: nothing is published", steps)
			return
		}
		last := w.reviews[len(w.reviews)-1]
		w.reviews = nil
		run, err := last.Answer(7, w.now, request)
		got := fmt.Sprint(err)
		if err == nil {
			view, err := run.Values.Compose(nil)
			got = fmt.Sprint(view, run.Config, run.State, run.SecretTexts(), run.Watches, err)
			if run.Run != 7 || run.Request != request || run.Attempt != 1 || run.Now != w.now || run.Generation != w.gen || len(run.Events) != 1 {
				t.Errorf("%s: run %+v", steps, run)
			}
		} else if !errors.Is(err, ErrNotReady) {
			t.Errorf("%s: %v", steps, err)
		}
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", steps, got, want)
		}
	}
	quiet := func(steps string) {
		t.Helper()
		if len(w.reviews) > 0 {
			t.Errorf("%s: published %v", steps, w.reviews)
		}
		w.reviews = nil
	}
	w.unsynced["web/guard#nodes"] = true
	w.start()
	answer("the module is off", "hook web/guard: module web is not running: it does not answer now")

	w.in(Config{State: ConfigPresent, Data: map[string]string{"webEnabled": "true"}})
	answer("a watch lists", "hook web/guard: its snapshots are not complete: it does not answer now")
	w.in(WatchSynced{ID: "web/guard#nodes", Served: true})
	answer("the module runs", "map[global:map[] replicas:1] map[] map[] [] map[nodes:web/guard#nodes] <nil>")

	w.changed("web/guard#nodes")
	w.in(Config{State: ConfigPresent, Data: map[string]string{"webEnabled": "true", "web": "replicas: 2"}})
	answer("the user sets a value", "map[global:map[] replicas:2] map[replicas:2] map[] [] map[nodes:web/guard#nodes] <nil>")

	w.hooks["web/guard"] = func(RunHook) (effect.Effects, error) {
		return effect.Effects{Memory: effect.Memory{State: map[string]any{"token": "s3cret"}, StateSecrets: [][]string{{"token"}}}}, nil
	}
	w.changed("web/guard#nodes")
	answer("the hook remembers something", "map[global:map[] replicas:2] map[replicas:2] map[token:s3cret] [s3cret] map[nodes:web/guard#nodes] <nil>")
	w.changed("web/guard#nodes")
	quiet("the hook remembers the same")

	w.hooks["global/sets"] = func(RunHook) (effect.Effects, error) { return set("global.zone", "zone-b"), nil }
	w.in(WatchChanged{ID: "global/sets#zones", Events: []builtins.Event{{Type: "modified", Binding: "zones", Name: "a"}}})
	answer("a global value changes", "map[global:map[zone:zone-b] replicas:2] map[replicas:2] map[token:s3cret] [s3cret] map[nodes:web/guard#nodes] <nil>")
	w.hooks["global/sets"] = func(RunHook) (effect.Effects, error) {
		effects := set("global.zone", "zone-b")
		effects.Values[0].Secrets = [][]string{{}}
		return effects, nil
	}
	w.in(WatchChanged{ID: "global/sets#zones", Events: []builtins.Event{{Type: "modified", Binding: "zones", Name: "a"}}})
	answer("a global value is a secret now", "map[global:map[zone:zone-b] replicas:2] map[replicas:2] map[token:s3cret] [zone-b s3cret] map[nodes:web/guard#nodes] <nil>")

	w.in(Config{State: ConfigPresent, Data: map[string]string{"webEnabled": "false"}})
	answer("the module is switched off", "hook web/guard: module web is not running: it does not answer now")
	if runs(w.e) > 0 {
		t.Errorf("runs %v", w.e.askedBy)
	}
}

// A hook that has taken processes with it answers no review, until an edit.
func TestReviewsOfABarredHook(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("guard", builtins.Binding{Name: "v", Admission: &builtins.AdmissionBinding{}})))
	w.start()
	w.in(Reload{Generation: w.gen})
	for _, h := range w.e.modules["web"].hooks {
		h.barred = "quarantined"
	}
	w.reviews = nil
	w.e.switched++
	w.in(Tick{})
	if len(w.reviews) != 1 || w.reviews[0].Refused != "quarantined" {
		t.Errorf("%v", w.reviews)
	}
	if _, err := w.reviews[0].Answer(1, w.now, &builtins.Request{Binding: "v"}); !errors.Is(err, ErrNotReady) {
		t.Error(err)
	}
}

// A hook whose snapshots are not complete keeps itself from answering, and no other hook of its module. It is
// named, for what it has registered stays. A hook that answers goes on when they are not any more.
func TestAHookWaitsForItsWatchesAlone(t *testing.T) {
	onReview := builtins.Binding{Name: "v", Admission: &builtins.AdmissionBinding{}}
	onReceive := builtins.Binding{Name: "r", Receive: &builtins.ReceiveBinding{Path: "/a"}}
	for name, still := range map[string]Input{
		"it lists":                  nil,
		"it may not list":           WatchFailed{ID: "web/b#nodes", Reason: "forbidden", Refused: true},
		"its filter fails":          WatchFailed{ID: "web/b#nodes", Reason: "the filter fails on Node n", Lacks: true},
		"a required kind is absent": WatchSynced{ID: "web/b#nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := onWatch("nodes")
			nodes.Watch.Require = true
			web := mod("web", isOn(), hk("a", onReview), hk("b", nodes, onReview), hk("c", onReceive))
			w := newWorld(t, web)
			w.unsynced["web/b#nodes"] = true
			w.start()
			if still != nil {
				w.in(still)
			}
			if want := []string{"web: web/a web/c (web/b)"}; !slices.Equal(w.served, want) {
				t.Errorf("served %q, want %q", w.served, want)
			}
			w.served = nil
			w.in(WatchFailed{ID: "web/b#nodes"})
			w.in(WatchSynced{ID: "web/b#nodes", Served: true})
			w.in(WatchFailed{ID: "web/b#nodes", Reason: "the filter fails on Node n", Lacks: true})
			off(w, "web")
			if want := []string{"web: web/a web/b web/c", "web: web/a web/c (web/b)", "web:"}; !slices.Equal(w.served, want) {
				t.Errorf("served %q, want %q", w.served, want)
			}
		})
	}
}
