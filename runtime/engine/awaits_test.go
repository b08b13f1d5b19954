package engine

import (
	"errors"
	"testing"
	"time"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/lane"
)

// A release that awaits a kind is tried again once another one may have brought it. The words of an error are no sign of
// that: a template may fail with the same ones.
func TestAReleaseThatAwaitsAKind(t *testing.T) {
	w := newWorld(t, mod("web", isOn()), mod("api", isOn()), mod("shop", isOn()))
	w.helmErr["web"] = &lane.Awaits{Err: errors.New("nobody knows Thing"), For: lane.AwaitsKind}
	w.helmErr["api"] = errors.New("templates/a.yaml:1: the cluster does not serve kind Thing of us")
	w.start()
	w.advance(time.Hour)
	retryAt := func(name string) time.Time { return w.e.modules[name].pass.Failed().At }
	if !retryAt("web").After(w.now.Add(time.Second)) || !retryAt("api").After(w.now.Add(time.Second)) {
		t.Fatal("they do not wait")
	}
	at := retryAt("api")
	delete(w.helmErr, "web")
	w.in(Config{State: ConfigPresent, Data: map[string]string{"shop": "color: red\n"}})
	if !w.e.modules["web"].pass.Ready() {
		t.Errorf("another release has come, and the next try is %s later", retryAt("web").Sub(w.now))
	}
	if retryAt("api") != at {
		t.Error("a release whose error holds the words is tried again")
	}
}

// A release that a newer tree has made waits: nothing of it has failed.
func TestAReleaseOfANewerTreeWaits(t *testing.T) {
	const why = "release apps/web has the chart of a newer module tree"
	w := newWorld(t, mod("web", isOn()))
	w.helmErr["web"] = &lane.Awaits{Err: errors.New(why), For: lane.AwaitsTree}
	w.start()
	if is := w.e.Status().Modules[0]; is.State != status.ModuleWaiting || is.Reason != why || is.LastError != "" || is.NextTry == nil {
		t.Errorf("it is %+v", is)
	}
	if failures := w.e.Failures(); len(failures) > 0 {
		t.Errorf("failures: %+v", failures)
	}
	w.helmErr["web"] = errors.New("no")
	w.advance(time.Hour)
	if is := w.e.Status().Modules[0]; is.State != status.ModuleFailed || is.LastError != "no" {
		t.Errorf("afterwards it is %+v", is)
	}
}

// A section in whose place a Module object speaks is no failure: it is what the user wants.
func TestASectionThatDoesNotCount(t *testing.T) {
	w := newWorld(t, mod("web", isOn()))
	w.start()
	w.in(Config{State: ConfigPresent, Data: map[string]string{"web": "color: red"}, ObjectsState: ConfigPresent, Objects: map[string]ConfigObject{"web": {Values: "{color: blue}"}}})
	if is := w.e.Status().Config; len(is.Problems) != 1 || len(is.Unknown) != 1 {
		t.Errorf("it is %+v", is)
	}
	if failures := w.e.Failures(); len(failures) > 0 {
		t.Errorf("failures: %+v", failures)
	}
}
