package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/starling-operator/starling/modules/status"
)

// Hooks that fail, or run over a limit, hold back their own module and no other; the
// status names place, limit and the next try.
func TestFailingHooksBesideAHealthyModule(t *testing.T) {
	t.Parallel()
	spin := func(timeout string) string {
		return "\ndef spin(ctx):\n    for i in range(10000000):\n        for j in range(10000000):\n            pass\n\nhook(spin, on = [startup()], timeout = \"" + timeout + "\")\n"
	}
	f := newFixture(t, trees(
		mirror("healthy", on), mirror("sick", on), mirror("slow", on), mirror("endless", on), mirror("greedy", on), probe(),
		map[string]string{
			"sick/hooks/a.star":    "\ndef run(ctx):\n    fail(\"the moon is full\")\n\nhook(run, on = [startup()])\n",
			"slow/hooks/a.star":    spin("50ms"),
			"endless/hooks/a.star": spin("10m"), // of a slow machine: it is the steps that end it
			"greedy/hooks/a.star":  "\ndef grow(ctx):\n    all = []\n    for i in range(1 << 20):\n        all.append(\"x\" * (1 << 16))\n\nhook(grow, on = [startup()])\n",
		}))
	f.start()
	f.waitRevision(f.ns, "healthy", 1)

	for _, want := range []struct{ module, hook, place, says string }{
		{"sick", "run", "sick/hooks/a.star:3:9", "the moon is full"},
		{"slow", "spin", "slow/hooks/a.star:", "50ms, the time limit of one run"},
		{"endless", "spin", "endless/hooks/a.star:", "50000000 steps, the limit of one run"},
		{"greedy", "grow", "greedy/hooks/a.star:", "MiB of memory, the limit of one run"},
	} {
		f.waitState(want.module, status.ModuleFailed, want.place, want.says)
		f.eventually("hook of "+want.module+" shows its next try", func() error {
			h, err := f.hook(want.module + "/hooks/a.star:" + want.hook)
			if err != nil {
				return err
			}
			if h.State != status.HookFailed || h.NextTry == nil || h.Attempt < 1 || h.Failures < 1 {
				return fmt.Errorf("%+v", h)
			}
			return holds(h.LastError, []string{want.place, want.says})
		})
		noRelease(t, f.ns, want.module)
	}

	// Each of them has a reason, which is all that being ready needs.
	f.waitReady()
	f.probe()
	f.configure(map[string]string{"healthy": "text: still going"})
	f.waitRevision(f.ns, "healthy", 2)

	// The command has kubectl's habits.
	f.eventually("starling get hooks has all keys", func() error { // but in the moment of a run
		out, err := f.process.Get(t.Context(), "hooks", "sick")
		if err != nil {
			return err
		}
		var hooks []map[string]any
		if err := json.Unmarshal(out, &hooks); err != nil || len(hooks) != 1 {
			return fmt.Errorf("%w: %s", err, out)
		}
		for _, key := range []string{"id", "module", "state", "lastRun", "lastError", "nextTry", "attempt", "runs", "failures"} {
			if _, ok := hooks[0][key]; !ok {
				return fmt.Errorf("no %s: %s", key, out)
			}
		}
		return nil
	})
}

// A hook that failed and then succeeds lets its module go on.
func TestHookRecovers(t *testing.T) {
	t.Parallel()
	f := newFixture(t, trees(mirror("web", on), map[string]string{
		"web/hooks/a.star": `
def first(ctx):
    if not ctx.snapshots["cms"]:
        fail("no ConfigMap yet")
    values.set("text", ctx.snapshots["cms"][0])

hook(first, on = [k8s.watch("v1", "ConfigMap", name = "cms", namespaces = ["$NS"], labels = {"e2e": "$NS"},
                            filter = lambda o: o.data["text"])])
`}))
	f.start()
	f.waitState("web", status.ModuleFailed, "web/hooks/a.star:4:13", "no ConfigMap yet")
	noRelease(t, f.ns, "web")
	f.touch("found", "yes")
	f.waitData("web", map[string]string{"text": "yes"})
	f.waitState("web", status.ModuleReady)

	// Failing again keeps the last good value.
	f.deleteConfigMap("found")
	f.eventually("the hook fails", func() error {
		h, err := f.hook("web/hooks/a.star:first")
		if err == nil && !strings.Contains(h.LastError, "no ConfigMap yet") {
			err = fmt.Errorf("%+v", h)
		}
		return err
	})
	f.waitRevision(f.ns, "web", 1)
	f.waitData("web", map[string]string{"text": "yes"})
}
