package live

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/starling-operator/starling/runtime/engine"
)

// While sets cannot be dropped, one goroutine for each hook tries it, however often its module begins anew.
func TestSetsAreDroppedByOneGoroutinePerHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var works atomic.Bool
		f := newFixture(t, map[string]string{"web/module.star": `module(name = "web")`}, func(f *fixture) {
			f.before = func(r *http.Request) int {
				if !works.Load() && strings.HasSuffix(r.URL.Path, "/secrets") {
					return http.StatusForbidden
				}
				return 0
			}
		})
		running := func() int {
			synctest.Wait()
			tasks := f.driver.busy()
			tasks.mu.Lock()
			defer tasks.mu.Unlock()
			return tasks.running
		}
		for range 50 {
			f.driver.do(engine.DropSets{Module: "web", Hook: "web/hooks/a.star:f", Keys: map[string]bool{"a": true}})
		}
		f.driver.do(engine.DropSets{Module: "web", Hook: "web/hooks/b.star:f"})
		if n := running(); n != 2 {
			t.Errorf("%d goroutines for two hooks", n)
		}
		works.Store(true)
		time.Sleep(10 * time.Minute)
		if n := running(); n != 0 {
			t.Errorf("%d goroutines go on", n)
		}
	})
}
