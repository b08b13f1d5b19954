package executor

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/script"
	"github.com/starling-operator/starling/runtime/watch"
	"github.com/starling-operator/starling/stdlib"
)

// ending is a cluster whose watch of Nodes is not complete any more once a run has looked at it.
type ending struct {
	*counted
	ends bool
}

func (e *ending) Complete(id string) bool { return !e.ends || e.handed == 0 || id != "reads-nodes" }

const looking = `def desired(ctx, o):
    values.get("x")
    if not ctx.reached("2026-01-01T00:00:09Z"):
        found = [ctx.reads.nodes.get("n1"), ctx.reads.nodes.get("a/n1")] + ctx.reads.nodes.by("zone", "z") + ctx.reads.pods.all()
        return waiting(" ".join([n.metadata.name if n else "-" for n in found]))

controller(
    "two",
    k8s.watch("v1", "ServiceAccount"),
    desired,
    owns = [owns("v1", "ConfigMap")],
    reads = {"nodes": k8s.watch("v1", "Node", index = {"zone": "metadata.labels.zone"}), "pods": k8s.watch("v1", "Pod")},
)
`

// A run is handed the rows that it asks for. One that may have missed some counts for nothing.
func TestARunLooksRowsUp(t *testing.T) {
	read, err := tree.Read(fstest.MapFS{
		"web/module.star": {Data: []byte("module(enabled = True)\n")}, "web/hooks/a.star": {Data: []byte(looking)},
	}, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g := generation.Load(t.Context(), generation.Options{
		Tree: read, Std: stdlib.FS, Number: 1, Governor: script.NewGovernor(script.GovernorOptions{}),
		Log: func(string) builtins.Logger { return noLog{} },
	})
	if g.Modules["web"].Err != nil {
		t.Fatal(g.Modules["web"].Err)
	}
	h := g.Modules["web"].Hooks[0]
	cluster := &ending{counted: &counted{watches: map[string]*watch.Local{}}}
	x := New(Options{Generation: g, Now: time.Now, Watches: cluster, Log: func(string, string) builtins.Logger { return noLog{} }})
	named := func(kind, name string) map[string]any {
		labels := map[string]any{"zone": "z"}
		return map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name, "uid": name, "labels": labels}}
	}
	a := engine.RunHook{
		Hook: h, Module: g.Modules["web"], Attempt: 1, Watches: map[string]string{}, Each: h.ForEach, Key: "y", ObjectName: "y", Namespace: "d",
		Synced: map[string]bool{"reads-nodes": true}, Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	for _, b := range h.Bindings {
		a.Watches[b.Name] = b.Name
		spec := x.WatchSpec(t.Context(), engine.StartWatch{ID: "web/two#" + b.Name, Hook: h, Watch: b.Watch, Each: b.Name == h.ForEach})
		if labelled := spec.Labels != ""; labelled != strings.HasPrefix(b.Name, "children-") {
			t.Errorf("the watch %s selects %q", b.Name, spec.Labels)
		}
		cluster.watches[b.Name] = watch.NewLocal(spec)
		cluster.watches[b.Name].Replace(map[string][]map[string]any{
			"serviceaccount": {named("ServiceAccount", "y")}, "reads-nodes": {named("Node", "n1"), named("Node", "n2")}, "reads-pods": {named("Pod", "p")},
		}[b.Name], time.Now())
	}
	done, _ := x.RunHook(t.Context(), a)
	if done.Err != nil || done.Waits != "n1 - n1 n2" { // Pods are not served
		t.Errorf("waits for %q, error %v", done.Waits, done.Err)
	}
	if want := a.Now.Add(9 * time.Second); !done.Due.Equal(want) {
		t.Errorf("due at %s, want %s", done.Due, want)
	}
	var at []string
	for _, l := range done.Lookups {
		at = append(at, l.Watch+" "+l.At)
	}
	slices.Sort(at)
	if got := strings.Join(at, ", "); got != " *, reads-nodes /a/n1, reads-nodes /n1, reads-nodes zone=z, reads-pods *" {
		t.Errorf("has looked at %s", got)
	}
	a.Unserved = []string{"reads-pods"}
	if done, _ = x.RunHook(t.Context(), a); done.Err != nil || done.Waits != "v1 Pod, which is not served any more" || len(done.Lookups) == 0 {
		t.Errorf("waits for %q, error %v, has looked at %v", done.Waits, done.Err, done.Lookups)
	}
	a.Unserved = nil
	cluster.ends, cluster.handed = true, 0
	if done, _ = x.RunHook(t.Context(), a); !done.Incomplete || done.Waits != "" {
		t.Errorf("a run whose watch ends is %+v", done)
	}
}
