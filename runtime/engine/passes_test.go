package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/effect"
)

// fail(permanent=True) before Helm waits for a change of the values, not for ever.
func TestABeforeHelmHookThatFailsForGoodRunsAgainWithNewValues(t *testing.T) {
	fails := true
	w := newWorld(t, mod("web", isOn(), hk("before", onBefore())))
	w.hooks["web/before"] = func(RunHook) (effect.Effects, error) {
		if fails {
			return effect.Effects{}, &builtins.FailError{Msg: "set domain", Permanent: true}
		}
		return effect.Effects{}, nil
	}
	w.start()
	w.advance(time.Hour)
	w.wantRuns("web/before helm")
	w.state("web", status.ModuleFailed, "set domain")
	fails = false
	w.in(Config{State: ConfigPresent, Data: map[string]string{"web": "domain: x"}})
	w.advance(time.Second)
	w.wantReleased("web#1")
	w.state("web", status.ModuleReady, "")
}

// A long backoff loses its reason once the values have moved.
func TestNewValuesShortenBackoffs(t *testing.T) {
	config := func(n string) Config {
		return Config{State: ConfigPresent, Data: map[string]string{"web": "domain: " + n}}
	}
	t.Run("of a release", func(t *testing.T) {
		w := newWorld(t, mod("web", isOn()))
		w.helmErr["web"] = errBoom
		w.start()
		w.advance(time.Hour)
		w.helmErr["web"] = nil
		w.in(config("x"))
		w.advance(time.Second)
		w.wantReleased("web#1")
	})
	t.Run("of a hook", func(t *testing.T) {
		w := newWorld(t, mod("web", isOn(), hk("a", onStartup(0))))
		fails := true
		w.hooks["web/a"] = func(RunHook) (effect.Effects, error) {
			if fails {
				return effect.Effects{}, errBoom
			}
			return effect.Effects{}, nil
		}
		w.start()
		w.advance(time.Hour)
		fails = false
		w.in(config("x"))
		w.advance(time.Second)
		w.wantReleased("web#1")
	})
	t.Run("of enabled()", func(t *testing.T) {
		m := mod("web", isOn())
		m.Enabled = noFunction{}
		w := newWorld(t, m)
		failure := errBoom
		w.enabled["web"] = func(map[string]any) (builtins.Decision, error) {
			return builtins.Decision{Answer: builtins.AnswerOn}, failure
		}
		w.start()
		w.advance(time.Hour)
		failure = nil
		w.in(config("x"))
		w.advance(time.Second)
		w.wantReleased("web#1")
	})
}

// Only what after_helm hooks change counts as passes that go round in circles: all
// else that moves while Helm works must reach Helm in the end.
func TestValuesThatMoveDuringAfterHelmAreReleased(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("nodes", onWatch("nodes")), hk("after", onAfter())))
	n := int64(0)
	w.hooks["web/nodes"] = func(RunHook) (effect.Effects, error) { return set("n", n), nil }
	w.holdHelm = "web"
	w.start()
	for range 3 {
		n++
		w.changed("web/nodes#nodes") // while Helm works
		w.in(Released{Op: w.heldHelm.Op, Changed: true, Revision: int(n)})
	}
	w.holdHelm = ""
	w.in(Released{Op: w.heldHelm.Op, Changed: true, Revision: 4})
	if last := fmt.Sprint(w.heldHelm.Values); !strings.Contains(last, "n:3") {
		t.Errorf("released last: %s", last)
	}
	w.state("web", status.ModuleReady, "")
}

// A release that moves is taken away only when its successor is about to be
// installed, not while a hook that it waits for fails.
func TestAMoveWaitsForTheGate(t *testing.T) {
	decl := isOn()
	decl.Namespace = "new"
	w := newWorld(t, mod("web", decl, hk("a", onStartup(0)), hk("before", onBefore())))
	fails := map[string]bool{"web/a": true, "web/before": true}
	for id := range fails {
		w.hooks[id] = func(RunHook) (effect.Effects, error) {
			if fails[id] {
				return effect.Effects{}, errBoom
			}
			return effect.Effects{}, nil
		}
	}
	w.installed = []ReleaseRef{{Module: "web", Name: "web", Namespace: "old"}}
	w.start()
	for _, id := range []string{"web/a", "web/before"} {
		if len(w.gone) > 0 {
			t.Fatalf("taken away while %s fails", id)
		}
		fails[id] = false
		w.advance(time.Minute)
	}
	if diff := cmp.Diff([]ReleaseRef{{Module: "web", Name: "web", Namespace: "new"}}, w.installed); diff != "" {
		t.Error(diff)
	}
	w.state("web", status.ModuleReady, "")
}

// A failure for one purpose does not delay the next.
func TestAFailedReleaseIsUninstalledAtOnce(t *testing.T) {
	w := newWorld(t, mod("web", isOn()))
	w.start()
	w.helmErr["web"] = errBoom
	w.in(Config{State: ConfigPresent, Data: map[string]string{"web": "a: 1"}})
	w.advance(time.Hour)
	w.state("web", status.ModuleFailed, "boom")
	w.in(Config{State: ConfigPresent, Data: map[string]string{"webEnabled": "false"}})
	if !slices.Equal(w.gone, []string{"web"}) {
		t.Errorf("gone %v", w.gone)
	}
	w.state("web", status.ModuleOff, "webEnabled: false")
}

// The end of a release that was under way as its module went down does not make
// the module ready.
func TestAReleaseThatEndsAfterItsModuleDoesNotCount(t *testing.T) {
	app := isOn()
	app.Requires = []string{"db"}
	db := mod("db", isOn())
	db.Enabled = noFunction{}
	w := newWorld(t, mod("app", app), db)
	answer := builtins.Decision{Answer: builtins.AnswerOn}
	w.enabled["db"] = func(map[string]any) (builtins.Decision, error) { return answer, nil }
	w.holdHelm = "db"
	w.start()
	answer = builtins.Decision{Answer: builtins.AnswerWaiting, Reason: "later"}
	w.in(Config{State: ConfigPresent, Data: map[string]string{"global": "n: 1"}})
	w.state("db", status.ModuleWaiting, "later")
	w.in(Released{Op: w.heldHelm.Op, Changed: true, Revision: 1})
	w.state("app", status.ModuleBlocked, "waits for db")
	w.wantReleased()
}

// A crash between Helm and its after_helm hooks does not lose their run.
func TestAfterHelmRunsAfterACrash(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("after", onAfter())))
	w.hooks["web/after"] = func(RunHook) (effect.Effects, error) { return set("after", true), nil }
	w.hold = "web/after"
	w.start()
	w.wantReleased("web#1")
	w.hold = ""
	w.start()
	w.wantReleased("web#1", "web#2")
	w.runs = nil
	w.start()
	w.wantReleased("web#1", "web#2")
}
