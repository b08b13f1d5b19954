package engine

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/effect"
)

// kept is what a run leaves that fails, and keeps its effects.
func kept(n int64) effect.Effects {
	eff := set("n", n)
	eff.Writes = []effect.Write{{Kind: effect.WriteApply}}
	eff.Metrics = []effect.Metric{{Kind: effect.MetricSet, Name: "n", Value: float64(n)}}
	eff.Messages = []effect.Message{{Request: effect.Request{URL: "https://chat.example"}}}
	eff.Requeue = time.Hour
	return eff
}

var errKept = &builtins.FailError{Msg: "unreachable", Keep: true}

// A run that fails with keep has all committed, and is a failed one all the same.
func TestARunThatFailsMayKeepItsEffects(t *testing.T) {
	n, err := int64(1), error(nil)
	w := newWorld(t, mod("web", isOn(), hk("a", onWatch("nodes"))))
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) { return kept(n), err }
	w.start()
	w.wantReleased("web#1")
	wantSaid(t, w, "web/a sends https://chat.example")
	before := w.writes
	n, err = 2, errKept
	w.changed("web/a#nodes")
	if w.writes != before+1 || w.metrics["n"] != 2 {
		t.Errorf("%d writes, metric %v", w.writes-before, w.metrics["n"])
	}
	wantSaid(t, w, "web/a sends https://chat.example")
	w.wantReleased("web#1", "web#2")
	if last := w.released[len(w.released)-1]; !strings.Contains(last, "n:2") {
		t.Errorf("released %s", last)
	}
	if got := w.e.modules["web"].byKey["web/a"].subjects.Failure(); !strings.Contains(got, "unreachable") {
		t.Errorf("the failure is %q", got)
	}
	// It is tried again as any other.
	w.runs, err = nil, nil
	w.advance(time.Second)
	w.wantRuns("web/a modified")
	w.state("web", status.ModuleReady, "")

	// Its values are in force after a restart, too.
	err = errKept
	n = 3
	w.changed("web/a#nodes")
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) { return effect.Effects{}, errBoom }
	w.start()
	if last := w.released[len(w.released)-1]; !strings.Contains(last, "n:3") {
		t.Errorf("released %s", last)
	}
}

// Where the effects cannot be committed, the run has failed for both reasons, and is tried
// again even if it says that this is of no use.
func TestEffectsThatAreKeptMayBeRefused(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("a", onWatch("nodes"))))
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) {
		return kept(1), &builtins.FailError{Msg: "unreachable", Keep: true, Permanent: true}
	}
	w.commitErr = errors.New("0 of 1 written")
	w.start()
	w.state("web", status.ModuleFailed, "unreachable; 0 of 1 written")
	if w.metrics["n"] != 0 {
		t.Errorf("metric is %v", w.metrics["n"])
	}
	w.commitErr, w.runs = nil, nil
	w.advance(time.Second)
	w.wantRuns("web/a sync")
	if w.metrics["n"] != 1 {
		t.Errorf("metric is %v", w.metrics["n"])
	}
	w.advance(time.Hour)
	w.wantRuns("web/a sync") // for its own values, which have changed
	w.advance(time.Hour)
	w.wantRuns() // now it is of no use
}

// A request is answered with the error once all is committed.
func TestARequestThatFailsMayKeepItsEffects(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("a", onReceive("/x"))))
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) { return kept(1), errKept }
	w.start()
	w.in(Requested{ID: 1, Hook: "web/a", Request: &builtins.Request{Binding: "receive"}})
	wantSaid(t, w, "web/a sends https://chat.example", "request 1: unreachable")
	if w.metrics["n"] != 1 || w.writes != 1 {
		t.Errorf("metric %v, %d writes", w.metrics["n"], w.writes)
	}
}

// A cleanup that fails lets no object go, whatever it keeps.
func TestACleanupThatFailsKeepsTheFinalizer(t *testing.T) {
	w := eachWorld(t, true, "x")
	w.start()
	var kinds []effect.WriteKind
	w.told = func(a Action) {
		if a, ok := a.(Commit); ok {
			for _, wr := range a.Writes {
				kinds = append(kinds, wr.Kind)
			}
		}
	}
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) { return kept(1), errKept }
	w.happens("deleted", "x")
	for _, kind := range kinds {
		if kind == effect.WriteRemoveFinalizer {
			t.Error("the finalizer goes")
		}
	}
	if len(kinds) == 0 || w.metrics["n"] != 1 {
		t.Error("nothing is kept")
	}
	if _, there := w.objects["x"]; !there {
		t.Error("the object is gone")
	}
}
