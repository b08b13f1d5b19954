package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// Two hooks of two modules that wake each other are slowed down, and the status names them;
// a third one that watches the same objects is not.
func TestHooksThatWakeEachOther(t *testing.T) {
	t.Parallel()
	ring := func(from, to string) string {
		return fmt.Sprintf(`
def spin(ctx):
    n = ctx.snapshots["%[1]s"][0]["n"] if ctx.snapshots["%[1]s"] else 0
    k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "%[2]s"}, "data": {"n": str(n + 1)}})

hook(spin, on = [k8s.watch("v1", "ConfigMap", name = "%[1]s", namespaces = ["$NS"], object_names = ["%[1]s"], filter = lambda o: {"n": int(o.data.n)})])
`, from, to)
	}
	const grants = `module(enabled = True, grants = [grant("v1", "ConfigMap", verbs = ["apply"])])`
	f := newFixture(t, map[string]string{
		"ping/module.star": grants, "ping/hooks/a.star": ring("pong", "ping"),
		"pong/module.star": grants, "pong/hooks/a.star": ring("ping", "pong"),
		"sees/module.star": `module(enabled = True)`,
		"sees/hooks/a.star": `
def see(ctx):
    pass

hook(see, on = [k8s.watch("v1", "ConfigMap", name = "both", namespaces = ["$NS"], object_names = ["ping", "pong"])])
`,
	})
	f.start()
	f.eventually("the ring is found", func() error {
		st, err := f.status()
		if err != nil {
			return err
		}
		for _, m := range st.Modules {
			if strings.Contains(strings.Join(m.Problems, "\n"), "wakes itself by way of p") {
				return nil
			}
		}
		return errors.New("no module says so")
	})
	runs := func(id string) int {
		h, err := f.hook(id)
		if err != nil {
			t.Fatal(err)
		}
		return h.Runs
	}
	// It would go round a hundred times a second.
	if ping := runs("ping/hooks/a.star:spin"); ping > 60 {
		t.Errorf("%d runs before the ring was found", ping)
	}
	if m, err := f.module("sees"); err != nil || len(m.Problems) > 0 {
		t.Errorf("who only sees the ring: %v, %v", m.Problems, err)
	}
}
