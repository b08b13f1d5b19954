package live

import (
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/starling-operator/starling/runtime/sim/store"
)

// module is the state of a Module object, and the message of Ready.
func (f *fixture) module(name string) (state, ready string) {
	f.Helper()
	obj, err := f.store.Get(store.Target{GVR: moduleObjects, Name: name})
	if err != nil {
		f.Fatal(err)
	}
	is, _ := obj["status"].(map[string]any)
	state, _ = is["state"].(string)
	_, _, ready = f.shown(name)
	return state, ready
}

// The process that leads gets a newer tree and upgrades a release; one that stood by takes over, and its tree is late.
// It leaves the release as it is until the newer tree is here, or until its own one counts; other modules go on.
func TestALateTreeTakesNoReleaseBack(t *testing.T) {
	for name, arrives := range map[string]bool{"it arrives": true, "it does not": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				older := maps.Clone(driftTree)
				newer := maps.Clone(driftTree)
				newer["web/templates/a.yaml"] = strings.Replace(driftTree["web/templates/a.yaml"], "ours", "newer", 1)
				f := newFixture(t, older, func(f *fixture) { f.objects = true })
				f.start()
				f.waitReady()
				time.Sleep(time.Minute)
				g := f.beside(older)
				g.start()
				time.Sleep(times.Retry)
				f.reload(newer)
				time.Sleep(time.Minute)
				if f.text("a") != "newer" {
					t.Fatal("the newer tree is not carried out")
				}
				f.stop()
				if err := <-f.ended; err != nil {
					t.Fatal(err)
				}
				for !g.leads() {
					time.Sleep(time.Second)
				}
				time.Sleep(time.Minute)
				if got := g.text("a"); got != "newer" {
					t.Fatalf("a minute after the take-over there is %q", got)
				}
				state, reason := g.module("web")
				if state != "waiting" || !strings.Contains(reason, "has the chart of a newer module tree, and stays as it is until") {
					t.Errorf("the module is %s: %s", state, reason)
				}
				if failed := testutil.ToFloat64(g.driver.metrics.releases.WithLabelValues("web", "failed")); failed > 0 || len(g.hookEvents()) > 0 {
					t.Errorf("%v releases have failed; Events: %q", failed, g.hookEvents())
				}
				if arrives {
					g.reload(newer)
				}
				time.Sleep(treeArrives)
				if got, want := g.text("a"), map[bool]string{true: "newer", false: "ours"}[arrives]; got != want {
					t.Errorf("at last there is %q, want %q", got, want)
				}
			})
		})
	}
}
