package sim

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/effect"
)

const sets = `
def copies(ctx):
    k8s.apply_set("all", [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}} for name in ctx.snapshots["node"]])

hook(copies, on = [k8s.watch("v1", "Node", name = "node", filter = lambda o: o.metadata.name)])
`

// A filter that is edited so that it fails on an object keeps the hook from running, so that
// its set stays, through a restart, until the filter is mended.
func TestAnEditedFilterThatFailsKeepsTheHookFromRunning(t *testing.T) {
	files := map[string]string{
		"web/module.star":  "module(enabled = True, grants = [grant(\"v1\", \"ConfigMap\", verbs = [\"write\"])])\n",
		"web/hooks/a.star": sets,
	}
	mapped := fstest.MapFS{}
	for path, text := range files {
		mapped[path] = &fstest.MapFile{Data: []byte(text)}
	}
	read, err := tree.Read(mapped, tree.Options{})
	w := world(t, read, err)
	for _, name := range []string{"a", "b"} {
		if err := w.Apply(node(name)); err != nil {
			t.Fatal(err)
		}
	}
	there := func() (out string) {
		for _, name := range []string{"a", "b", "c"} {
			if obj, err := w.Get(effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "starling-system", Name: name}); err == nil && obj != nil {
				out += name
			}
		}
		return out
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	want := func(members string) {
		t.Helper()
		if got := there(); got != members {
			t.Fatalf("the set is %q, want %q", got, members)
		}
	}
	must(w.Start(t.Context()))
	want("ab")

	files["web/hooks/a.star"] = strings.Replace(sets, "o.metadata.name)", `o.metadata.name if o.metadata.name != "a" else fail("no a"))`, 1)
	must(w.Reload(t.Context(), edited(t, w, files)))
	must(w.Apply(node("c")))
	must(w.Settle(t.Context()))
	want("ab")
	w.Stop()
	must(w.Start(t.Context()))
	must(w.Delete(effect.Ref{APIVersion: "v1", Kind: "Node", Name: "b"}))
	must(w.Settle(t.Context()))
	want("ab")
	h := w.Status().Hooks[0]
	if text := fmt.Sprint(h.State, " ", h.LastError); h.State != status.HookFailed || !strings.Contains(text, "Node a,") || !strings.Contains(text, "web/hooks/a.star:5:") || !strings.Contains(text, "no a") {
		t.Errorf("the hook is %s", text)
	}
	if m := w.Status().Modules[0]; m.State != status.ModuleFailed || !strings.Contains(m.Reason, "no a") {
		t.Errorf("the module is %s: %s", m.State, m.Reason)
	}

	files["web/hooks/a.star"] = sets
	must(w.Reload(t.Context(), edited(t, w, files)))
	must(w.Settle(t.Context()))
	want("ac")
}
