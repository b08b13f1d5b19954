package engine

import (
	"errors"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/generation"
)

// readying is a module with def readiness().
func readying(m *generation.Module) *generation.Module {
	m.Readiness = noFunction{}
	return m
}

// unready is the answer of a module that is on, and not ready for this reason.
func unready(why string) builtins.Decision { return builtins.Decision{Unready: why} }

// A module whose readiness() waits is installed and upgraded; those that require it wait, others do not.
func TestReadinessHoldsThoseThatRequireTheModule(t *testing.T) {
	app, late := isOn(), isOn()
	app.Requires, late.After = []string{"db"}, []string{"db"}
	w := newWorld(t, readying(mod("db", isOn())), mod("app", app), mod("late", late))
	answer := unready("no primary yet")
	w.enabled["db"] = func(map[string]any) (builtins.Decision, error) { return answer, nil }
	move := func(n string) {
		w.in(Config{State: ConfigPresent, Data: map[string]string{"db": "size: " + n}})
	}
	w.start()
	w.state("db", status.ModuleWaiting, "no primary yet")
	w.state("app", status.ModuleBlocked, "waits for db to be ready")
	w.state("late", status.ModuleReady, "")
	if ready, why := w.e.Ready(); !ready {
		t.Errorf("Starling is not ready: %s", why)
	}
	move("1") // it is upgraded all the same
	w.wantReleased("db#1", "late#1", "db#2")
	answer = unready("")
	move("2")
	w.state("db", status.ModuleReady, "")
	w.state("app", status.ModuleReady, "")

	// A module that runs goes on when a requirement is not ready any more.
	answer = unready("the primary is gone")
	move("3")
	w.state("db", status.ModuleWaiting, "the primary is gone")
	w.state("app", status.ModuleReady, "")
}

// An error of readiness() is an answer: enabled() has said yes, and it is asked again later and later.
func TestReadinessThatFails(t *testing.T) {
	w := newWorld(t, readying(mod("db", isOn())))
	asked, failure := 0, errors.New("line 3")
	w.enabled["db"] = func(map[string]any) (builtins.Decision, error) {
		asked++
		if failure != nil {
			return unready("readiness(): " + failure.Error()), failure
		}
		return unready(""), nil
	}
	w.start()
	w.wantReleased("db#1")
	w.state("db", status.ModuleFailed, "readiness(): line 3")
	w.advance(10 * time.Second)
	if asked < 3 || asked > 6 {
		t.Errorf("asked %d times in 10 s", asked)
	}
	failure = nil
	w.advance(time.Minute)
	w.state("db", status.ModuleReady, "")
	before := asked
	w.advance(time.Hour)
	if asked != before {
		t.Error("it is asked though nothing has moved")
	}
}

// When enabled() fails in a module that runs, the last answer of both stays in force.
func TestReadinessBesideEnabledThatFails(t *testing.T) {
	db := readying(mod("db", isOn()))
	db.Enabled = noFunction{}
	w := newWorld(t, db)
	answer, failure := unready("no primary yet"), error(nil)
	w.enabled["db"] = func(map[string]any) (builtins.Decision, error) { return answer, failure }
	w.start()
	answer, failure = builtins.Decision{}, errBoom
	w.in(Config{State: ConfigPresent, Data: map[string]string{"db": "size: 1"}})
	w.state("db", status.ModuleWaiting, "no primary yet")
	answer, failure = builtins.Decision{Answer: builtins.AnswerDisabled, Reason: "no"}, nil
	w.advance(time.Minute)
	w.state("db", status.ModuleOff, "disabled: no")
}

// A reload may bring readiness(), and take it away.
func TestReadinessComesAndGoes(t *testing.T) {
	plain := func() *generation.Module { return mod("db", isOn()) }
	w := newWorld(t, plain())
	w.enabled["db"] = func(map[string]any) (builtins.Decision, error) { return unready("no primary yet"), nil }
	w.start()
	w.state("db", status.ModuleReady, "")
	w.reload(readying(plain()))
	w.state("db", status.ModuleWaiting, "no primary yet")
	w.reload(plain())
	w.state("db", status.ModuleReady, "")
}
