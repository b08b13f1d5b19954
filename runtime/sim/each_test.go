package sim

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/effect"
)

const parents = `
def kids(ctx):
    o = ctx.object
    kid = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": o.metadata.name + "-kid", "namespace": "a"}}
    k8s.apply_set("kids", [kid], owner = o)
    metrics.expire("g")
    metrics.set(o.get("data.metric", "size"), 1, labels = {"of": ctx.key}, group = "g")

hook(kids, on = [k8s.watch("v1", "ConfigMap", name = "parents", labels = "role=parent")], for_each = "parents")
`

// The state that Starling keeps and shows of an object goes with the object: while it
// watches, and while it does not.
func TestNothingStaysOfObjectsThatAreGone(t *testing.T) {
	read, err := tree.Read(fstest.MapFS{
		"web/module.star":  {Data: []byte(`module(enabled = True, namespace = "a", grants = [grant("v1", "ConfigMap", verbs = ["write"])])`)},
		"web/hooks/a.star": {Data: []byte(parents)},
	}, tree.Options{})
	w := world(t, read, err)
	ref := func(name string) effect.Ref {
		return effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: name}
	}
	parent := func(name, metric string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"metric": metric},
			"metadata": map[string]any{"name": name, "namespace": "a", "labels": map[string]any{"role": "parent"}}}
	}
	do := func(err error) {
		t.Helper()
		if err == nil && w.engine != nil {
			err = w.Settle(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	expect := func(metrics string) {
		t.Helper()
		n := 0
		for _, held := range w.State() {
			if strings.Contains(held.Name, "starling-set-") {
				n++
			}
		}
		var names []string
		for name := range w.Metrics.Values() {
			names = append(names, strings.TrimPrefix(name, "web/hooks/a.star:kids "))
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); n != 1 || got != metrics {
			t.Errorf("%d records of sets of one hook, metrics %q, want %q", n, got, metrics)
		}
	}
	for _, name := range []string{"x", "y", "z"} {
		do(w.Apply(parent(name, "size")))
	}
	do(w.Start(t.Context()))
	expect("size{of=a/x} size{of=a/y} size{of=a/z}")
	do(w.Apply(parent("x", "weight"))) // its group is its own
	expect("size{of=a/y} size{of=a/z} weight{of=a/x}")
	do(w.Delete(ref("x")))
	expect("size{of=a/y} size{of=a/z}")

	w.Stop()
	do(w.Delete(ref("y")))
	do(w.Start(t.Context()))
	expect("size{of=a/z}")
	do(w.Apply(parent("x", "size")))
	expect("size{of=a/x} size{of=a/z}")
}
