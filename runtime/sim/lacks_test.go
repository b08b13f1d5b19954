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

const copiesOfEach = `
def copies(ctx):
    n = ctx.state.get("n", 0) + 1
    ctx.state.set("n", n)
    if ctx.object == "reads":
        k8s.apply_set("all", [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "all-" + name}} for name in ctx.snapshots["node"]])
        return
    members = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": ctx.object}, "data": {"n": str(n)}}]
    k8s.apply_set("copies-" + ctx.key, members, owner = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": ctx.key}})

hook(copies, on = [k8s.watch("v1", "Node", name = "node", filter = lambda o: o.metadata.name)], for_each = "node")
`

// With for_each an object that the filter fails on waits alone: what is made and remembered of
// it stays, the others have their runs, and none of these can take the snapshot for whole.
func TestAFilterThatFailsOnOneObjectHoldsThatObjectAlone(t *testing.T) {
	files := map[string]string{
		"web/module.star":  "module(enabled = True, grants = [grant(\"v1\", \"ConfigMap\", verbs = [\"write\"])])\n",
		"web/hooks/a.star": copiesOfEach,
	}
	mapped := fstest.MapFS{}
	for path, text := range files {
		mapped[path] = &fstest.MapFile{Data: []byte(text)}
	}
	read, err := tree.Read(mapped, tree.Options{})
	w := world(t, read, err)
	must := func(err error) {
		t.Helper()
		if err == nil && w.engine != nil {
			err = w.Settle(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	// data is what the set of an object says, "" when it is not there.
	data := func(name string) string {
		obj, err := w.Get(effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "starling-system", Name: name})
		if err != nil || obj == nil {
			return ""
		}
		return fmt.Sprint(obj["data"])
	}
	want := func(a, b, c string) {
		t.Helper()
		if got := [3]string{data("a"), data("b"), data("c")}; got != [3]string{a, b, c} {
			t.Fatalf("made are %q", got)
		}
	}
	for _, name := range []string{"a", "b"} {
		must(w.Apply(node(name)))
	}
	must(w.Start(t.Context()))
	want("map[n:1]", "map[n:1]", "")

	bad := strings.Replace(copiesOfEach, "o.metadata.name)", `o.metadata.name if o.metadata.name != "a" else fail("no a"))`, 1)
	files["web/hooks/a.star"] = bad
	must(w.Reload(t.Context(), edited(t, w, files)))
	must(w.Apply(node("c")))
	want("map[n:1]", "map[n:2]", "map[n:1]")
	w.Stop()
	must(w.Start(t.Context()))
	want("map[n:1]", "map[n:3]", "map[n:2]")
	must(w.Apply(node("reads")))
	h := w.Status().Hooks[0]
	if text := fmt.Sprint(h.State, " ", h.LastError); h.State != status.HookFailed || !strings.Contains(text, "Node a,") || !strings.Contains(text, "no a") {
		t.Errorf("the hook is %s", text)
	}
	last := w.Runs[len(w.Runs)-1]
	if last.Err == nil || !strings.Contains(last.Err.Error(), `ctx.snapshots["node"] lacks Node a: the filter fails on it`) {
		t.Errorf("a run that reads the snapshot: %v", last.Err)
	}
	must(w.Delete(effect.Ref{APIVersion: "v1", Kind: "Node", Name: "reads"}))

	files["web/hooks/a.star"] = copiesOfEach
	must(w.Reload(t.Context(), edited(t, w, files)))
	want("map[n:2]", "map[n:4]", "map[n:3]")
	if h := w.Status().Hooks[0]; h.State != status.HookOK {
		t.Errorf("the hook is %s: %s", h.State, h.LastError)
	}

	// An object that goes while it lacks a result is dropped as any other.
	files["web/hooks/a.star"] = bad
	must(w.Reload(t.Context(), edited(t, w, files)))
	must(w.Delete(effect.Ref{APIVersion: "v1", Kind: "Node", Name: "a"}))
	must(w.Apply(node("a")))
	files["web/hooks/a.star"] = copiesOfEach
	must(w.Reload(t.Context(), edited(t, w, files)))
	if got := data("a"); got != "map[n:1]" {
		t.Errorf("the object that is there anew has made %q", got)
	}
}
