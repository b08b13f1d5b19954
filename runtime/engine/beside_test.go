package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine/subjects"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/object"
)

// carry hands an input over and carries out all that follows, but for runs of hooks and for
// what has to be kept, which it returns.
func (w *held) carry(in Input) (saves []Save) {
	queue := w.e.Handle(w.now, in)
	for len(queue) > 0 {
		a := queue[0]
		queue = queue[1:]
		switch a := a.(type) {
		case RunHook:
			id := strings.TrimPrefix(a.Hook.ID, "web/")
			if a.Request != nil {
				id += " request"
			}
			w.runs[id] = a
		case Save:
			saves = append(saves, a)
		default:
			if in := w.carryOut(a); in != nil {
				queue = append(queue, w.e.Handle(w.now, in)...)
			}
		}
	}
	return saves
}

// newBeside is a module with a hook that has a run in its lane, and a request that waits for
// that, while a tick of another hook is being written.
func newBeside(t *testing.T) (w *held, first Save) {
	w = &held{newWorld(t, mod("web", isOn(), hk("a", onStartup(0), onReceive("/x")), hk("daily", daily())), mod("shop", isOn())), map[string]RunHook{}}
	w.installed = []ReleaseRef{{Module: "web", Name: "web", Namespace: "ops"}}
	w.e = New(w.opts)
	w.carry(Config{State: ConfigPresent})
	saves := w.carry(Start{Generation: w.gen, Installed: w.installed})
	w.carry(ask(1, "web/a"))
	if len(saves) != 1 || len(w.runs) != 1 || w.runs["a"].Run == 0 {
		t.Fatalf("saves %v, runs %v", saves, w.runs)
	}
	return w, saves[0]
}

// ask is a request of http.receive.
func ask(id uint64, hook string) Requested {
	return Requested{ID: id, Hook: hook, Request: &builtins.Request{Binding: "receive"}}
}

func daily() builtins.Binding {
	return builtins.Binding{Name: "daily", Schedule: &builtins.ScheduleBinding{Cron: "0 3 * * *", CatchUp: true}}
}

// A request waits until what the run before it leaves is kept, and goes on from that.
func TestARequestGoesOnFromTheRunBeforeIt(t *testing.T) {
	w, first := newBeside(t)
	saves := w.carry(Saved{Op: first.Op})
	effects := set("a", 1)
	effects.State, effects.StateSecrets = map[string]any{"token": "s3cret"}, [][]string{{"token"}}
	saves = append(saves, w.carry(RunDone{Run: w.runs["a"].Run, Effects: effects})...)
	if len(saves) != 1 || len(w.runs) != 1 {
		t.Fatalf("writes %v, runs %v", saves, w.runs)
	}
	w.carry(Saved{Op: saves[0].Op})
	run := w.runs["a request"]
	if fmt.Sprint(run.State, run.StateSecrets) != "map[token:s3cret] [[token]]" || run.Attempt != 1 {
		t.Fatalf("the run of the request: %+v", run)
	}
	saves = w.carry(RunDone{Run: run.Run, Effects: set("a", 2)})
	if len(saves) != 1 || len(w.said) > 0 {
		t.Fatalf("writes %v, said %v", saves, w.said)
	}
	if data := saves[0].Data[object.DataKey(subjects.StateKey, "web/a")]; !strings.Contains(string(data), `"secrets":[["token"]]`) {
		t.Errorf("kept %s", data)
	}
	w.carry(Saved{Op: saves[0].Op})
	wantSaid(t, w.world, "request 1: <nil>")
	if memory := w.e.modules["web"].byKey["web/a"].subjects.At("").Memory(); fmt.Sprint(memory) != "{map[token:s3cret] [[token]]}" {
		t.Errorf("it remembers %v", memory)
	}
	if view := fmt.Sprint(w.e.Values("web")); view != "map[a:2 global:map[] replicas:1]" {
		t.Errorf("values %v", view)
	}
}

// The run that ends last has the last word: one that sets nothing takes away what the one
// before it has set, once that is kept.
func TestTheRunThatEndsLastCounts(t *testing.T) {
	w, first := newBeside(t)
	saves := w.carry(Saved{Op: first.Op})
	saves = append(saves, w.carry(RunDone{Run: w.runs["a"].Run, Effects: set("a", 1)})...)
	w.carry(Saved{Op: saves[0].Op})
	saves = w.carry(RunDone{Run: w.runs["a request"].Run})
	if len(w.said) > 0 || len(saves) != 1 {
		t.Fatalf("answered before it counts: %v; writes: %v", w.said, saves)
	}
	w.carry(Saved{Op: saves[0].Op})
	wantSaid(t, w.world, "request 1: <nil>")
	if view := fmt.Sprint(w.e.Values("web")); view != "map[global:map[] replicas:1]" {
		t.Errorf("values %v", view)
	}
}

