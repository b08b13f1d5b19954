package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
)

// A hook that writes something else each time to the object that it watches is slowed
// down, and the status says so; a change by somebody else has it run at once.
func TestAHookThatWakesItself(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("a", onWatch("nodes"))))
	again := true
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) {
		if !again {
			return effect.Effects{}, nil
		}
		return effect.Effects{Writes: []effect.Write{{Kind: effect.WritePatch, Ref: effect.Ref{APIVersion: "v1", Kind: "Node", Name: "a"}}}}, nil
	}
	w.start()
	const seconds = 3600
	ran := 0
	for range seconds { // the API server answers each write with an event
		for range 100 {
			if before := len(w.runs); before == ran {
				break
			}
			ran = len(w.runs)
			w.changed("web/a#nodes")
		}
		w.advance(time.Second)
	}
	if ran > maxEchoes+30 {
		t.Errorf("%d runs in an hour", ran)
	}
	if problems := strings.Join(w.module("web").Problems, "\n"); !strings.Contains(problems, "a: wakes itself: it watches what it writes (Node a)") {
		t.Errorf("problems: %q", problems)
	}
	before := len(w.runs)
	w.in(WatchChanged{ID: "web/a#nodes", Events: []builtins.Event{{Type: "modified", Binding: "nodes", Name: "b"}}})
	if len(w.runs) != before+1 {
		t.Error("news have to wait")
	}
	again = false
	w.changed("web/a#nodes")
	w.advance(time.Hour)
	if problems := w.module("web").Problems; len(problems) > 0 {
		t.Errorf("problems: %v", problems)
	}
}

// A hook that puts an object right each time somebody else has changed it does not wake
// itself, however often that happens; nor does one that follows what others write there.
func TestAHookThatCorrectsOthersDoesNotWakeItself(t *testing.T) {
	for name, follows := range map[string]bool{"puts right": false, "follows": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, mod("web", isOn(), hk("a", onWatch("nodes"))))
			user, written := 0, -1
			w.hooks["web/a"] = func(RunHook) (effect.Effects, error) {
				value := 0
				if follows {
					value = user
				}
				return effect.Effects{Writes: []effect.Write{{
					Kind: effect.WriteApply, Ref: effect.Ref{APIVersion: "v1", Kind: "Node", Name: "a"}, Object: map[string]any{"value": value},
				}}}, nil
			}
			w.start()
			for i := range 3 * maxEchoes {
				before := len(w.runs)
				user = i + 1
				w.changed("web/a#nodes") // by somebody else
				if len(w.runs) != before+1 {
					t.Fatalf("change %d has to wait: %v", i, w.module("web").Problems)
				}
				if !follows || written != user { // the API server answers with an event
					written = user
					w.changed("web/a#nodes")
				}
				w.advance(time.Second)
			}
			if problems := w.module("web").Problems; len(problems) > 0 {
				t.Errorf("problems: %v", problems)
			}
		})
	}
}
