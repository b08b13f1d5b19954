package generation_test

import (
	"context"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/stdlib"
)

const (
	hookText = `load("//lib/x.star", "name")
def run(ctx):
    pass
hook(run, on = [k8s.watch("v1", "Node", filter = lambda o: name(o))])
`
	libText = "def name(o):\n    return o.metadata.name\n"
)

// next loads a tree after another generation.
func next(t *testing.T, files map[string]string, previous *generation.Generation) *generation.Generation {
	t.Helper()
	mapped := fstest.MapFS{}
	for path, text := range files {
		mapped[path] = &fstest.MapFile{Data: []byte(text)}
	}
	read, err := tree.Read(mapped, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return generation.Load(context.Background(), generation.Options{Tree: read, Std: stdlib.FS, Previous: previous,
		Log: func(string) builtins.Logger { return noLog{} }})
}

type noLog struct{}

func (noLog) Log(builtins.Level, string, []builtins.Field) {}

func twoModules() map[string]string {
	return map[string]string{
		"values.yaml": "webEnabled: true\n", "lib/x.star": libText, "lib/y.star": "z = 1\n",
		"web/module.star": "module(enabled = True)\n", "web/hooks/a.star": hookText, "web/Chart.yaml": "name: web\nversion: 0.1.0\n",
		"web/templates/a.yaml": "a: 1\n", "web/openapi/values.yaml": "type: object\n",
		"shop/module.star": "module()\n", "shop/hooks/a.star": "def run(ctx):\n    pass\nhook(run, on = [startup()])\n",
		"global/a.star": "def run(ctx):\n    pass\nhook(run, on = [startup()])\n",
	}
}

// A module is taken over, by its pointer, unless something of it has changed.
func TestUnchangedModulesAreTakenOver(t *testing.T) {
	for name, tt := range map[string]struct {
		edit map[string]string // an empty text removes
		want string            // what is new
	}{
		"nothing":              {nil, ""},
		"the tree's values":    {map[string]string{"values.yaml": "webEnabled: false\n"}, ""},
		"a hook":               {map[string]string{"web/hooks/a.star": hookText + "\n"}, "web"},
		"a file that it loads": {map[string]string{"lib/x.star": libText + "\n"}, "web"},
		"a file nobody loads":  {map[string]string{"lib/y.star": "z = 2\n"}, ""},
		"a test":               {map[string]string{"web/hooks/a_test.star": "def test_a(t):\n    pass\n"}, ""},
		"a template":           {map[string]string{"web/templates/a.yaml": "a: 2\n"}, "web"},
		"a schema":             {map[string]string{"web/openapi/values.yaml": "type: object\nproperties: {}\n"}, "web"},
		"CRDs":                 {map[string]string{"shop/crds/a.yaml": "kind: X\n"}, "shop"},
		"a kind":               {map[string]string{"shop/module.star": "module()\ncrd('example.org/v1', 'Lamp', {'a': 'string'})\n"}, "shop"},
		"a global hook":        {map[string]string{"global/a.star": "def run(ctx):\n    pass\nhook(run, on = [schedule('* * * * *')])\n"}, "global"},
		"a new module":         {map[string]string{"new/module.star": "module()\n"}, "new"},
		"a module is gone":     {map[string]string{"shop/module.star": "", "shop/hooks/a.star": ""}, ""},
		"a hook that breaks":   {map[string]string{"web/hooks/a.star": "def"}, "web"},
		"another weight": {map[string]string{"web/module.star": "", "web/hooks/a.star": "", "web/Chart.yaml": "", "web/templates/a.yaml": "", "web/openapi/values.yaml": "",
			"010-web/module.star": "module(enabled = True)\n", "010-web/hooks/a.star": hookText}, "web"},
	} {
		t.Run(name, func(t *testing.T) {
			first := next(t, twoModules(), nil)
			files := twoModules()
			maps.Copy(files, tt.edit)
			maps.DeleteFunc(files, func(_, text string) bool { return text == "" })
			second := next(t, files, first)
			var changed []string
			for _, m := range second.All() {
				old := first.Modules[m.Name]
				if m.Global {
					old = first.Global
				}
				if m != old {
					changed = append(changed, m.Name)
				}
			}
			if got := strings.Join(changed, " "); got != tt.want {
				t.Errorf("new are %q, want %q", got, tt.want)
			}
		})
	}
}

// Kinds that module.star declares are no change of the folder.
func TestAModuleWithKindsIsTakenOver(t *testing.T) {
	files := map[string]string{"web/module.star": "module()\ncrd('example.org/v1', 'Lamp', {'a': 'string'})\n", "shop/module.star": "module()\n"}
	first := next(t, files, nil)
	files["shop/module.star"] = "module(weight = 5)\n"
	second := next(t, files, first)
	if first.Modules["web"] != second.Modules["web"] || len(second.Modules["web"].Tree.CRDs) != 1 {
		t.Errorf("it is loaded anew: %v", second.Modules["web"].Err)
	}
	if first.Modules["shop"] == second.Modules["shop"] {
		t.Error("a module that has changed is taken over")
	}
}

// The checks between modules do not touch a module of the generation before.
func TestAnErrorOfTheNextGenerationIsNotOneOfThisOne(t *testing.T) {
	files := map[string]string{
		"web/module.star": `module(requires = ["db"])`, "db/module.star": "module()",
		"web/hooks/a.star": "def run(ctx):\n    pass\nhook(run, on = [startup()])\n",
	}
	first := next(t, files, nil)
	delete(files, "db/module.star")
	second := next(t, files, first)
	if first.Modules["web"].Err != nil || second.Modules["web"].Err == nil {
		t.Fatalf("errors are %v and %v", first.Modules["web"].Err, second.Modules["web"].Err)
	}
	files["db/module.star"] = "module()"
	if third := next(t, files, first); third.Modules["web"] != first.Modules["web"] {
		t.Error("what came back is not what it was")
	}
	if third := next(t, files, second); third.Modules["web"].Err != nil {
		t.Errorf("a mended module has still %v", third.Modules["web"].Err)
	}
}

// A filter is the same as long as its code is, with what it loads, wherever it lies.
func TestFilterIdentities(t *testing.T) {
	at := func(g *generation.Generation, hook string) string {
		t.Helper()
		h := g.Hook(hook)
		if h == nil {
			t.Fatalf("there is no hook %s: %v", hook, g.Modules["web"].Err)
		}
		return h.Bindings[0].Watch.FilterID
	}
	first := next(t, twoModules(), nil)
	before := at(first, "web/hooks/a.star:run")

	files := twoModules()
	files["web/hooks/a.star"] = strings.Replace(hookText, "    pass", "    print(1)", 1)
	if at(next(t, files, first), "web/hooks/a.star:run") == before {
		t.Error("its file has changed, and the filter could call what has")
	}
	files["web/hooks/a.star"] = strings.Replace(hookText, "lambda o: name(o)", "name", 1)
	shared := at(next(t, files, first), "web/hooks/a.star:run")
	files["web/hooks/a.star"] += "\n# edited\n"
	if at(next(t, files, first), "web/hooks/a.star:run") != shared {
		t.Error("a function of a library does not depend on who takes it for a filter")
	}
	files["lib/x.star"] = strings.Replace(libText, "name\n", "uid\n", 1)
	if at(next(t, files, first), "web/hooks/a.star:run") == shared {
		t.Error("the library has changed")
	}

	moved := map[string]string{}
	for path, text := range twoModules() {
		moved[strings.Replace(path, "web/", "010-web/", 1)] = text
	}
	second := next(t, moved, first)
	if at(second, "web/hooks/a.star:run") != before || second.Hook("web/hooks/a.star:run").Digest != first.Hook("web/hooks/a.star:run").Digest {
		t.Error("a module that has moved has the same code")
	}
}

// So are the functions that say whom events are for.
func TestWakesHaveIdentities(t *testing.T) {
	hook := `load("//lib/keys.star", "key")

def run(ctx):
    pass

hook(run, for_each = "node", on = [k8s.watch("v1", "Node"), k8s.watch("v1", "Pod", wakes = key)])
`
	files := map[string]string{
		"web/module.star": "module()", "web/hooks/a.star": hook,
		"lib/keys.star": "def key(o):\n    return o.spec.nodeName\n",
	}
	at := func() string {
		g := next(t, files, nil)
		h := g.Hook("web/hooks/a.star:run")
		if h == nil {
			t.Fatal(g.Modules["web"].Err)
		}
		return h.Bindings[1].Watch.WakesID
	}
	before := at()
	files["web/hooks/a.star"] += "\n# edited\n"
	if after := at(); before == "" || strings.Contains(before, "keys.star") || after != before {
		t.Errorf("the id is %q, and %q after an edit of another file", before, after)
	}
	files["lib/keys.star"] = strings.Replace(files["lib/keys.star"], "o.spec.nodeName", "[o.spec.nodeName]", 1)
	if at() == before {
		t.Error("the code has changed, and the id has not")
	}
}

// A file that a hook reads as it loads is as much an input as its code.
func TestFilesThatAreReadAreInputs(t *testing.T) {
	files := twoModules()
	files["web/lib/texts.star"] = "texts = module.files(\"texts/*\")\n"
	files["web/hooks/a.star"] = "load(\"../lib/texts.star\", \"texts\")\ntext = module.file(\"a.txt\")\n" + hookText
	files["web/a.txt"], files["web/texts/b"] = "a", "b"
	before := next(t, files, nil)
	for _, step := range []struct {
		path, text string
		want       bool
	}{
		{"web/other.txt", "nobody reads it", false},
		{"web/a.txt", "another", true},
		{"web/texts/b", "another", true},
		{"web/texts/c", "", true},
		{"shop/a.txt", "of another module", false},
	} {
		files[step.path] = step.text
		now := next(t, files, before)
		web, was := now.Modules["web"], before.Modules["web"]
		if web.Err != nil {
			t.Fatal(web.Err)
		}
		if got := web != was && web.Hooks[0].Digest != was.Hooks[0].Digest; got != step.want {
			t.Errorf("%s: the hook is another one: %v", step.path, got)
		}
		before = now
	}
	delete(files, "web/a.txt")
	if broken := next(t, files, before).Modules["web"]; broken.Err == nil || !strings.Contains(broken.Err.Error(), "there is no file web/a.txt") {
		t.Errorf("got %v", broken.Err)
	}
}

// A library that modules load is there once, whichever generations they come from.
func TestLibrariesAreTakenOver(t *testing.T) {
	files := twoModules()
	files["web/hooks/a.star"] = `load("@std//k8s.star", "is_ready")` + "\n" + hookText
	files["shop/hooks/a.star"] = `load("@std//k8s.star", "is_ready")` + "\n" + hookText
	loaded := func(g *generation.Generation, path, name string) any {
		t.Helper()
		globals, err := g.Host.Load(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		return globals[name]
	}
	first := next(t, files, nil)
	files["web/hooks/a.star"] += "# edited\n"
	second := next(t, files, first)
	if second.Modules["web"] == first.Modules["web"] {
		t.Fatal("web has changed")
	}
	if loaded(first, "lib/x.star", "name") != loaded(second, "lib/x.star", "name") || loaded(first, "@std//k8s.star", "is_ready") != loaded(second, "@std//k8s.star", "is_ready") {
		t.Error("libraries are there twice")
	}
	files["lib/x.star"] += "# edited\n"
	third := next(t, files, second)
	if loaded(third, "lib/x.star", "name") == loaded(second, "lib/x.star", "name") || loaded(third, "@std//k8s.star", "is_ready") != loaded(second, "@std//k8s.star", "is_ready") {
		t.Error("a library that has changed is the old one, or one that has not is there twice")
	}
	if third.Modules["shop"] == second.Modules["shop"] {
		t.Error("shop loads what has changed")
	}
}
