package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/effect"
)

func TestAllowedFailuresHoldNothingBack(t *testing.T) {
	bad := hk("bad", onStartup(0), onBefore())
	bad.AllowFailure = true
	w := newWorld(t, mod("web", isOn(), bad, hk("good", onWatch("nodes"))))
	w.hooks["web/bad"] = func(RunHook) (effect.Effects, error) { return set("n", int64(1)), errBoom }
	w.start()
	w.state("web", status.ModuleReady, "")
	w.wantReleased("web#1")
	if strings.Contains(w.released[0], "n:1") {
		t.Error("a failed run has set a value")
	}
	runs := len(w.runs)
	w.advance(time.Hour)
	if len(w.runs) != runs {
		t.Errorf("an allowed failure was tried again: %v", w.runs)
	}
	for _, h := range w.e.Status().Hooks {
		if h.ID == "web/bad" && (h.State != status.HookFailed || h.LastError == "") {
			t.Errorf("the status hides it: %+v", h)
		}
	}
}

func TestMinIntervalSpacesRuns(t *testing.T) {
	slow := hk("slow", onWatch("nodes"))
	slow.MinInterval, slow.Burst = 10*time.Second, 2
	w := newWorld(t, mod("web", isOn(), slow, hk("other", onWatch("nodes"))))
	w.start()
	w.runs = nil
	changed := func() {
		w.changed("web/slow#nodes")
		w.changed("web/other#nodes")
	}
	changed()
	w.wantRuns("web/slow modified", "web/other modified")
	changed()
	changed() // what comes too soon waits as one run, and holds up no other hook
	w.wantRuns("web/other modified", "web/other modified")
	w.advance(9 * time.Second)
	w.wantRuns()
	w.advance(2 * time.Second)
	w.wantRuns("web/slow modified,modified")
	w.advance(time.Hour)
	changed()
	changed()
	w.wantRuns("web/slow modified", "web/other modified", "web/slow modified", "web/other modified")
}

func TestValuesKeepAddsToEarlierRuns(t *testing.T) {
	keeps := hk("keeps", onWatch("nodes"))
	keeps.KeepValues = true
	n := 0
	w := newWorld(t, mod("web", isOn(), keeps))
	w.hooks["web/keeps"] = func(r RunHook) (effect.Effects, error) {
		n++
		view, err := r.Values.Compose(nil)
		if err != nil {
			return effect.Effects{}, err
		}
		if seen, ok := view["seen"].(map[string]any); ok != (n > 1) || len(seen) != n-1 {
			return effect.Effects{}, fmt.Errorf("run %d sees %v", n, view)
		}
		return set(fmt.Sprintf("seen.n%d", n), true), nil
	}
	w.start()
	w.changed("web/keeps#nodes")
	w.wantReleased("web#1", "web#2")
	if !strings.Contains(w.released[1], "seen:map[n1:true n2:true]") {
		t.Error(w.released[1])
	}
	// Kept state outlives the process.
	w.start()
	if !strings.Contains(w.released[len(w.released)-1], "n3:true") || !strings.Contains(w.released[len(w.released)-1], "n1:true") {
		t.Error(w.released)
	}
	w.saveErr = errors.New("no")
	w.changed("web/keeps#nodes")
	if strings.Contains(fmt.Sprint(w.e.Values("web")), "n4") {
		t.Error("a failed run added something")
	}
}

func TestAQueueOfItsOwnHoldsUpNobody(t *testing.T) {
	slow := hk("slow", onWatch("nodes"))
	slow.Queue = "slow"
	w := newWorld(t, mod("web", isOn(), slow, hk("quick", onWatch("nodes"))))
	w.hooks["web/quick"] = func(RunHook) (effect.Effects, error) { return set("quick", int64(len(w.runs))), nil }
	w.start()
	w.runs = nil
	w.hold = "web/slow"
	w.changed("web/slow#nodes")
	w.changed("web/quick#nodes")
	w.changed("web/quick#nodes")
	w.wantRuns("web/slow modified", "web/quick modified", "web/quick modified")
	w.hold = ""
	run := w.held["web/slow"][0].(RunHook)
	w.in(RunDone{Run: run.Run, Effects: set("slow", int64(7))})
	last := w.released[len(w.released)-1]
	if !strings.Contains(last, "slow:7") || !strings.Contains(last, "quick:") {
		t.Error(last)
	}
	if kept := fmt.Sprint(copyKept(w.kept)); !strings.Contains(kept, `"slow"`) || !strings.Contains(kept, `"quick"`) {
		t.Errorf("one hook has written over what another has kept: %s", kept)
	}
}

