package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-operator/starling/modules/status"
)

// A hook during which the process was killed twice in a row is not run a third time;
// all others are.
func TestAHookThatKillsIsQuarantined(t *testing.T) {
	t.Parallel()
	f := newFixture(t, trees(mirror("healthy", on), mirror("deadly", on), probe(), map[string]string{
		// Few steps and much time: it is running whenever one looks.
		"deadly/hooks/a.star": `
def grind(ctx):
    big = "x" * (1 << 24)
    for i in range(100000):
        hash.sha256(big)

hook(grind, on = [startup()], timeout = "10m")
`,
	}))
	f.start()
	for range 2 {
		f.eventually("the deadly hook runs", func() error {
			h, err := f.hook("deadly/hooks/a.star:grind")
			if err != nil || h.State != status.HookRunning {
				return fmt.Errorf("it is %q (%v)", h.State, err)
			}
			marks, err := filepath.Glob(filepath.Join(f.process.StateDir, "runs", "*.running"))
			running := 0
			for _, mark := range marks {
				if text, err := os.ReadFile(mark); err == nil && !strings.HasPrefix(string(text), "0") {
					running++
				}
			}
			if err == nil && running != 1 {
				err = fmt.Errorf("%d of the marks %v are of runs, want one", running, marks)
			}
			return err
		})
		f.process.Kill()
		f.freeLease()
		f.start()
	}
	f.waitState("deadly", status.ModuleFailed, "quarantined: 2 times in a row")
	f.waitRevision(f.ns, "healthy", 1)
	f.waitReady()
	noRelease(t, f.ns, "deadly")
}
