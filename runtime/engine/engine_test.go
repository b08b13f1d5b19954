package engine

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine/userconfig"
)

func TestAHookFindsAValueAndTheReleaseFollows(t *testing.T) {
	nodes := int64(1)
	w := newWorld(t, mod("web", isOn(), hk("nodes", onWatch("nodes"))))
	w.hooks["web/nodes"] = func(RunHook) (effect.Effects, error) { return set("internal.nodes", nodes), nil }
	w.start()
	w.wantRuns("web/nodes sync")
	w.wantReleased("web#1")
	if want := "web#1 map[global:map[] internal:map[nodes:1] replicas:1]"; w.released[0] != want {
		t.Errorf("released %q, want %q", w.released[0], want)
	}
	w.state("web", status.ModuleReady, "")

	nodes = 2
	w.changed("web/nodes#nodes")
	w.wantReleased("web#1", "web#2")
	// The same again changes nothing: no revision, and nothing is kept anew.
	kept := copyKept(w.kept)
	w.changed("web/nodes#nodes")
	w.wantReleased("web#1", "web#2")
	if diff := cmp.Diff(kept, copyKept(w.kept)); diff != "" {
		t.Error(diff)
	}
}

func TestARestartRendersTheSameBytes(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("nodes", onWatch("nodes"))))
	w.hooks["web/nodes"] = func(RunHook) (effect.Effects, error) { return set("n", int64(3)), nil }
	w.start()
	kept := copyKept(w.kept)
	w.start()
	w.wantReleased("web#1")
	if diff := cmp.Diff(kept, copyKept(w.kept)); diff != "" {
		t.Error(diff)
	}
	// A failing hook does not take away what it found in an earlier life.
	w.hooks["web/nodes"] = func(RunHook) (effect.Effects, error) { return effect.Effects{}, errBoom }
	w.start()
	w.state("web", status.ModuleFailed, "boom")
	w.wantReleased("web#1")
	if len(w.gone) > 0 {
		t.Errorf("uninstalled %v", w.gone)
	}
}

func TestGateWaitsForWatchesAndFirstSuccesses(t *testing.T) {
	fails := true
	w := newWorld(t,
		mod("web", isOn(), hk("a", onStartup(0)), hk("b", onWatch("nodes"))),
		mod("other", isOn()))
	w.unsynced["web/b#nodes"] = true
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) {
		if fails {
			return effect.Effects{}, errBoom
		}
		return effect.Effects{}, nil
	}
	w.start()
	w.wantReleased("other#1") // a healthy module is not held
	w.state("web", status.ModuleFailed, "boom")
	if ready, why := w.e.Ready(); !ready {
		t.Errorf("a failing module holds readiness back: %s", why)
	}
	fails = false
	w.advance(2 * time.Second)
	w.state("web", status.ModuleStarting, "waits for hook b")
	w.in(WatchSynced{ID: "web/b#nodes", Served: false})
	w.state("web", status.ModuleReady, "")
	w.wantReleased("other#1", "web#1")
	// A hook that has once succeeded does not close the gate again.
	fails = true
	w.changed("web/b#nodes")
	w.state("web", status.ModuleReady, "")
}

func TestRetriesGrowAndEventsAreKept(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("a", onStartup(0))))
	w.hooks["web/a"] = func(r RunHook) (effect.Effects, error) {
		if r.Attempt < 4 {
			return effect.Effects{}, errBoom
		}
		return effect.Effects{}, nil
	}
	w.start()
	w.wantRuns("web/a startup")
	w.advance(time.Second)
	w.wantRuns("web/a startup")
	w.advance(time.Second)
	w.wantRuns()
	w.advance(time.Second)
	w.wantRuns("web/a startup")
	w.advance(4 * time.Second)
	w.wantRuns("web/a startup")
	w.state("web", status.ModuleReady, "")
	w.advance(time.Hour)
	w.wantRuns()
}

func TestFailPermanentWaitsForAnEvent(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("a", onWatch("nodes"))))
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) {
		return effect.Effects{}, &builtins.FailError{Msg: "no", Permanent: true}
	}
	w.start()
	w.advance(time.Hour)
	w.wantRuns("web/a sync")
	w.changed("web/a#nodes")
	w.wantRuns("web/a sync,modified") // no event is lost
}

