package live

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/engine"
)

const guardTree = `
def check(ctx):
    if ctx.request.object.get("broken"):
        fail("broken as asked")
    if values.get("strict", False):
        return deny("strict")

hook(check, name = "check", on = [k8s.validate("v1", "Pod", failure_policy = "ignore", namespaces = ["x"])])
`

// Reviews are answered while the engine is busy, and people are shown what came of them.
func TestReviewsNeedNoEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, map[string]string{"web/module.star": "module(enabled = True)\n", "web/hooks/a.star": guardTree})
		var log strings.Builder
		f.driver.o.Log = zerolog.New(&log)
		id := f.driver.generation.Load().Modules["web"].Hooks[0].ID
		binding := f.driver.generation.Load().Hook(id).Bindings[0].Name
		asked := func(object map[string]any) (builtins.Response, error) {
			review := &builtins.Review{UID: "1", Operation: "CREATE", Object: object, APIVersion: "v1", Kind: "Pod"}
			return f.driver.answer(t.Context(), id, review.Request(binding))
		}
		if _, err := asked(nil); !errors.Is(err, engine.ErrNotReady) || !strings.Contains(err.Error(), "does not hold the lease") {
			t.Errorf("before the start: %v", err)
		}
		f.start()
		time.Sleep(time.Minute) // the clock of the bubble
		synctest.Wait()

		busy := make(chan struct{})
		go func() {
			_, _ = ask(t.Context(), f.driver, func(*engine.Engine) bool { <-busy; return true })
		}()
		synctest.Wait()
		answer, err := asked(map[string]any{"kind": "Pod"})
		if err != nil || answer.Denied != nil {
			t.Errorf("while the engine is busy: %v, %v", answer, err)
		}
		for range 2 {
			if _, err := asked(map[string]any{"broken": true}); err == nil || !strings.Contains(err.Error(), "broken as asked") {
				t.Errorf("a hook that fails: %v", err)
			}
		}
		close(busy)

		shown := func() status.Hook {
			t.Helper()
			s, err := f.driver.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return s.Hooks[0]
		}
		if h := shown(); h.State != status.HookFailed || h.Runs != 3 || h.Failures != 2 || h.LastRun == nil || !strings.Contains(h.LastError, "broken as asked") {
			t.Errorf("status %+v", h)
		}
		if _, err := asked(map[string]any{"kind": "Pod"}); err != nil {
			t.Error(err)
		}
		if h := shown(); h.State != status.HookOK || h.Runs != 4 || h.LastError != "" {
			t.Errorf("status %+v", h)
		}
		if n := testutil.ToFloat64(f.driver.metrics.runs.WithLabelValues("web", id)); n != 4 {
			t.Errorf("%v runs are counted", n)
		}
		if n := strings.Count(log.String(), "(the request failed)"); n != 1 || !strings.Contains(log.String(), "runs again") {
			t.Errorf("log:\n%s", log.String())
		}

		f.driver.gone(engine.Gone{Module: "web"})
		if _, err := asked(nil); !errors.Is(err, engine.ErrNotReady) || !strings.Contains(err.Error(), "module web is not running") {
			t.Errorf("once the module is gone: %v", err)
		}
		f.stop()
		if err := <-f.ended; err != nil {
			t.Error(err)
		}
	})
}

// A client that hangs up gives its place back when the run has ended, and not before: else runs that nobody waits for
// would be bounded by nothing.
func TestARequestLastsAsLongAsItsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, map[string]string{"web/module.star": "module(enabled = True)\n", "web/hooks/a.star": guardTree})
		h := f.driver.generation.Load().Modules["web"].Hooks[0]
		f.start()
		time.Sleep(time.Minute)
		synctest.Wait()
		ctx, hangUp := context.WithCancel(t.Context())
		hangUp()
		review := &builtins.Review{UID: "1", Operation: "CREATE", Object: map[string]any{}, APIVersion: "v1", Kind: "Pod"}
		if _, err := f.driver.answer(ctx, h.ID, review.Request(h.Bindings[0].Name)); !errors.Is(err, context.Canceled) {
			t.Errorf("it is told %v", err)
		}
		f.driver.answers.mu.Lock()
		runs := f.driver.answers.hooks[h.ID].runs
		f.driver.answers.mu.Unlock()
		if runs != 1 {
			t.Errorf("%d runs have ended once the request has", runs)
		}
		f.stop()
		if err := <-f.ended; err != nil {
			t.Error(err)
		}
	})
}

// Metrics of a review count once it has been answered, and not when it fails.
func TestReviewsCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, map[string]string{"web/module.star": "module(enabled = True)\n", "web/hooks/a.star": `
def check(ctx):
    metrics.add("asked", 1, labels = {"op": ctx.request.operation})
    if ctx.request.object.get("broken"):
        fail("broken as asked")
    return deny("no")

hook(check, on = [k8s.validate("v1", "Pod", failure_policy = "ignore")])
`})
		h := f.driver.generation.Load().Modules["web"].Hooks[0]
		f.start()
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, object := range []map[string]any{{}, {"broken": true}, {}} {
			review := &builtins.Review{UID: "1", Operation: "CREATE", Object: object, APIVersion: "v1", Kind: "Pod"}
			_, _ = f.driver.answer(t.Context(), h.ID, review.Request(h.Bindings[0].Name))
		}
		var text strings.Builder
		reg := prometheus.NewRegistry()
		reg.MustRegister(f.driver.metrics.hooks)
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			if family.GetName() == "asked" {
				text.WriteString(family.String())
			}
		}
		if !strings.Contains(text.String(), `value:2`) {
			t.Errorf("metrics: %s", text.String())
		}
		f.stop() // runs are written down until then
		if err := <-f.ended; err != nil {
			t.Error(err)
		}
	})
}
