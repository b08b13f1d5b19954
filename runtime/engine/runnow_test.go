package engine

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/lane"
)

// runnableModule has a hook of each kind of trigger.
func runnableModule(decl builtins.ModuleDecl) *generation.Module {
	return mod("web", decl, hk("asked", onReceive("/x")), hk("before", onBefore()), hk("begins", onStartup(0)),
		hk("each", onWatch("pods")), hk("nightly", onSchedule(builtins.ScheduleBinding{Cron: "0 3 * * *"})), hk("watches", onWatch("nodes")))
}

// All hooks run that run by themselves, with all that triggers them, and the release is looked at.
func TestAModuleRunsNow(t *testing.T) {
	m := runnableModule(isOn())
	m.Hooks[3].ForEach = "pods"
	w := newWorld(t, m)
	w.objects["shop/a"] = Object{Namespace: "shop", Name: "a", UID: "1"}
	asked := map[bool]int{}
	for _, h := range m.Hooks {
		w.hooks[h.ID] = func(r RunHook) (effect.Effects, error) {
			for _, ev := range r.Events {
				asked[ev.Asked]++
			}
			return effect.Effects{}, nil
		}
	}
	w.start()
	if asked[true] > 0 {
		t.Error("runs that come by themselves say that somebody has asked")
	}
	clear(asked)
	w.runs = nil
	in := RunNow{Module: "web"}
	hooks, err := w.e.Runnable(in)
	if want := []string{"web/begins", "web/each", "web/nightly", "web/watches"}; err != nil || !slices.Equal(hooks, want) {
		t.Errorf("%q, %v", hooks, err)
	}
	w.in(in)
	slices.Sort(w.runs)
	w.wantRuns("web/before helm", "web/begins startup", "web/each[shop/a] modified", "web/nightly schedule", "web/watches sync")
	if asked[true] != 4 || asked[false] != 1 { // web/before runs because the release is looked at
		t.Errorf("events that say that somebody has asked, and others: %v", asked)
	}
	if n := strings.Count(strings.Join(w.notes, "\n"), "somebody has asked for a run"); n != 4 {
		t.Errorf("the log says so %d times: %q", n, w.notes)
	}
	w.in(RunNow{Module: "web", Hook: "web/nightly"})
	w.wantRuns("web/nightly schedule")
}

// A run that waits for its next try runs at once; one that waits for min_interval goes on waiting.
func TestARunNowKeepsLimitsAndForgetsBackoffs(t *testing.T) {
	slow := hk("slow", onStartup(0))
	slow.MinInterval, slow.Burst = time.Hour, 1
	w := newWorld(t, mod("web", isOn(), hk("fails", onStartup(1)), slow))
	w.hooks["web/fails"] = func(RunHook) (effect.Effects, error) { return effect.Effects{}, errBoom }
	w.start()
	w.advance(time.Hour + time.Minute)
	w.runs = nil
	w.in(RunNow{Module: "web"})
	w.wantRuns("web/fails startup,startup", "web/slow startup")
	w.in(RunNow{Module: "web", Hook: "web/slow"})
	w.wantRuns()
	w.advance(time.Hour)
	if n := strings.Count(strings.Join(w.runs, "\n"), "web/slow"); n != 1 {
		t.Errorf("runs %q", w.runs)
	}
}

// Rights that are lacking come without an event: a hook that lacks some is tried again soon, however often it failed.
func TestAHookThatLacksRightsIsTriedAgainSoon(t *testing.T) {
	for err, least := range map[error]int{errBoom: 0, &lane.Passing{Err: errBoom}: 4} {
		w := newWorld(t, mod("web", isOn(), hk("fails", onStartup(1))))
		w.hooks["web/fails"] = func(RunHook) (effect.Effects, error) { return effect.Effects{}, err }
		w.start()
		w.advance(time.Hour)
		w.runs = nil
		w.advance(time.Minute)
		if n := len(w.runs); n < least || least == 0 && n > 1 {
			t.Errorf("%T: %d runs in a minute", err, n)
		}
	}
}