func TestAFailedCommitLeavesValuesAsTheyWere(t *testing.T) {
	n := int64(1)
	w := newWorld(t, mod("web", isOn(), hk("a", onWatch("nodes"))))
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) {
		eff := set("n", n)
		eff.Writes = []effect.Write{{Kind: effect.WriteApply}}
		eff.Metrics = []effect.Metric{{Kind: effect.MetricSet, Name: "n", Value: float64(n)}}
		return eff, nil
	}
	w.start()
	n, w.commitErr = 2, errors.New("3 of 10 written")
	w.changed("web/a#nodes")
	w.wantReleased("web#1")
	if w.metrics["n"] != 1 {
		t.Errorf("metric is %v", w.metrics["n"])
	}
	w.commitErr = nil
	w.advance(time.Second)
	w.wantReleased("web#1", "web#2")
	if w.metrics["n"] != 2 {
		t.Errorf("metric is %v", w.metrics["n"])
	}
}

func TestTwoHooksMayNotSetTheSamePath(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("a", onStartup(1)), hk("b", onStartup(2))))
	both := func(RunHook) (effect.Effects, error) { return set("n", int64(1)), nil }
	w.hooks["web/a"], w.hooks["web/b"] = both, both
	w.start()
	m := w.module("web")
	if m.State != status.ModuleFailed || !strings.Contains(m.Reason, "web/a") || !strings.Contains(m.Reason, "b: ") {
		t.Errorf("state %s: %s", m.State, m.Reason)
	}
}

func TestBeforeAndAfterHelm(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("before", onBefore()), hk("after", onAfter())))
	w.hooks["web/before"] = func(RunHook) (effect.Effects, error) { return set("before", true), nil }
	w.hooks["web/after"] = func(RunHook) (effect.Effects, error) { return set("after", true), nil }
	w.start()
	// The values of before_helm count in the render that follows; those of
	// after_helm make one more pass.
	w.wantRuns("web/before helm", "web/after helm", "web/before helm", "web/after helm")
	w.wantReleased("web#1", "web#2")
	if !strings.Contains(w.released[0], "before:true") || strings.Contains(w.released[0], "after:true") {
		t.Error(w.released[0])
	}
	w.state("web", status.ModuleReady, "")
}

func TestAfterHelmThatAlwaysMovesIsStopped(t *testing.T) {
	n := int64(0)
	w := newWorld(t, mod("web", isOn(), hk("after", onAfter())))
	w.hooks["web/after"] = func(RunHook) (effect.Effects, error) { n++; return set("deep.counter", n), nil }
	w.start()
	w.wantReleased("web#1", "web#2", "web#3")
	w.state("web", status.ModuleReady, "deep.counter")
}

func TestRequiresWaitsUntilReady(t *testing.T) {
	app := isOn()
	app.Requires = []string{"db"}
	w := newWorld(t, mod("app", app), mod("db", isOn()))
	w.helmErr["db"] = errBoom
	w.start()
	w.state("app", status.ModuleBlocked, "waits for db")
	w.helmErr["db"] = nil
	w.advance(time.Second)
	w.wantReleased("db#1", "app#1")
	// A requirement that fails later does not stop those who stand on it.
	w.state("app", status.ModuleReady, "")
}

func TestARequirementThatIsOffKeepsTheRelease(t *testing.T) {
	app := isOn()
	app.Requires = []string{"db"}
	w := newWorld(t, mod("app", app), mod("db", isOn()))
	w.start()
	w.in(Config{State: ConfigPresent, Data: map[string]string{"dbEnabled": "false"}})
	w.state("db", status.ModuleOff, "dbEnabled: false in config")
	w.state("app", status.ModuleOff, "requires db, which is off; its release stays")
	if diff := cmp.Diff([]string{"db"}, w.gone); diff != "" {
		t.Error(diff)
	}
}

