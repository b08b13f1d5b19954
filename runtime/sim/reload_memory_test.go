package sim

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/starling-operator/starling/modules/tree"
)

// Memory of earlier generations goes when nothing of them is in force any more:
// after 500 reloads there is as much as after 5.
func TestMemoryOfManyReloads(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes some seconds")
	}
	const modules = 20
	// A library of some size, and filters, which watches keep.
	lib := "text = '" + strings.Repeat("x", 50_000) + "'\ndef name(o):\n    return o.metadata.name\n"
	hook := func(version int) string {
		return fmt.Sprintf(`load("//lib/x.star", "name", "text")
def a(ctx):
    values.set("n", %d)
    ctx.state.set("n", len(text))
hook(a, on = [k8s.watch("v1", "Node", name = "node", filter = lambda o: name(o))])
hook(lambda ctx: None, name = "other-%d", on = [k8s.watch("v1", "Pod", filter = "{name: .metadata.name}"), schedule("0 * * * *")])
`, version, version%3)
	}
	files := map[string]string{"lib/x.star": lib}
	for i := range modules {
		files[fmt.Sprintf("m%02d/module.star", i)] = "module(enabled = True)\n"
		files[fmt.Sprintf("m%02d/hooks/a.star", i)] = hook(0)
	}
	mapped := fstest.MapFS{}
	for path, text := range files {
		mapped[path] = &fstest.MapFile{Data: []byte(text)}
	}
	read, err := tree.Read(mapped, tree.Options{})
	w := world(t, read, err)
	if err := w.Apply(node("a")); err != nil {
		t.Fatal(err)
	}
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	version := 0
	reload := func(n int) uint64 {
		t.Helper()
		for range n {
			version++
			files[fmt.Sprintf("m%02d/hooks/a.star", version%modules)] = hook(version)
			if err := w.Reload(t.Context(), edited(t, w, files)); err != nil {
				t.Fatal(err)
			}
			if got := len(w.Runs); got > 3*modules || w.Status().Generation != version+1 {
				t.Fatalf("%d runs, generation %d", got, w.Status().Generation)
			}
			w.Runs = nil
		}
		runtime.GC()
		runtime.GC() // pools of buffers go with the second one
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	reload(modules) // each module once, so that all are of different generations
	before := reload(5)
	after := reload(495)
	t.Logf("%d KiB, then %d KiB", before>>10, after>>10)
	if after > before+before/20 {
		t.Errorf("%d KiB after 500 reloads, %d KiB after 5", after>>10, before>>10)
	}
}
