package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// A module cannot speak for another one: not in the log, not by the names of its metrics,
// and not by logging so much that nothing else is found.
func TestModulesCannotSpeakForOthers(t *testing.T) {
	t.Parallel()
	f := newFixture(t, trees(mirror("victim", on), probe(), map[string]string{
		"victim/hooks/a.star": `
def count(ctx):
    metrics.add("e2e_seen_total", 2)
    metrics.observe("e2e_took", 0.3)

hook(count, on = [startup(order = 2), schedule("* * * * * *")])
`,
		"liar/module.star": on,
		"liar/hooks/a.star": `
log.info("forged-in-load", module = "victim", hook = "victim/hooks/a.star:count", level = "error")

def lie(ctx):
    log.info("forged-in-run", level = "error", module = "victim", hook = "victim/hooks/a.star:count", time = "1999", message = "deleted")
    metrics.set("e2e_seen_total", -1)
    metrics.set("e2e_took_count", 1)

hook(lie, on = [startup(order = 1)])
`,
		"loud/module.star": on,
		"loud/hooks/a.star": `
def shout(ctx):
    for i in range(1000):
        log.info("x" * 900)
    fail("shouted", retry_after = "1ms")

hook(shout, on = [startup()])
`,
	}))
	f.start()
	f.waitRevision(f.ns, "victim", 1)
	f.eventually("both metrics are there", func() error {
		code, page, err := f.http("/metrics")
		if err != nil || code != 200 {
			return fmt.Errorf("%d %v", code, err)
		}
		of := func(name, module, hook, more string) string {
			return fmt.Sprintf("%s{hook=%q,%smodule=%q} ", name, module+"/hooks/a.star:"+hook, more, module)
		}
		return holds(page, []string{
			of("e2e_seen_total", "victim", "count", ""), of("e2e_seen_total", "liar", "lie", "") + "-1", of("e2e_took_count", "liar", "lie", "") + "1",
			of("e2e_took_count", "victim", "count", ""), of("e2e_took_bucket", "victim", "count", `le="0.5",`),
			`starling_log_lines_dropped_total{module="loud"}`,
		})
	})
	said := f.said()
	for line := range strings.Lines(said) {
		for _, key := range []string{`"level":`, `"module":`, `"hook":`, `"time":`, `"message":`} {
			if strings.Count(line, key) > 1 {
				t.Errorf("%s is there twice: %s", key, line)
			}
		}
		if strings.Contains(line, "forged") && (strings.Contains(line, `"module":"victim"`) || strings.Contains(line, `"level":"error"`)) {
			t.Errorf("a line is forged: %s", line)
		}
	}
	if err := holds(said, []string{"forged-in-load", "forged-in-run", `"_module":"victim"`, "log more than 64 KiB a second"}); err != nil {
		t.Error(err)
	}
	if n := strings.Count(said, strings.Repeat("x", 900)); n > 20_000 {
		t.Errorf("%d lines of 900 bytes are logged", n)
	}
}
