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

	// An edit of something else does not end it, and neither does a restart.
	f.restart(map[string]string{"healthy/hooks/b.star": "hook(lambda ctx: values.set(\"text\", \"edited\"), name = \"b\", on = [startup()])\n"})
	f.waitData("healthy", map[string]string{"text": "edited"})
	f.waitState("deadly", status.ModuleFailed, "quarantined: 2 times in a row")
	// Its own edit does, and needs none.
	f.write(map[string]string{"deadly/hooks/a.star": "hook(lambda ctx: values.set(\"text\", \"mended\"), name = \"a\", on = [startup()])\n"})
	f.waitData("deadly", map[string]string{"text": "mended"})
	f.waitState("deadly", status.ModuleReady)
}

// A file during whose load the process was killed twice in a row is not loaded a third time.
func TestALoadThatKillsIsQuarantined(t *testing.T) {
	t.Parallel()
	f := newFixture(t, trees(mirror("healthy", on), mirror("deadly", on), probe(), map[string]string{
		"deadly/hooks/a.star": "big = \"x\" * (1 << 24)\nsums = [hash.sha256(big) for i in range(100000)]\n",
	}))
	f.start()
	for i := range 2 {
		f.eventually("the deadly file loads", func() error {
			// The mark of the process before is there until the new one has counted it.
			counted, err := filepath.Glob(filepath.Join(f.process.StateDir, "runs", "*.unclean"))
			if err != nil || len(counted) < i {
				return fmt.Errorf("counted are %v (%v)", counted, err)
			}
			marks, err := filepath.Glob(filepath.Join(f.process.StateDir, "runs", "*.running"))
			for _, mark := range marks {
				if text, err := os.ReadFile(mark); err == nil && string(text) == "1 load of deadly" {
					return nil
				}
			}
			return fmt.Errorf("there are only %v (%v)", marks, err)
		})
		f.process.Kill()
		f.start()
	}
	f.waitState("deadly", status.ModuleBroken, "quarantined: 2 times in a row starling was killed while it was loaded")
	f.waitRevision(f.ns, "healthy", 1)
	f.waitReady()

	f.write(map[string]string{"deadly/hooks/a.star": "hook(lambda ctx: values.set(\"text\", \"mended\"), name = \"a\", on = [startup()])\n"})
	f.waitData("deadly", map[string]string{"text": "mended"})
}
