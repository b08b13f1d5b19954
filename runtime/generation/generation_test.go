package generation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/stdlib"
)

type noLog struct{}

func (noLog) Log(builtins.Level, string, []builtins.Field) {}

func load(t *testing.T, files map[string]string) *Generation {
	t.Helper()
	fsys := fstest.MapFS{}
	for path, text := range files {
		fsys[path] = &fstest.MapFile{Data: []byte(text)}
		if module, _, _ := strings.Cut(path, "/"); strings.Contains(text, "k8s.convert(") && files[module+"/module.star"] == "" {
			fsys[module+"/module.star"] = &fstest.MapFile{Data: []byte("module(grants = [grant(\"apiextensions.k8s.io/v1\", \"CustomResourceDefinition\", verbs = [\"convert\"])])\n")}
		}
	}
	read, err := tree.Read(fsys, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return Load(context.Background(), Options{Tree: read, Std: stdlib.FS, Number: 1,
		Log: func(string) builtins.Logger { return noLog{} }})
}

const hookOnStartup = "def f(ctx):\n  pass\nhook(f, on = [startup()])\n"

// Schemas are read once, in the load: an edit of one is another load.
func TestALoadReadsTheSchemas(t *testing.T) {
	digests := map[string]bool{}
	for _, schema := range []string{"properties: {a: {type: string}}\n", "properties: {b: {type: string}}\n"} {
		fsys := fstest.MapFS{"web/module.star": {Data: []byte("module()\n")}, "web/openapi/values.yaml": {Data: []byte(schema)}}
		read, err := tree.Read(fsys, tree.Options{})
		if err != nil {
			t.Fatal(err)
		}
		g := Load(t.Context(), Options{Tree: read, Std: stdlib.FS, Number: 1, Log: func(string) builtins.Logger { return noLog{} },
			Loading: func(_, digest string) (func(bool), error) { digests[digest] = true; return func(bool) {}, nil }})
		_, one, err := g.Modules["web"].Schemas()
		if _, two, _ := g.Modules["web"].Schemas(); one == nil || one != two || err != nil {
			t.Errorf("the schema is %p and %p: %v", one, two, err)
		}
	}
	if len(digests) != 2 {
		t.Errorf("the digests are %v", digests)
	}
}

// A module has as many lines of work as it may keep others waiting with.
func TestQueuesAreCapped(t *testing.T) {
	queues := func(n int) map[string]string {
		text := "def f(ctx):\n  pass\n\n"
		for i := range n {
			text += fmt.Sprintf("hook(f, on = [startup()], name = \"h%02d\", queue = \"q%d\")\n", i, i)
		}
		return map[string]string{"web/hooks/a.star": text}
	}
	if err := load(t, queues(MaxQueues)).Modules["web"].Err; err != nil {
		t.Error(err)
	}
	err := load(t, queues(40)).Modules["web"].Err
	if err == nil || !strings.HasPrefix(err.Error(), "web/hooks/a.star:12: hook h08: queue q8 is one more than the 8 queues") {
		t.Errorf("with 40 queues: %v", err)
	}
}

func TestLoad(t *testing.T) {
	g := load(t, map[string]string{
		"global/cluster.star":       hookOnStartup,
		"020-web/module.star":       "module(enabled = True)\ndef enabled():\n  return True\ndef chart_values(v):\n  return v\n",
		"020-web/hooks/b.star":      `load("../lib/x.star", "f")` + "\nhook(f, on = [startup()], name = \"b\")\n",
		"020-web/hooks/a.star":      hookOnStartup,
		"020-web/lib/x.star":        "def f(ctx):\n  pass\n",
		"plain/templates/a.yaml":    "a: 1",
		"plain/hooks/nothing.star":  "x = 1\n",
		"020-web/hooks/a_test.star": "this is never read as code (",
	})
	web := g.Modules["web"]
	if web.Err != nil {
		t.Fatal(web.Err)
	}
	var ids []string
	for _, h := range web.Hooks {
		ids = append(ids, h.ID)
	}
	if diff := cmp.Diff([]string{"web/b", "web/hooks/a.star:f"}, ids); diff != "" {
		t.Error(diff)
	}
	if web.Enabled == nil || web.ChartValues == nil || !web.Decl.Enabled || *web.Decl.Weight != 20 || web.Decl.Release != "web" {
		t.Errorf("web is %+v", web)
	}
	if g.Global == nil || len(g.Global.Hooks) != 1 || g.Hook("global/cluster.star:f") == nil {
		t.Errorf("global is %+v", g.Global)
	}
	if diff := cmp.Diff([]string{"plain", "web"}, g.Names); diff != "" {
		t.Error(diff)
	}
	if len(g.Problems) != 1 || !strings.Contains(g.Problems[0].String(), "plain/hooks/nothing.star: registers no hook") {
		t.Errorf("problems %v", g.Problems)
	}
}

func TestABrokenModuleIsNotTheOthers(t *testing.T) {
	g := load(t, map[string]string{
		"good/module.star":      "module(enabled = True)\n",
		"syntax/module.star":    "module(enabled = \n",
		"unknown/hooks/a.star":  "def f(ctx):\n  pass\nhok(f)\n",
		"twice/hooks/a.star":    "def f(ctx):\n  pass\nhook(f, on = [startup()], name = \"x\")\n",
		"twice/hooks/b.star":    "def f(ctx):\n  pass\nhook(f, on = [startup()], name = \"x\")\n",
		"requires/module.star":  "module(requires = [\"goood\"])\n",
		"wrong/module.star":     "module()\ndef enabled(x):\n  return True\n",
		"settings/module.star":  "module()\ndef settings_check(new):\n  return None\n",
		"inlib/lib/a.star":      hookOnStartup,
		"inlib/hooks/a.star":    `load("//inlib/lib/a.star", "f")` + "\nhook(f, on = [startup()])\n",
		"inhooks/hooks/a.star":  "module(enabled = True)\n",
		"notfunc/module.star":   "module()\nenabled = True\n",
		"list/values.yaml":      "- 1\n",
		"list/Chart.yaml":       "name: list\nversion: 0.1.0\n",
		"missing/hooks/a.star":  `load("./b.star", "x")`,
		"missing/hooks/ab.star": hookOnStartup,
		"rel1/module.star":      "module(release = \"web\")\n",
		"rel1/templates/a.yaml": "a: 1",
		"rel2/module.star":      "module(release = \"web\")\n",
		"rel2/templates/a.yaml": "a: 1",
		"loop/hooks/a.star":     "x = [0 for a in range(100000) for b in range(100000)]\n",
	})
	for name, want := range map[string]string{
		"good":     "",
		"syntax":   "syntax/module.star:",
		"unknown":  "unknown/hooks/a.star:3:1",
		"twice":    "twice/hooks/b.star:3",
		"requires": "there is no module goood; did you mean good?",
		"wrong":    "def enabled must take no parameters",
		"settings": "def settings_check must take two parameters, the section as it is and as it would be",
		"inlib":    "inlib/lib/a.star:3",
		"inhooks":  "inhooks/hooks/a.star:1",
		"notfunc":  "must be a function",
		"list":     "list/values.yaml",
		"missing":  "missing/hooks/a.star:1",
		"rel1":     "rel1/module.star:1: module rel2 has the release web in the same namespace too",
		"rel2":     "rel2/module.star:1: module rel1 has the release web in the same namespace too",
		"loop":     "loop/hooks/a.star:1",
	} {
		m := g.Modules[name]
		switch {
		case m == nil:
			t.Errorf("module %s is gone", name)
		case want == "" && m.Err != nil:
			t.Errorf("module %s: %v", name, m.Err)
		case want != "" && (m.Err == nil || !strings.Contains(m.Err.Error(), want)):
			t.Errorf("module %s: got %v, want %q", name, m.Err, want)
		}
	}
}

func TestProblems(t *testing.T) {
	g := load(t, map[string]string{
		"web/module.star":    "module(after = [\"apii\"])\n",
		"api/module.star":    "module()\n",
		"010-db/module.star": "", "020-db/module.star": "",
	})
	if m := g.Modules["web"]; m.Err != nil {
		t.Error(m.Err)
	}
	var got []string
	for _, p := range g.Problems {
		got = append(got, p.String())
	}
	if diff := cmp.Diff([]string{"web/module.star:1: after=: there is no module apii; did you mean api?"}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"api", "db", "web"}, g.Names); diff != "" {
		t.Error(diff)
	}
	if g.Modules["db"].Err == nil {
		t.Error("two modules of one name are no error")
	}
}

