package live

import (
	"io"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/httpserver"
)

// received is the answer of this process to a request to /count.
func (f *fixture) received() string {
	f.Helper()
	hook := f.driver.generation.Load().Hook("web/hooks/a.star:count")
	in := httpserver.Incoming{Hook: hook.ID, Request: (&builtins.Received{Method: "POST", Path: "/count"}).Request(hook.Bindings[0].Name)}
	answer, err := f.driver.answerReceived(f.Context(), in)
	if err != nil {
		return "error: " + err.Error()
	}
	return string(answer.Reply.Body)
}

// A module may fail to begin where another process takes over, as one whose CRDs the API server refuses. Reviews of it
// are answered as before meanwhile, and requests wait for it, until it begins, or for a minute.
func TestAModuleThatDoesNotBeginAtATakeOver(t *testing.T) {
	files := maps.Clone(sayingTree)
	maps.Copy(files, countingTree)
	files["web/hooks/b.star"] = sayingTree["web/hooks/a.star"]
	files["web/crds/lamps.yaml"] = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lamps.example.com}
spec:
  group: example.com
  names: {kind: Lamp, plural: lamps}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`
	for _, lasts := range []time.Duration{20 * time.Second, 5 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, files)
			f.start()
			f.waitReady()
			f.say("one")
			time.Sleep(5 * time.Second)
			g := f.beside(files)
			var fails atomic.Bool
			g.answered = func(r *http.Request, resp *http.Response) {
				if fails.Load() && strings.Contains(r.URL.Path, "/customresourcedefinitions") {
					resp.Body.Close()
					resp.StatusCode, resp.Body = http.StatusForbidden, io.NopCloser(strings.NewReader("no"))
				}
			}
			g.start()
			time.Sleep(5 * time.Second)
			fails.Store(true)
			f.stop()
			if err := <-f.ended; err != nil {
				t.Error(err)
			}
			began := time.Now()
			end := time.AfterFunc(lasts, func() { fails.Store(false) })
			defer end.Stop()
			time.Sleep(300 * time.Millisecond)
			answer := make(chan string, 1)
			go func() { answer <- g.received() }()
			for time.Since(began) < min(lasts, 50*time.Second) {
				if got := g.reviewed(); got != "says one" {
					t.Fatalf("%s after the take-over a review %s", time.Since(began), got)
				}
				time.Sleep(time.Second)
			}
			got, waited := <-answer, time.Since(began)
			if lasts < time.Minute {
				if got != "request 1" || waited < lasts {
					t.Errorf("%s after the take-over a request that has waited for the module is answered: %s", waited, got)
				}
			} else if !strings.Contains(got, "module web is not running") || waited < 50*time.Second || waited > 62*time.Second {
				t.Errorf("%s after the take-over of a module that does not begin: %s", waited, got)
			}
			time.Sleep(2 * time.Minute)
			begun := lasts < 2*time.Minute
			if got := g.reviewed(); (got == "says one") != begun || !begun && !strings.Contains(got, "module web is not running") {
				t.Errorf("later a review %s", got)
			}
			if got := g.received(); (got == "request 2") != begun {
				t.Errorf("later a request: %s", got)
			}
			if ended, err := ask(t.Context(), g.driver, func(*engine.Engine) bool { return len(g.driver.outgoing) == 0 }); err != nil || !ended {
				t.Errorf("watches of the standby go on: %v", err)
			}
			g.stop()
			if err := <-g.ended; err != nil {
				t.Error(err)
			}
		})
	}
}