// A hook that polls by requeue alone goes on after a failure that is allowed: no other event would come.
func TestAFailureThatIsAllowedEndsNoPolling(t *testing.T) {
	for err, more := range map[error]bool{errBoom: true, &builtins.FailError{Msg: "no", Permanent: true}: false} {
		h := hk("polls", onStartup(1))
		h.AllowFailure = true
		w, n := newWorld(t, mod("web", isOn(), h)), 0
		w.hooks["web/polls"] = func(RunHook) (effect.Effects, error) {
			if n++; n == 2 || n == 3 {
				return effect.Effects{}, err
			}
			return effect.Effects{Requeue: time.Minute}, nil
		}
		w.start()
		w.advance(time.Hour)
		if more != (n > 50) || !more && n != 2 {
			t.Errorf("%v: %d runs in an hour", err, n)
		}
	}
}

// A race that a write has lost is over at once: the run is repeated, and nothing has failed. One that is lost each time
// has failed.
func TestALostRaceIsNoFailure(t *testing.T) {
	for _, allowed := range []bool{false, true} {
		for _, lost := range []int{3, 1000} {
			h := hk("races", onStartup(1))
			h.AllowFailure = allowed
			w, tries, counted := newWorld(t, mod("web", isOn(), h)), 0, 0
			w.hooks["web/races"] = func(RunHook) (effect.Effects, error) {
				return effect.Effects{Writes: []effect.Write{{Ref: effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Name: "a"}}}}, nil
			}
			w.commitErr = &lane.Passing{Err: errBoom, Race: true}
			w.told = func(a Action) {
				if u, is := a.(Uncommitted); is && !u.Lost {
					counted++
				}
				if _, is := a.(Commit); is {
					if tries++; tries > lost {
						w.commitErr = nil
					}
				}
			}
			w.start()
			w.advance(10 * time.Second)
			failures := w.e.modules["web"].hooks[0].ran.Failures
			if once := lost == 3; once != (failures == 0) || once && tries != 4 || tries > 10 || !once && allowed && tries != 5 {
				t.Errorf("allowed %v, %d lost: %d tries, %d failures", allowed, lost, tries, failures)
			}
			if counted != failures {
				t.Errorf("allowed %v, %d lost: the metrics count %d failures, the status %d", allowed, lost, counted, failures)
			}
		}
	}
}

// It is said why there is no run; an input that comes all the same has no effect.
func TestWhyThereIsNoRunNow(t *testing.T) {
	w := newWorld(t, runnableModule(isOn()), mod("off", builtins.ModuleDecl{}, hk("a", onStartup(0))))
	barred := map[string]string{"web/nightly": "it took a process with it"}
	w.e = New(w.opts)
	if _, err := w.e.Runnable(RunNow{Module: "web"}); err == nil || !strings.Contains(err.Error(), "nothing has been started yet") {
		t.Error(err)
	}
	w.in(Config{State: ConfigPresent})
	w.in(Start{Generation: w.gen, Barred: barred})
	w.runs = nil
	for in, want := range map[RunNow]string{
		{Module: "wbe"}:                      `there is no module "wbe"`,
		{Module: "web", Hook: "web/x"}:       `there is no hook "web/x" in module web`,
		{Module: "off"}:                      "module off is off",
		{Module: "web", Hook: "web/asked"}:   "hook web/asked runs for requests alone",
		{Module: "web", Hook: "web/before"}:  "run module web",
		{Module: "web", Hook: "web/nightly"}: "it took a process with it",
	} {
		if hooks, err := w.e.Runnable(in); err == nil || !strings.Contains(err.Error(), want) || len(hooks) > 0 {
			t.Errorf("%+v: %q %v", in, hooks, err)
		}
		w.in(in)
	}
	w.wantRuns()
	w.standBy()
	if _, err := w.e.Runnable(RunNow{Module: "web"}); !errors.Is(err, ErrStandsBy) {
		t.Error(err)
	}
	w.in(RunNow{Module: "web"})
	w.wantRuns()
}
