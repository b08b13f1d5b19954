package generation_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-operator/starling/runtime/generation"
)

// A merged generation has the code and the values of modules that are held from the one before; the
// next load takes over what is as it was.
func TestMerge(t *testing.T) {
	files := twoModules()
	first := next(t, files, nil)
	files["values.yaml"] = "webEnabled: false\nweb: {replicas: 2}\nshop: {replicas: 2}\n"
	files["web/hooks/a.star"], files["shop/module.star"] = "def", "module(enabled = True)\n"
	files["new/hooks/a.star"] = "def run(ctx):\n    pass\nhook(run, on = [startup()])\n"
	broken := next(t, files, first)
	if got := broken.Merge(first, nil, nil); got != broken {
		t.Error("nothing is held, and it is another one")
	}
	merged := broken.Merge(first, map[string]string{"web": "def"}, map[string]string{"new": "no"})
	id := first.Modules["web"].Hooks[0].ID
	if merged.Modules["web"] != first.Modules["web"] || merged.Hook(id) != first.Hook(id) || merged.Modules["shop"] != broken.Modules["shop"] {
		t.Error("modules are not of the right generations")
	}
	if m := merged.Modules["new"]; len(m.Hooks) > 0 || m.Err == nil || merged.Hook("new/hooks/a.star:run") != nil {
		t.Errorf("a module that is unfit has hooks: %+v", m)
	}
	want := map[string]any{"webEnabled": true, "shop": map[string]any{"replicas": int64(2)}}
	if diff := cmp.Diff(want, merged.Tree.Values); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	if merged.Of("web") != first || merged.Of("shop") != merged || merged.HeldReason() != "module web: def" {
		t.Error("the code of a module is of another generation")
	}

	// Back as it was, web is the same module; shop is held now, with the tree of the merged one.
	files["web/hooks/a.star"], files["shop/hooks/a.star"] = hookText, "def"
	again := next(t, files, merged)
	if again.Modules["web"] != first.Modules["web"] || again.Modules["new"].Err != nil {
		t.Error("a module that is as it was is not taken over, or one that was unfit is not loaded")
	}
	last := again.Merge(merged, map[string]string{"shop": "def"}, nil)
	if of := last.Of("shop"); of.Tree != merged.Tree || of.Of("web") == first {
		t.Error("a generation holds on to all before")
	}
}

func TestConflictsOfMergedModules(t *testing.T) {
	files := map[string]string{
		"a/module.star": "module(release = \"x\")\n", "a/Chart.yaml": "name: a\nversion: 0.1.0\n", "a/templates/a.yaml": "a: 1\n",
		"b/Chart.yaml": "name: b\nversion: 0.1.0\n", "b/templates/a.yaml": "a: 1\n",
		"c/hooks/a.star": "hook(lambda ctx: None, name = \"r\", on = [http.receive(\"/x\", public = True)])\n", "d/hooks/a.star": "hook(lambda ctx: None, name = \"r\", on = [startup()])\n",
	}
	first := next(t, files, nil)
	files["a/module.star"], files["b/module.star"] = "module()\n", "module(release = \"x\")\n"
	files["c/hooks/a.star"], files["d/hooks/a.star"] = "", files["c/hooks/a.star"]
	second := next(t, files, first)
	for name, g := range map[string]*generation.Generation{"first": first, "second": second} {
		if got := g.Conflicts(); len(got) > 0 {
			t.Errorf("the %s has %v", name, got)
		}
	}
	got := second.Merge(first, map[string]string{"a": "held", "c": "held"}, nil).Conflicts()
	for name, want := range map[string]string{"a": "module b has the release x", "b": "module a has the release x", "c": "module d has the path /x", "d": "module c has the path /x"} {
		if !strings.HasPrefix(got[name], want) {
			t.Errorf("%s: %q, want %q of %v", name, got[name], want, got)
		}
	}
}