func TestARequirementThatIsOffMayUninstall(t *testing.T) {
	web, app := isOn(), isOn()
	app.Requires, app.LostUninstalls = []string{"db|store"}, true
	web.Requires, web.LostUninstalls = []string{"app"}, true
	w := newWorld(t, mod("app", app), mod("db", isOn()), mod("store", isOn()), mod("web", web))
	w.helmErr["db"] = errBoom
	w.start()
	w.state("app", status.ModuleReady, "") // one of the two suffices
	w.in(Config{State: ConfigPresent, Data: map[string]string{"storeEnabled": "false"}})
	w.state("app", status.ModuleReady, "") // it is the other one's turn, which fails: that is no no
	w.in(Config{State: ConfigPresent, Data: map[string]string{"storeEnabled": "false", "dbEnabled": "false"}})
	w.state("app", status.ModuleOff, "requires one of db, store, which are all off")
	if diff := cmp.Diff([]string{"store", "web", "app", "db"}, w.gone); diff != "" {
		t.Error(diff)
	}
	w.helmErr["db"] = nil
	w.in(Config{State: ConfigPresent})
	w.state("web", status.ModuleReady, "")
}

// A module that requires that another one is off comes once that is gone, and makes room for it.
func TestAModuleThatMustBeOff(t *testing.T) {
	app := isOn()
	app.Requires, app.LostUninstalls = []string{"!old"}, true
	w := newWorld(t, mod("app", app), mod("old", isOn(), code("1", hk("bye", onStage(builtins.StageBeforeDelete)))))
	w.hooks["old/bye"] = func(RunHook) (effect.Effects, error) { return effect.Effects{}, errBoom }
	w.start()
	w.state("app", status.ModuleOff, "requires old to be off, and it is on")
	w.wantReleased("old#1")
	w.in(Config{State: ConfigPresent, Data: map[string]string{"oldEnabled": "false"}})
	w.state("app", status.ModuleBlocked, "waits until old is off and gone")
	delete(w.hooks, "old/bye")
	w.advance(time.Hour)
	w.state("app", status.ModuleReady, "")
	w.in(Config{State: ConfigPresent})
	w.state("app", status.ModuleOff, "requires old to be off, and it is on")
	if diff := cmp.Diff([]string{"old", "app"}, w.gone); diff != "" {
		t.Error(diff)
	}
}

func TestWeightsOrderFirstInstalls(t *testing.T) {
	weight := func(n int) builtins.ModuleDecl { return builtins.ModuleDecl{Enabled: true, Weight: &n} }
	w := newWorld(t, mod("a", weight(30)), mod("b", weight(20)), mod("c", weight(10)))
	w.helmErr["b"] = errBoom // who fails holds nobody back
	w.start()
	w.wantReleased("c#1", "a#1")
	w.state("b", status.ModuleFailed, "boom")
}

func TestConfigIsHeldWhenItIsGoneOrBroken(t *testing.T) {
	w := newWorld(t, mod("web", builtins.ModuleDecl{}))
	w.start()
	w.state("web", status.ModuleOff, "add `webEnabled: true`")
	w.in(Config{State: ConfigPresent, Data: map[string]string{"webEnabled": "true", "web": "replicas: 5"}})
	w.wantReleased("web#1")
	w.in(Config{State: ConfigPresent, Data: map[string]string{"webEnabled": "true", "web": "- a list"}})
	w.wantReleased("web#1")
	if p := w.module("web").Problems; len(p) != 1 {
		t.Errorf("problems %v", p)
	}
	w.in(Config{State: ConfigMissing})
	w.wantReleased("web#1")
	w.state("web", status.ModuleReady, "")
	if got := w.e.Status().Config.State; got != status.ConfigHeld {
		t.Errorf("config is %s", got)
	}
	// Nor does a restart without it change anything.
	w.e = New(w.opts)
	w.in(Config{State: ConfigMissing})
	w.in(Start{Generation: w.gen, Kept: w.kept, Installed: w.installed})
	w.wantReleased("web#1")
	w.state("web", status.ModuleReady, "")
	// A switch that is no longer set uninstalls nothing.
	w.in(Config{State: ConfigPresent, Data: map[string]string{}})
	w.state("web", status.ModuleOff, "its release stays")
	if len(w.gone) > 0 {
		t.Errorf("uninstalled %v", w.gone)
	}
}

