package live

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.starlark.net/starlark"
)

// Runs that do not end are charged to their module as long as they compute: with more of
// them than its share, its other runs wait, the status says so, and other modules go on.
func TestRunsThatDoNotEndStayChargedToTheirModule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, map[string]string{
			"web/module.star": "module(enabled = True)\n",
			"web/hooks/a.star": "[hook(lambda ctx: None, name = n, queue = n, on = [startup()], timeout = \"1s\", retry = retry(min = \"10s\", max = \"10s\"))" +
				" for n in [\"a\", \"b\", \"c\"]]\n",
		})
		release := make(chan struct{})
		var begun atomic.Int64
		for _, h := range f.driver.generation.Load().Modules["web"].Hooks {
			h.Fn = starlark.NewBuiltin("endless", func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
				begun.Add(1)
				<-release
				return starlark.None, nil
			})
		}
		f.start()
		f.waitReady()
		time.Sleep(3 * time.Second)
		f.driver.slots.mu.Lock()
		running := f.driver.slots.running
		f.driver.slots.mu.Unlock()
		if running != 0 || begun.Load() != 3 {
			t.Errorf("%d runs have begun, and %d have a slot a second past their limit", begun.Load(), running)
		}
		time.Sleep(2 * time.Minute)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if f.driver.slots.take(ctx, "web") {
			t.Error("another run of the module begins")
		}
		if why := f.driver.slots.problem("web"); !strings.HasPrefix(why, "its hooks compute more than one processor does") {
			t.Errorf("the status says %q", why)
		}
		if !f.driver.slots.take(t.Context(), "other") {
			t.Error("another module waits")
		}
		f.driver.slots.give("other", 0)
		if begun.Load() != 3 {
			t.Errorf("%d runs have begun", begun.Load())
		}
		close(release)
		time.Sleep(20 * time.Minute) // it computes less meanwhile
		f.driver.slots.mu.Lock()
		m := f.driver.slots.modules["web"]
		f.driver.slots.mu.Unlock()
		if begun.Load() == 3 || m != nil && m.ahead > maxAhead {
			t.Errorf("%d runs have begun after the end of those: %+v", begun.Load(), m)
		}
		f.stop()
		if err := <-f.ended; err != nil {
			t.Error(err)
		}
	})
}
