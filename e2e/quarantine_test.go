package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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
	})).alone("a state folder counts what has killed its process")
	f.start()
	f.killTwice("deadly/hooks/a.star:grind")
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

// The process that follows knows of a hook during which two processes were killed, though each has another state
// folder.
func TestAHookThatKillsIsKnownToTheNextProcess(t *testing.T) {
	t.Parallel()
	f := newFixture(t, trees(mirror("healthy", on), mirror("deadly", on), probe(), map[string]string{
		"deadly/hooks/a.star": `
def grind(ctx):
    big = "x" * (1 << 24)
    for i in range(100000):
        hash.sha256(big)

hook(grind, on = [startup()], timeout = "10m")
`,
	})).alone("each process has another state folder")
	f.start()
	for range 2 {
		f.waitRevision(f.ns, "healthy", 1)
		f.waitState("healthy", status.ModuleReady)
		f.waitState("probe", status.ModuleReady)
		since := time.Now() // nothing else runs any more
		f.eventually("the Lease says that one hook runs, in this process", func() error {
			var marks struct{ Running []string }
			text := f.lease().Annotations["starling.dev/marks"]
			if err := json.Unmarshal([]byte(text), &marks); err != nil || len(marks.Running) != 1 || f.holder() == "" || !f.lease().Spec.RenewTime.After(since) {
				return fmt.Errorf("it says %q", text)
			}
			return nil
		})
		f.process.Kill()
		f.process = nil
		nobody := []byte(`{"spec": {"holderIdentity": ""}}`) // as once it has run out
		if _, err := shared.Client.CoordinationV1().Leases(f.ns).Patch(t.Context(), f.name, types.MergePatchType, nobody, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		f.start()
		f.eventually("the next process holds the Lease", func() error {
			if f.holder() == "" {
				return errors.New("nobody does")
			}
			return nil
		})
	}
	f.waitState("deadly", status.ModuleFailed, "quarantined: 2 times in a row", "annotation starling.dev/marks of the Lease")
	f.waitReady()
	noRelease(t, f.ns, "deadly")
}

// A file during whose load the process was killed twice in a row is not loaded a third time.
func TestALoadThatKillsIsQuarantined(t *testing.T) {
	t.Parallel()
	f := newFixture(t, trees(mirror("healthy", on), mirror("deadly", on), probe(), map[string]string{
		"deadly/hooks/a.star": "big = \"x\" * (1 << 24)\nsums = [hash.sha256(big) for i in range(100000)]\n",
	})).alone("a state folder counts what has killed its process")
	f.start()
	f.killTwice("load of deadly")
	f.waitState("deadly", status.ModuleBroken, "quarantined: 2 times in a row starling was killed while it was loaded")
	f.waitRevision(f.ns, "healthy", 1)
	f.waitReady()

	f.write(map[string]string{"deadly/hooks/a.star": "hook(lambda ctx: values.set(\"text\", \"mended\"), name = \"a\", on = [startup()])\n"})
	f.waitData("deadly", map[string]string{"text": "mended"})
}

// Code that is no run and during which the process was killed twice in a row is not
// evaluated a third time: enabled(), chart_values(), a filter. All else goes on, and an edit
// of the code ends it.
func TestAnEvaluationThatKillsIsQuarantined(t *testing.T) {
	t.Parallel()
	const grinds = `[hash.sha256("x" * (1 << 24)) for i in range(100000)]`
	watching := func(filter string) string {
		return "def see(ctx):\n    values.set(\"text\", \",\".join(ctx.snapshots[\"cms\"]))\n\n" +
			"hook(see, on = [k8s.watch(\"v1\", \"ConfigMap\", name = \"cms\", namespaces = [\"$NS\"], object_names = [\"seen\"], filter = lambda o: " + filter + ")])\n"
	}
	for name, c := range map[string]struct {
		mark         string
		file         string
		code, mended string
		text         string // that the chart shows in the end
	}{
		"enabled": {
			mark: "enabled() of deadly", file: "deadly/module.star", text: "plain",
			code:   "def enabled():\n    return len(" + grinds + ") > 0\n\nmodule(enabled = True)\n",
			mended: on,
		},
		"chart-values": {
			mark: "chart_values() of deadly", file: "deadly/module.star", text: "chosen",
			code:   "def chart_values(v):\n    return {\"text\": str(" + grinds + ")}\n\nmodule(enabled = True)\n",
			mended: "def chart_values(v):\n    return {\"text\": \"chosen\"}\n\nmodule(enabled = True)\n",
		},
		"filter": {
			mark: "the filter of deadly/hooks/a.star:see#cms", file: "deadly/hooks/a.star", text: "mended",
			code: watching(grinds), mended: watching("o.data.text"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, trees(mirror("healthy", on), mirror("deadly", on), probe(), map[string]string{c.file: c.code})).alone("a state folder counts what has killed its process")
			shared.Apply(t, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: seen, namespace: %s}, data: {text: mended}}", f.ns))
			f.start()
			f.killTwice(c.mark)
			f.waitState("deadly", status.ModuleFailed, c.mark+": quarantined: 2 times in a row")
			f.waitRevision(f.ns, "healthy", 1)
			f.probe()
			noRelease(t, f.ns, "deadly")

			f.write(map[string]string{c.file: c.mended})
			f.waitData("deadly", map[string]string{"text": c.text})
			f.waitState("deadly", status.ModuleReady)
			f.waitReady()
		})
	}
}

// killTwice kills the process twice while it evaluates what this mark says, and nothing
// else, and starts it once more.
func (f *fixture) killTwice(mark string) {
	f.t.Helper()
	for i := range 2 {
		f.eventually(mark+" alone is evaluated", func() error {
			if !f.process.Alive() {
				f.t.Fatal("the process has ended")
			}
			// The mark of the process before is there until the new one has counted it, with
			// those of others that have begun between the look and the kill.
			counted, err := filepath.Glob(filepath.Join(f.process.StateDir, "runs", "*.unclean"))
			if err != nil || len(counted) < i {
				return fmt.Errorf("counted are %v (%v)", counted, err)
			}
			running, err := f.marks()
			if err != nil || len(running) != 1 || running[0] != mark {
				return fmt.Errorf("evaluated are %q (%v)", running, err)
			}
			return nil
		})
		f.process.Kill()
		f.freeLease()
		f.start()
	}
}

// marks are those of all that is evaluated now.
func (f *fixture) marks() (running []string, err error) {
	text, err := os.ReadFile(filepath.Join(f.process.StateDir, "runs", "running"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // nothing was evaluated yet
	}
	for line := range strings.Lines(string(text)) {
		if rest, is := strings.CutPrefix(line, "1 "); is {
			_, what, _ := strings.Cut(strings.TrimSpace(rest), " ")
			running = append(running, what)
		}
	}
	return running, err
}
