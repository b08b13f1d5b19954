package live

import (
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

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