// Two runs end at the same moment and ask for the same path: the second is checked
// against the first.
func TestRunsOfTwoQueuesAreCheckedOneAfterTheOther(t *testing.T) {
	a, b := hk("a", onStartup(0)), hk("b", onStartup(0))
	b.Queue = "b"
	w := newWorld(t, mod("web", isOn(), a, b))
	w.e = New(w.opts)
	w.e.Handle(w.now, Config{State: ConfigPresent})
	var runs []RunHook
	var saves []Save
	sort := func(actions []Action) {
		for _, action := range actions {
			switch action := action.(type) {
			case RunHook:
				runs = append(runs, action)
			case Save:
				saves = append(saves, action)
			}
		}
	}
	sort(w.e.Handle(w.now, Start{Generation: w.gen}))
	if len(runs) != 2 {
		t.Fatalf("%d runs, want both at once", len(runs))
	}
	for _, r := range runs {
		sort(w.e.Handle(w.now, RunDone{Run: r.Run, Effects: set("n", r.Hook.ID)}))
	}
	if len(saves) != 1 {
		t.Fatalf("%d saves at once: %+v", len(saves), saves)
	}
	sort(w.e.Handle(w.now, Saved{Op: saves[0].Op}))
	if len(saves) != 1 {
		t.Error("both have set one path")
	}
	w.state("web", status.ModuleFailed, "one path belongs to one hook")
}

func TestStateIsRememberedOnceARunHasSucceeded(t *testing.T) {
	fails := false
	w := newWorld(t, mod("web", isOn(), hk("a", onWatch("nodes"))))
	count := func() int64 {
		n, _ := w.remembers("web/a")["n"].(int64)
		return n
	}
	w.hooks["web/a"] = func(r RunHook) (effect.Effects, error) {
		n, _ := r.State["n"].(int64)
		eff := effect.Effects{Memory: effect.Memory{State: map[string]any{"n": n + 1}}}
		if fails {
			return eff, errBoom
		}
		return eff, nil
	}
	w.start()
	w.changed("web/a#nodes")
	if count() != 2 {
		t.Errorf("state %d, want 2", count())
	}
	w.start() // remembered across a restart
	if count() != 3 {
		t.Errorf("state %d, want 3", count())
	}
	fails = true
	w.changed("web/a#nodes")
	if count() != 3 {
		t.Error("a failed run has changed the state")
	}
	fails = false
	w.saveErr = errors.New("no")
	w.advance(time.Minute)
	if count() != 3 {
		t.Error("a failed commit has changed the state")
	}
	w.saveErr = nil
	w.advance(time.Minute)
	if count() != 4 {
		t.Errorf("state %d, want 4", count())
	}
	off(w, "web")
	if len(w.kept["web"]) > 0 {
		t.Errorf("a module that is off for good remembers %v", w.kept["web"])
	}
}

func TestAQuarantinedHookHoldsUpItsModuleAlone(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("bad", onStartup(0)), hk("good", onStartup(1))), mod("other", isOn()))
	w.e = New(w.opts)
	w.in(Config{State: ConfigPresent})
	w.in(Start{Generation: w.gen, Barred: map[string]string{"web/bad": "quarantined: starling was killed while it ran"}})
	w.advance(time.Hour)
	w.wantRuns("web/good startup")
	w.state("web", status.ModuleFailed, "hook bad: quarantined")
	w.wantReleased("other#1")
	if ready, why := w.e.Ready(); !ready {
		t.Error(why)
	}
}

// A file that cannot be read for one start takes nothing away that its hooks remember.
func TestAModuleThatDoesNotLoadKeepsWhatItRemembers(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("a", onStartup(0))))
	w.hooks["web/a"] = func(r RunHook) (effect.Effects, error) {
		n, _ := r.State["n"].(int64)
		eff := set("n", n)
		eff.State = map[string]any{"n": n + 1}
		return eff, nil
	}
	w.start()
	before := copyKept(w.kept)
	good := w.gen.Modules["web"]
	broken := *good
	broken.Hooks, broken.Err = nil, errors.New("web/hooks/a.star:1:1: got end of file")
	w.gen.Modules["web"] = &broken
	w.start()
	w.advance(time.Hour)
	if after := copyKept(w.kept); len(after) != len(before) {
		t.Errorf("kept %v, was %v", after, before)
	}
	w.gen.Modules["web"] = good
	w.start()
	if n := w.remembers("web/a")["n"]; n != int64(2) {
		t.Errorf("state %v, want 2", n)
	}
}
