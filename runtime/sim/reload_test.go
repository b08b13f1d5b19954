package sim

import (
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/stdlib"
)

// edited is the generation after an edit; an empty text removes a file.
func edited(t *testing.T, w *World, files map[string]string) *generation.Generation {
	t.Helper()
	next := fstest.MapFS{}
	for path, text := range files {
		if text != "" {
			next[path] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	read, err := tree.Read(next, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return generation.Load(t.Context(), generation.Options{Tree: read, Std: stdlib.FS, Number: w.Status().Generation + 1, Previous: w.o.Generation,
		Log: func(string) builtins.Logger { return noLog{} }})
}

const counts = `
def count(ctx):
    values.set("nodes", len(ctx.snapshots["node"]))
    metrics.set("nodes", len(ctx.snapshots["node"]))

hook(count, on = [k8s.watch("v1", "Node", filter = "{name: .metadata.name}")])
`

func charted(name string) map[string]string {
	return map[string]string{
		name + "/module.star": "module(enabled = True)\n", name + "/hooks/a.star": counts, name + "/Chart.yaml": "apiVersion: v2\nname: " + name + "\nversion: 0.1.0\n",
		name + "/templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {nodes: {{ .Values.nodes | quote }}}\n",
	}
}

// The engine of the real process, Helm and hooks: an edit runs what was edited, a module
// that is gone is uninstalled, and one that breaks changes nothing.
func TestReload(t *testing.T) {
	files := charted("web")
	maps.Copy(files, charted("shop"))
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
	data := func(name string) any {
		obj, err := w.Get(effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "starling-system", Name: name})
		if err != nil || obj == nil {
			return err
		}
		return obj["data"].(map[string]any)["nodes"]
	}
	if data("web") != "1" || data("shop") != "1" {
		t.Fatalf("nodes are %v and %v", data("web"), data("shop"))
	}
	runs := len(w.Runs)

	files["web/hooks/a.star"] = strings.Replace(counts, `len(ctx.snapshots["node"]))`, `len(ctx.snapshots["node"]) + 10)`, 1)
	if err := w.Reload(t.Context(), edited(t, w, files)); err != nil {
		t.Fatal(err)
	}
	if got := w.Runs[runs:]; data("web") != "11" || len(got) != 1 || got[0].Hook != "web/hooks/a.star:count" {
		t.Errorf("nodes are %v after %d runs", data("web"), len(got))
	}

	broken := map[string]string{}
	maps.Copy(broken, files)
	// The others come into force.
	broken["web/hooks/a.star"], broken["shop/hooks/a.star"] = "def", strings.Replace(counts, `len(ctx.snapshots["node"]))`, `len(ctx.snapshots["node"]) + 20)`, 1)
	if err := w.Reload(t.Context(), edited(t, w, broken)); err == nil || !strings.HasPrefix(err.Error(), "module web: web/hooks/a.star:1") {
		t.Errorf("error is %v", err)
	}
	if data("web") != "11" || data("shop") != "21" {
		t.Errorf("nodes are %v and %v", data("web"), data("shop"))
	}
	if err := w.Apply(node("b")); err != nil {
		t.Fatal(err)
	}
	if err := w.Settle(t.Context()); err != nil || data("web") != "12" {
		t.Errorf("the old one does not go on: %v, %v", data("web"), err)
	}

	for path := range charted("web") {
		files[path] = ""
	}
	if err := w.Reload(t.Context(), edited(t, w, files)); err != nil {
		t.Fatal(err)
	}
	if data("web") != nil || data("shop") != "2" {
		t.Errorf("nodes are %v and %v", data("web"), data("shop"))
	}
	if s := w.Status(); len(s.Modules) != 1 || s.Modules[0].State != status.ModuleReady || s.Generation != 4 {
		t.Errorf("status is %+v", s)
	}
	for key := range w.Metrics.Values() {
		if strings.HasPrefix(key, "web/") {
			t.Errorf("metric %s is still there", key)
		}
	}
}