// Runs of a module that is gone from the tree wait for no write: it may come back while
// that is under way, and must not be uninstalled then.
func TestAModuleComesBackDuringAWrite(t *testing.T) {
	w, first := newBeside(t)
	web, shop := w.gen.Modules["web"], w.gen.Modules["shop"]
	w.carry(RunDone{Run: w.runs["a"].Run, Effects: set("a", 1)})
	tree := func(mods ...*generation.Module) Reload {
		gen := &generation.Generation{Number: w.gen.Number + 1, Modules: map[string]*generation.Module{}, Tree: w.gen.Tree}
		for _, m := range mods {
			gen.Modules[m.Name], gen.Names = m, append(gen.Names, m.Name)
		}
		return Reload{Generation: gen}
	}
	w.carry(tree(shop))
	if w.e.module("web") != nil || runs(w.e) > 0 {
		t.Errorf("left are %v", w.e.askedBy)
	}
	wantSaid(t, w.world, "request 1: hook web/a: module web is not running: it does not answer now")
	w.carry(tree(shop, web))
	w.carry(Saved{Op: first.Op})
	if len(w.gone) > 0 || w.e.module("web") == nil {
		t.Errorf("uninstalled: %v", w.gone)
	}
	if view := fmt.Sprint(w.e.Values("web")); view != "map[global:map[] replicas:1]" {
		t.Errorf("runs of before count: %s", view)
	}
}

// Values that are too large are refused before an object is written.
func TestWhatIsTooLargeIsRefusedBeforeObjectsAreWritten(t *testing.T) {
	w := newHeld(t, "large")
	if commits, _ := w.done("large", writes(set("large", strings.Repeat("x", effect.MaxKept)))); len(commits) > 0 {
		t.Error("objects are written of a run whose values cannot be kept")
	}
	if got := w.e.modules["web"].byKey["web/large"].subjects.Failure(); !strings.Contains(got, "more than the 900 KiB that fit into a Secret") {
		t.Error(got)
	}
}

// Values and states of hooks outlive files that do not load for now, whichever of them load on
// the way.
func TestWhatIsKeptOutlivesFilesThatDoNotLoad(t *testing.T) {
	web := func() *generation.Module {
		return mod("web", isOn(), hk("a", onStartup(0), daily()), hk("b", onStartup(0)))
	}
	w := newWorld(t, web())
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) {
		effects := set("a", 1)
		effects.State = map[string]any{"n": int64(1)}
		return effects, nil
	}
	w.start()
	before := fmt.Sprint(copyKept(w.kept))
	broken := web()
	broken.Err = fmt.Errorf("b.star does not load")
	broken.Hooks = broken.Hooks[:1]
	w.gen.Modules["web"] = broken
	w.start()
	worse := web()
	worse.Err, worse.Hooks = fmt.Errorf("nothing loads"), nil
	w.reload(worse)
	if now := fmt.Sprint(copyKept(w.kept)); w.refused != "" || now != before {
		t.Errorf("%s: kept %s, before %s", w.refused, now, before)
	}
	var state map[string]any
	w.hooks["web/a"] = func(r RunHook) (effect.Effects, error) {
		state = r.State
		return effect.Effects{}, fmt.Errorf("no")
	}
	w.reload(web())
	if view := fmt.Sprint(w.e.Values("web")); fmt.Sprint(state) != "map[n:1]" || view != "map[a:1 global:map[] replicas:1]" {
		t.Errorf("state %v, values %s", state, view)
	}
	if now := fmt.Sprint(copyKept(w.kept)); now != before {
		t.Errorf("kept %s, before %s", now, before)
	}
}

// A schedule that moves to another queue with its hook has missed what it has missed.
func TestATickOutlivesAnotherQueue(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("a", daily())))
	w.start()
	before := fmt.Sprint(copyKept(w.kept))
	w.advance(time.Hour)
	moved := hk("a", daily())
	moved.Queue = "other"
	w.reload(mod("web", isOn(), moved))
	if now := fmt.Sprint(copyKept(w.kept)); now != before {
		t.Errorf("kept %s, before %s", now, before)
	}
	if len(w.runs) > 0 {
		t.Errorf("runs %v", w.runs)
	}
}

// A text that a hook remembers, and that turns out to be secret later, is known as secret
// from then on.
func TestAStateTurnsOutToHoldASecret(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("a", onWatch("nodes"))))
	effects := effect.Effects{Memory: effect.Memory{State: map[string]any{"token": "s3cret"}}}
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) { return effects, nil }
	w.start()
	effects.StateSecrets = [][]string{{"token"}}
	changed := WatchChanged{Events: []builtins.Event{{Type: "modified", Binding: "nodes", Name: "n"}}}
	for id := range w.e.watches {
		changed.ID = id
	}
	for range 2 {
		w.advance(time.Minute)
		w.in(changed)
	}
	if data := w.kept["web"][object.DataKey(subjects.StateKey, "web/a")]; !strings.Contains(string(data), `"secrets":[["token"]]`) {
		t.Errorf("kept %s", data)
	}
	if len(w.runs) != 3 || w.saves != 2 {
		t.Errorf("%d runs, %d writes", len(w.runs), w.saves)
	}
}
