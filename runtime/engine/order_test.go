package engine

import (
	"testing"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/effect"
)

func weighted(n int) builtins.ModuleDecl { return builtins.ModuleDecl{Enabled: true, Weight: &n} }

// A module that has trouble holds up no one who only comes after it, and nothing
// else has to happen for them to go on.
func TestTroubleLetsThoseBehindGoOn(t *testing.T) {
	t.Run("a watch that fails", func(t *testing.T) {
		w := newWorld(t, mod("a", weighted(1), hk("n", onWatch("nodes"))), mod("b", weighted(2)))
		w.unsynced["a/n#nodes"] = true
		w.start()
		w.state("b", status.ModuleBlocked, "comes after a")
		w.in(WatchFailed{ID: "a/n#nodes", Reason: "forbidden"})
		w.wantReleased("b#1")
	})
	t.Run("a before_helm hook that fails", func(t *testing.T) {
		w := newWorld(t, mod("a", weighted(1), hk("n", onStartup(0), onBefore())), mod("b", weighted(2)))
		w.hooks["a/n"] = func(r RunHook) (effect.Effects, error) {
			if r.Events[0].Type == "helm" {
				return effect.Effects{}, errBoom
			}
			return effect.Effects{}, nil
		}
		w.installed = []ReleaseRef{{Module: "old", Name: "old", Namespace: "x"}}
		w.start()
		w.state("a", status.ModuleFailed, "boom")
		w.wantReleased("b#1")
		if len(w.gone) != 1 {
			t.Errorf("gone %v, want old", w.gone)
		}
	})
}

// A module that requires one that goes off goes off too, at once.
func TestOffReachesThoseWhoRequireIt(t *testing.T) {
	answer := builtins.Decision{Answer: builtins.AnswerOn}
	decl := isOn()
	decl.Requires = []string{"db"}
	db := mod("db", isOn())
	db.Tree.Chart, db.Enabled = nil, noFunction{}
	w := newWorld(t, mod("app", decl), db)
	w.enabled["db"] = func(map[string]any) (builtins.Decision, error) { return answer, nil }
	move := func(n string) {
		w.in(Config{State: ConfigPresent, Data: map[string]string{"db": "n: " + n}})
	}
	w.start()
	w.state("app", status.ModuleReady, "")
	answer = builtins.Decision{Answer: builtins.AnswerWaiting, Reason: "later"}
	move("1")
	w.state("db", status.ModuleWaiting, "later")
	w.state("app", status.ModuleReady, "")
	answer = builtins.Decision{Answer: builtins.AnswerDisabled, Reason: "no"}
	move("2")
	w.state("db", status.ModuleOff, "no")
	w.state("app", status.ModuleOff, "requires db, which is off; its release stays")
}

// An error in an earlier life of a module says nothing of this one.
func TestANewLifeForgetsOldErrors(t *testing.T) {
	w := newWorld(t, mod("a", weighted(1), hk("n", onStartup(0))), mod("b", weighted(2)))
	w.hooks["a/n"] = func(RunHook) (effect.Effects, error) { return effect.Effects{}, errBoom }
	w.start()
	w.state("a", status.ModuleFailed, "boom")
	w.in(Config{State: ConfigPresent, Data: map[string]string{"aEnabled": "false", "bEnabled": "false"}})
	w.hold = "a/n"
	w.in(Config{State: ConfigPresent, Data: map[string]string{"aEnabled": "true", "bEnabled": "true"}})
	w.state("a", status.ModuleStarting, "waits for hook n")
	w.state("b", status.ModuleBlocked, "comes after a")
}

// A pause leaves releases alone and nothing else: hooks run, also those of modules
// that require a paused one which is there.
func TestAPauseHoldsUpNoHooks(t *testing.T) {
	app := isOn()
	app.Requires = []string{"db", "tuner"}
	tuner := mod("tuner", isOn(), hk("a", onStartup(0)))
	tuner.Tree.Chart = nil
	w := newWorld(t, mod("app", app, hk("a", onStartup(0))), mod("db", isOn()), tuner)
	w.opts.PauseAll = true
	w.installed = []ReleaseRef{{Module: "db", Name: "db", Namespace: "ops"}}
	w.start()
	w.state("db", status.ModulePaused, "")
	w.state("tuner", status.ModuleReady, "")
	w.state("app", status.ModulePaused, "")
	w.wantRuns("tuner/a startup", "app/a startup")
	w.wantReleased()
}