// Each section is kept under a key for itself: a key has room for one, not for all.
func TestTheConfigIsKeptBySection(t *testing.T) {
	w := newWorld(t, mod("web", isOn()), mod("db", isOn()), mod("job", isOn()))
	w.start()
	large := func(n int) string { return "text: " + strings.Repeat("x", n) }
	config := map[string]string{"global": "big: 9007199254740993", "web": large(500 << 10), "db": large(600 << 10), "jobEnabled": "false"}
	w.in(Config{State: ConfigPresent, Data: config})
	w.advance(time.Second)
	for key, data := range w.kept[globalName] {
		if len(data) > userconfig.MaxSection {
			t.Errorf("%d KiB are kept under %s", len(data)>>10, key)
		}
	}
	accepted := w.e.config.Accepted()
	w.e = New(w.opts)
	w.in(Config{State: ConfigMissing})
	w.in(Start{Generation: w.gen, Kept: w.kept, Installed: w.installed})
	if diff := cmp.Diff(accepted, w.e.config.Accepted()); diff != "" {
		t.Errorf("after a restart (-want +got):\n%s", diff)
	}

	config["web"] = large(userconfig.MaxSection)
	w.in(Config{State: ConfigPresent, Data: config})
	if p := w.module("web").Problems; len(p) != 1 || !strings.Contains(p[0], "web: the section has 800 KiB as JSON") {
		t.Errorf("problems of a section that is too large: %v", p)
	}
	if diff := cmp.Diff(accepted, w.e.config.Accepted()); diff != "" {
		t.Errorf("it is in force (-want +got):\n%s", diff)
	}
}

func TestEnabledHasThreeAnswers(t *testing.T) {
	answer := builtins.Decision{Answer: builtins.AnswerWaiting, Reason: "no domain"}
	var failure error
	m := mod("web", isOn())
	m.Enabled = noFunction{}
	w := newWorld(t, m, mod("other", isOn()))
	w.enabled["web"] = func(map[string]any) (builtins.Decision, error) { return answer, failure }
	move := func(n string) {
		w.in(Config{State: ConfigPresent, Data: map[string]string{"global": "n: " + n}})
	}
	w.start()
	w.state("web", status.ModuleWaiting, "no domain")
	answer = builtins.Decision{Answer: builtins.AnswerOn}
	move("1")
	w.state("web", status.ModuleReady, "")
	answer = builtins.Decision{Answer: builtins.AnswerWaiting, Reason: "domain gone"}
	move("2")
	w.state("web", status.ModuleWaiting, "domain gone; its release stays")
	if n := w.revision["web"]; n != 1 {
		t.Errorf("revision %d: values reached Helm before enabled() had seen them", n)
	}
	answer, failure = builtins.Decision{Answer: builtins.AnswerDisabled, Reason: "no"}, errBoom
	move("3")
	if len(w.gone) > 0 {
		t.Fatal("an error uninstalled")
	}
	failure = nil
	w.advance(time.Minute)
	w.state("web", status.ModuleOff, "disabled: no")
	if diff := cmp.Diff([]string{"web"}, w.gone); diff != "" {
		t.Error(diff)
	}
}

// A module that runs goes on by the last answer of enabled() when there is no new one.
func TestEnabledThatFailsLaterStopsNothing(t *testing.T) {
	var failure error
	m := mod("web", isOn(), hk("nodes", onWatch("nodes")))
	m.Enabled = noFunction{}
	w := newWorld(t, m)
	w.enabled["web"] = func(map[string]any) (builtins.Decision, error) {
		return builtins.Decision{Answer: builtins.AnswerOn}, failure
	}
	w.start()
	w.wantReleased("web#1")
	failure = errBoom
	w.in(Config{State: ConfigPresent, Data: map[string]string{"global": "n: 1"}})
	if m := w.e.module("web"); m.life == down || !m.verdict.Do.Runs() {
		t.Errorf("it has stopped: %+v", m.verdict)
	}
	ran := len(w.runs)
	w.changed("web/nodes#nodes")
	if len(w.runs) == ran {
		t.Error("its hooks run no more")
	}
	if len(w.gone) > 0 {
		t.Errorf("%v uninstalled", w.gone)
	}
}