func TestOneErrorOfManyFilesIsSaidOnce(t *testing.T) {
	m := &Module{}
	for _, text := range []string{"a.star:1:1: x", "b.star:1:1: y", "a.star:1:1: x"} {
		m.join(errors.New(text))
	}
	if got, want := m.Err.Error(), "a.star:1:1: x\nb.star:1:1: y"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// An edit of any file that a module loads gives it a fresh chance, one of other files none.
func TestTheDigestOfALoadCoversWhatIsLoaded(t *testing.T) {
	files := map[string]string{
		"web/hooks/a.star":  "load(\"//global/lib/x.star\", \"x\")\nload(\n    './../lib/y.star', 'y')\n" + hookOnStartup,
		"web/lib/y.star":    "load(\"@std//k8s.star\", \"is_ready\")\ny = 1\n",
		"global/lib/x.star": "load(\"//db/lib/z.star\", \"z\")\nx = 1\n",
		"db/lib/z.star":     "z = 1\n",
		"db/hooks/b.star":   hookOnStartup,
	}
	digest := func(edited string) string {
		all := fstest.MapFS{}
		for name, text := range files {
			if name == edited {
				text += "# edited\n"
			}
			all[name] = &fstest.MapFile{Data: []byte(text)}
		}
		return codeDigest(all, "web")
	}
	files["web/a.txt"] = "a"
	if digest("web/a.txt") != digest("") {
		t.Error("nobody reads a file, and it counts")
	}
	files["web/lib/y.star"] += "text = module.file(\"a.txt\")\n"
	for name, want := range map[string]bool{"web/a.txt": true, "web/hooks/a.star": true, "web/lib/y.star": true, "global/lib/x.star": true, "db/lib/z.star": true, "db/hooks/b.star": false} {
		if got := digest(name) != digest(""); got != want {
			t.Errorf("%s: another digest: %v", name, got)
		}
	}
}

// Stages of deletes come without a chart, those of Helm do not.
func TestStagesWithoutAChart(t *testing.T) {
	g := load(t, map[string]string{"web/hooks/a.star": "def f(ctx):\n  pass\nhook(f, on = [before_delete, after_delete, after_helm])\n"})
	if len(g.Problems) != 1 || !strings.Contains(g.Problems[0].String(), "after_helm never comes, the module has no chart") {
		t.Errorf("problems %v", g.Problems)
	}
}

// A schema may refer to files beside it, which refer to others; one that refers to itself by way of them breaks its
// module alone, with its place.
func TestSchemasReferToFilesBeside(t *testing.T) {
	g := load(t, map[string]string{
		"web/module.star":         "module()\n",
		"web/openapi/values.yaml": "properties: {port: {$ref: 'ports.yaml#/port'}}\n",
		"web/openapi/ports.yaml":  "port: {$ref: 'bounds.json#/port'}\n",
		"web/openapi/bounds.json": `{"port": {"type": "integer", "maximum": 9}}`,

		"loop/module.star":         "module()\n",
		"loop/openapi/values.yaml": "properties: {port: {$ref: 'ports.yaml#/port'}}\n",
		"loop/openapi/ports.yaml":  "port: {properties: {port: {$ref: 'ports.yaml#/port'}}}\n",

		"lost/module.star":         "module()\n",
		"lost/openapi/values.yaml": "properties: {port: {$ref: 'port.yaml#/port'}}\n",
	})
	for name, want := range map[string]string{
		"web":  "<nil>",
		"loop": "loop/openapi/values.yaml: port.port: $ref: ports.yaml#/port refers to itself",
		"lost": "port: $ref: port.yaml#/port: there is no openapi/port.yaml in the module",
	} {
		_, _, err := g.Modules[name].Schemas()
		if got := fmt.Sprint(err); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	if _, all, _ := g.Modules["web"].Schemas(); all == nil || len(all.Validate(map[string]any{"port": int64(10)}, nil)) != 1 {
		t.Error("the bound of the file beside is not checked")
	}
}

// Nobody would call functions in global/module.star, so they are mistakes.
func TestFunctionsOfGlobalModules(t *testing.T) {
	for def, want := range map[string]string{
		"enabled()":                "global/module.star: enabled is for modules; the global hooks are always on",
		"readiness()":              "global/module.star: readiness is for modules; modules wait for the first runs of global hooks",
		"chart_values(v)":          "global/module.star: chart_values is for modules; there is no chart here",
		"settings_check(old, new)": "global/module.star: settings_check is for modules; schemas check the global values",
	} {
		g := load(t, map[string]string{"global/module.star": "module()\n\ndef " + def + ":\n    return True\n", "global/a.star": hookOnStartup})
		if err := g.Global.Err; err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", def, err, want)
		}
	}
}