func TestGlobalHooksComeFirstAndSwitchModules(t *testing.T) {
	w := newWorld(t, mod(globalName, builtins.ModuleDecl{}, hk("g", onStartup(0))), mod("web", builtins.ModuleDecl{}))
	fails := true
	w.hooks["global/g"] = func(RunHook) (effect.Effects, error) {
		if fails {
			return effect.Effects{}, errBoom
		}
		return effect.Effects{Values: []effect.ValueOp{
			{Op: effect.OpSet, Path: []string{"webEnabled"}, Value: true},
			{Op: effect.OpSet, Path: []string{"global", "n"}, Value: int64(2)},
		}}, nil
	}
	w.start()
	w.state("web", status.ModuleOff, "add `webEnabled")
	fails = false
	w.advance(time.Second)
	w.wantReleased("web#1")
	if !strings.Contains(w.released[0], "global:map[n:2]") {
		t.Error(w.released[0])
	}
	// After a restart the kept layer decides before the hook has run again; a
	// failing global hook holds first installs only.
	fails = true
	w.start()
	w.state("web", status.ModuleReady, "")
	w.wantReleased("web#1")
}

func TestModulesThatAreNotInTheTreeGoLastAndOnlyOurOwn(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("a", onStartup(0))))
	old := ReleaseRef{Module: "old", Name: "old", Namespace: "x"}
	w.installed = []ReleaseRef{old}
	w.hold = "web/a"
	w.start()
	if len(w.gone) > 0 {
		t.Fatal("uninstalled before the tree has settled")
	}
	run := w.held["web/a"][0].(RunHook)
	w.in(RunDone{Run: run.Run})
	if diff := cmp.Diff([]string{"old"}, w.gone); diff != "" {
		t.Error(diff)
	}
	// Not while its folder is there, if only half-written, nor while all is paused.
	for _, change := range []func(*world){
		func(w *world) { w.gen.Tree.Hollow = []string{"old"} },
		func(w *world) { w.opts.PauseAll = true },
	} {
		w := newWorld(t, mod("web", isOn()))
		w.installed = []ReleaseRef{old}
		w.kept = map[string]map[string][]byte{"old": {"layer.x": []byte("{}")}}
		change(w)
		w.start()
		w.advance(time.Hour)
		if len(w.gone) > 0 {
			t.Error("uninstalled")
		}
		if len(w.kept["old"]) == 0 {
			t.Error("what was kept for it is gone")
		}
	}
}

func TestANewNamespaceMovesTheRelease(t *testing.T) {
	decl := isOn()
	decl.Namespace = "new"
	w := newWorld(t, mod("web", decl))
	w.installed = []ReleaseRef{{Module: "web", Name: "web", Namespace: "old"}}
	w.start()
	if diff := cmp.Diff([]string{"web"}, w.gone); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]ReleaseRef{{Module: "web", Name: "web", Namespace: "new"}}, w.installed); diff != "" {
		t.Error(diff)
	}
}

func TestPausedModulesRunHooksAndKeepTheRelease(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("a", onStartup(0))))
	w.opts.Paused = []string{"web"}
	w.start()
	w.wantRuns("web/a startup")
	w.wantReleased()
	w.state("web", status.ModulePaused, "")
	if ready, why := w.e.Ready(); !ready {
		t.Error(why)
	}
}

func TestARunOfAnEarlierLifeDoesNotCount(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("a", onStartup(0))))
	w.hold = "web/a"
	w.start()
	run := w.held["web/a"][0].(RunHook)
	w.in(Config{State: ConfigPresent, Data: map[string]string{"webEnabled": "false"}})
	w.hold = ""
	w.in(RunDone{Run: run.Run, Effects: set("n", int64(9))})
	w.state("web", status.ModuleOff, "")
	w.in(Config{State: ConfigPresent, Data: map[string]string{"webEnabled": "true"}})
	w.wantReleased("web#1")
	if strings.Contains(w.released[0], "n:9") {
		t.Error(w.released[0])
	}
}

func TestStartupOrderHoldsUnlessSomethingIsWrong(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("z", onStartup(1), onWatch("nodes")), hk("a", onStartup(2))))
	w.unsynced["web/z#nodes"] = true
	w.start()
	w.wantRuns()
	w.in(WatchFailed{ID: "web/z#nodes", Reason: "forbidden"})
	w.wantRuns("web/a startup")
	w.state("web", status.ModuleFailed, "forbidden")
}

func TestRequeueAndSchedules(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("a", onStartup(0)),
		hk("b", builtins.Binding{Name: "nightly", Schedule: &builtins.ScheduleBinding{Cron: "0 3 * * *"}})))
	again := 10 * time.Second
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) {
		eff := effect.Effects{Requeue: again}
		again = 0
		return eff, nil
	}
	w.start()
	w.wantRuns("web/a startup")
	w.advance(10 * time.Second)
	w.wantRuns("web/a requeue")
	w.advance(24 * time.Hour)
	w.wantRuns("web/b schedule")
}

func TestAReleaseThatFailsIsTriedAgain(t *testing.T) {
	w := newWorld(t, mod("web", isOn()))
	w.helmErr["web"] = errBoom
	w.start()
	w.state("web", status.ModuleFailed, "boom")
	w.advance(2 * time.Second)
	w.state("web", status.ModuleFailed, "boom")
	w.helmErr["web"] = nil
	w.advance(10 * time.Second)
	w.state("web", status.ModuleReady, "")
}

func TestReadyStays(t *testing.T) {
	w := newWorld(t, mod("late", builtins.ModuleDecl{}, hk("a", onStartup(0))), mod("web", isOn()))
	w.hold = "late/a"
	w.start()
	if ready, why := w.e.Ready(); !ready {
		t.Fatal(why)
	}
	w.in(Config{State: ConfigPresent, Data: map[string]string{"lateEnabled": "true"}})
	w.state("late", status.ModuleStarting, "")
	if ready, why := w.e.Ready(); !ready {
		t.Errorf("a module that is switched on later takes the process out of service: %s", why)
	}
}

func TestAModuleWithoutItsChartSaysThatTheReleaseStays(t *testing.T) {
	m := mod("web", isOn(), hk("a", onStartup(0)))
	m.Tree.Chart = nil
	w := newWorld(t, m)
	w.installed = []ReleaseRef{{Module: "web", Name: "web", Namespace: "ops"}}
	w.start()
	if p := w.module("web").Problems; len(p) != 1 || !strings.Contains(p[0], "release ops/web stays as it is") {
		t.Errorf("problems %v", p)
	}
	if len(w.gone) > 0 {
		t.Error("uninstalled")
	}
}

// The message of a rule names what another run has set as a secret while this one was under way.
func TestARefusalHidesSecretsOfOthers(t *testing.T) {
	b := code("1", hk("b", onStartup(0)))
	b.Queue = "other"
	m := mod("web", isOn(), code("1", hk("a", onStartup(0))), b)
	m.Tree.ValuesSchema = &tree.File{Path: "web/openapi/values.yaml", Data: []byte(`
properties:
  replicas: {type: integer}
  s:
    type: object
    properties: {word: {type: string, maxLength: 100}, size: {type: integer}}
    x-kubernetes-validations: [{rule: "!has(self.size) || self.size < 5", messageExpression: "'n is too large for ' + (has(self.word) ? self.word : 'nobody')"}]
`)}
	w := newWorld(t, m)
	w.hold = "web/b"
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) {
		e := set("s.word", "s3cret-word")
		e.Values[0].Secrets = [][]string{{}}
		return e, nil
	}
	w.start()
	w.state("web", "starting", "")
	run := w.held["web/b"][0].(RunHook)
	w.in(RunDone{Run: run.Run, Effects: set("s.size", int64(9))})
	w.advance(time.Second)
	all := strings.Join(w.notes, "\n")
	if !strings.Contains(all, "n is too large for") || strings.Contains(all, "s3cret-word") {
		t.Error(all)
	}
	for _, h := range w.e.Status().Hooks {
		if strings.Contains(h.LastError, "s3cret-word") {
			t.Error(h.LastError)
		}
	}
}
