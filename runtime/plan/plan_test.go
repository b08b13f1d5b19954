package plan

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/sim"
	"github.com/starling-operator/starling/runtime/sim/store"
	"github.com/starling-operator/starling/stdlib"
)

var shared = sync.OnceValue(store.NewBuiltins)

type noLog struct{}

func (noLog) Log(builtins.Level, string, []builtins.Field) {}

// running is a world with a process that has settled on the files of a tree.
func running(t *testing.T, files map[string]string, objects ...map[string]any) *sim.World {
	t.Helper()
	w, err := sim.New(sim.Options{Generation: load(t, files), Builtins: shared()})
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range append(objects, thing("Namespace", "", "starling-system", nil)) {
		if err := w.Apply(obj); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

func load(t *testing.T, files map[string]string) *generation.Generation {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	read, err := tree.Read(fsys, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return generation.Load(t.Context(), generation.Options{Tree: read, Std: stdlib.FS, Number: 1, Log: func(string) builtins.Logger { return noLog{} }})
}

func thing(kind, namespace, name string, data map[string]any) map[string]any {
	meta := map[string]any{"name": name}
	if namespace != "" {
		meta["namespace"] = namespace
	}
	obj := map[string]any{"apiVersion": "v1", "kind": kind, "metadata": meta}
	if data != nil {
		obj["data"] = data
	}
	return obj
}

// planned makes a plan for other files in the same cluster, and prints it.
func planned(t *testing.T, w *sim.World, files map[string]string, change func(*sim.World)) (*Plan, string) {
	t.Helper()
	version := w.Store().Version()
	fork, err := w.Fork()
	if err != nil {
		t.Fatal(err)
	}
	if files != nil {
		fork.Use(load(t, files))
	}
	if change != nil {
		change(fork)
	}
	p, err := Make(t.Context(), fork)
	if err != nil {
		t.Fatal(err)
	}
	if w.Store().Version() != version {
		t.Error("the plan has written to the cluster")
	}
	var b bytes.Buffer
	if err := p.Print(&b, PrintOptions{}); err != nil {
		t.Fatal(err)
	}
	return p, b.String()
}

const (
	webModule = `module(enabled = True, namespace = "web", grants = [
    grant("v1", "ConfigMap", verbs = ["*"], namespaces = ["*"]), grant("v1", "Secret", verbs = ["*"], namespaces = ["*"])],
    installs = [grant("example.com/v1", "Thing")], lookup = [grant("v1", "Node")])
`
	webHook = `
def f(ctx):
    values.set("internal.nodes", sorted([n["name"] for n in ctx.snapshots["nodes"]]))

hook(f, on = [k8s.watch("v1", "Node", name = "nodes", filter = lambda o: {"name": o.metadata.name})])
`
	webChart    = "apiVersion: v2\nname: web\nversion: 1.0.0\n"
	webTemplate = `apiVersion: v1
kind: ConfigMap
metadata: {name: nodes}
data:
  nodes: {{ .Values.internal.nodes | toJson | quote }}
  color: {{ .Values.color }}
`
)

// podSet lacks its template.
const podSet = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: pods}\nspec:\n  updtaeStrategy: {}\n  selector: {matchLabels: {a: b}}\n"

func web(more map[string]string) map[string]string {
	files := map[string]string{
		"web/module.star": webModule, "web/hooks/a.star": webHook, "web/Chart.yaml": webChart,
		"web/values.yaml": "color: red\n", "web/templates/cm.yaml": webTemplate,
	}
	for name, text := range more {
		if text == "" {
			delete(files, name)
			continue
		}
		files[name] = text
	}
	return files
}

func TestPlans(t *testing.T) {
	files := web(nil)
	tests := []struct {
		name    string
		files   map[string]string // nil: those that run
		change  func(*sim.World)
		changes bool
		failed  bool
		want    string // of the text
	}{
		{name: "nothing", want: "No changes: the modules ask for nothing else than before, and the objects of releases are as their charts have them.\n"},
		{
			name: "a value of the chart", files: web(map[string]string{"web/values.yaml": "color: green\n"}), changes: true,
			want: `~ module web: upgrade release web in web
    ~ values.color: "red" -> "green"  # chart values.yaml, web/values.yaml:1
~ v1 ConfigMap web/nodes  # updated by release web
    ~ data.color: "red" -> "green"

Plan: 0 to create, 1 to update, 0 to delete; releases: 0 to install, 1 to upgrade, 0 to uninstall.
`,
		},
		{
			name: "a module that is not installed waits for another one", files: web(map[string]string{
				"web/module.star":      webModule + "\ndef readiness():\n    return waiting(\"no primary yet\")\n",
				"app/module.star":      "module(enabled = True, namespace = \"app\", requires = [\"web\"])\n",
				"app/Chart.yaml":       "apiVersion: v2\nname: app\nversion: 0.1.0\n",
				"app/templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\n",
				"off/module.star":      "module()\n",
			}),
			want: "! module app is blocked: waits for web to be ready\n! module web is waiting: no primary yet\n",
		},
		{
			name: "a hook follows an object that changes", changes: true,
			change: func(w *sim.World) { _ = w.Apply(thing("Node", "", "b", nil)) },
			want: `~ module web: upgrade release web in web
    ~ values.internal.nodes: ["a"] -> ["a","b"]  # hook web/hooks/a.star:f, web/hooks/a.star:3
~ v1 ConfigMap web/nodes  # updated by release web
    ~ data.nodes: "[\"a\"]" -> "[\"a\",\"b\"]"

Plan: 0 to create, 1 to update, 0 to delete; releases: 0 to install, 1 to upgrade, 0 to uninstall.
`,
		},
		{
			name: "the user switches it off", changes: true,
			change: func(w *sim.World) { _ = w.Configure(map[string]string{"webEnabled": "false"}) },
			want: `- module web: uninstall release web in web  # webEnabled: false in config
- v1 ConfigMap web/nodes  # deleted by release web

Plan: 0 to create, 0 to update, 1 to delete; releases: 0 to install, 0 to upgrade, 1 to uninstall.
`,
		},
		{
			name: "a hook sets off another, and that one writes", changes: true,
			files: web(map[string]string{"web/hooks/b.star": `
def first(ctx):
    k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"lines": "x\ny\n"}})

def second(ctx):
    for o in ctx.snapshots["ones"]:
        k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "two"}, "data": {"of": o.metadata.name}})
        http.send("POST", "https://chat.example.com/hook?x=1", json = {})

hook(first, on = [startup()])
hook(second, on = [k8s.watch("v1", "ConfigMap", name = "ones", object_names = ["one"])])
`, "web/module.star": strings.Replace(webModule, "module(", `module(http = ["chat.example.com"], `, 1)}),
			want: `+ v1 ConfigMap web/one  # created by hook web/hooks/b.star:first
    + data:
    +   lines: |
    +     x
    +     y
+ v1 ConfigMap web/two  # created by hook web/hooks/b.star:second
    + data:
    +   of: one
+ POST https://chat.example.com/hook  # sent by hook web/hooks/b.star:second

Plan: 2 to create, 0 to update, 0 to delete; releases: 0 to install, 0 to upgrade, 0 to uninstall. 1 messages to send.
`,
		},
		{
			name: "secrets are masked wherever they turn up", changes: true,
			files: web(map[string]string{"web/hooks/b.star": `
def f(ctx):
    word = k8s.secret("token", "word", "default")
    k8s.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "copy"}, "stringData": {"word": word}})
    k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "leak"}, "data": {"url": "https://" + reveal(word) + "@x"}})

hook(f, on = [startup()])
`}),
			want: `+ v1 ConfigMap web/leak  # created by hook web/hooks/b.star:f
    + data:
    +   url: https://***@x
+ v1 Secret web/copy  # created by hook web/hooks/b.star:f
    + data:
    +   word: '***'
`,
		},
		{
			name: "a hook makes the user's config", changes: true,
			files: web(map[string]string{
				"web/module.star":  strings.Replace(webModule, "module(", `module(config = ["size"], `, 1),
				"web/hooks/b.star": "def f(ctx):\n    config.set(\"size\", 5)\n\nhook(f, on = [startup()])\n"}),
			want: `+ v1 ConfigMap starling-system/starling  # the user's config, created by hook web/hooks/b.star:f
    + web.size: 5

Plan: 1 to create, 0 to update,`,
		},
		{
			name: "a hook fails", failed: true,
			files: web(map[string]string{"web/hooks/b.star": "def f(ctx):\n    fail(\"no way\")\n\nhook(f, on = [startup()])\n"}),
			want:  "no way\n\nNo changes are known. Something fails: the plan is not the whole one.\n",
		},
		{
			name: "a kind that the plan itself brings", changes: true,
			files: web(map[string]string{
				"web/crds/things.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: things, singular: thing, kind: Thing}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`,
				"web/templates/thing.yaml": "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\nspec: {size: 3}\n",
			}),
			want: "+ example.com/v1 Thing web/a  # created by release web\n",
		},
		{
			name: "what the user's config says in vain", failed: true,
			files: web(map[string]string{"web/openapi/config-values.yaml": "type: object\nproperties: {color: {type: string}}\n"}),
			change: func(w *sim.World) {
				_ = w.Configure(map[string]string{"webb": "color: green", "web": "color: 3", "global": "["})
			},
			want: `! ConfigMap starling-system/starling: config global: `,
		},
		{
			name:   "a section of nobody",
			change: func(w *sim.World) { _ = w.Configure(map[string]string{"webb": "color: green"}) },
			want:   "! warning: ConfigMap starling-system/starling: config webb: no module has this key, did you mean \"web\"?\n\nNo changes: the modules ask for nothing else than before, and the objects of releases are as their charts have them.\n",
		},
		{
			name: "a field that the kind does not have", changes: true, failed: true,
			files: web(map[string]string{"web/templates/pods.yaml": podSet + "  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, imgae: b, image: b}]}}\n"}),
			want: `! module web: web/templates/pods.yaml:5: DaemonSet pods has no field spec.updtaeStrategy: the API server drops it (did you mean updateStrategy?)
! module web: web/templates/pods.yaml:7: DaemonSet pods has no field spec.template.spec.containers[0].imgae: the API server drops it (did you mean image?)
`,
		},
		{
			name: "hooks that wait for their schedule",
			files: web(map[string]string{
				"web/hooks/tidy.star": `
def tidy(ctx):
    pass

def both(ctx):
    pass

NODES = k8s.watch("v1", "Node")
[hook(tidy, name = "tidy%d" % i, on = [schedule("* * * * *")]) for i in range(7)]
hook(both, on = [schedule("* * * * *"), NODES])
`,
				"off/module.star":     "module(enabled = False)\n",
				"off/hooks/tidy.star": "def tidy(ctx):\n    pass\n\nhook(tidy, on = [schedule(\"* * * * *\")])\n",
			}),
			want: "  note: hooks that run by schedule are not in this plan: web/tidy0, web/tidy1, web/tidy2, web/tidy3, web/tidy4 and 2 more\n\nNo changes: ",
		},
		{
			name: "a module that does not load", failed: true,
			files: web(map[string]string{"web/hooks/a.star": "def f(\n"}),
			want:  "! module web fails: ",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := running(t, files, thing("Node", "", "a", nil), thing("Secret", "default", "token", map[string]any{"word": "b3BlbiBzZXNhbWU="}))
			p, text := planned(t, w, test.files, test.change)
			if p.Changes() != test.changes || p.Failed() != test.failed {
				t.Errorf("changes %v, failed %v", p.Changes(), p.Failed())
			}
			if strings.Contains(text, "sesame") {
				t.Error("a secret is shown")
			}
			if !strings.Contains(text, test.want) {
				t.Errorf("got\n%s\nwant\n%s\n%s", text, test.want, cmp.Diff(test.want, text))
			}
			data, err := json.Marshal(p)
			if err != nil || strings.Contains(string(data), "sesame") || strings.Contains(string(data), "b3BlbiBzZXNhbWU") {
				t.Errorf("%v %s", err, data)
			}
		})
	}
}

// Writes of hooks to the namespace where Starling is, or would be, are shown as those to any other one.
func TestPlansShowTheNamespaceOfStarling(t *testing.T) {
	files := web(map[string]string{
		"web/module.star": strings.Replace(webModule, "grants = [", `grants = [grant("v1", "Namespace", verbs = ["patch"]), `, 1),
		"web/hooks/b.star": `
def f(ctx):
    for row in ctx.snapshots["all"]:
        k8s.patch("v1", "Namespace", row["name"], merge = {"metadata": {"labels": {"team": "a"}}})

hook(f, on = [k8s.watch("v1", "Namespace", name = "all", filter = lambda o: {"name": o.metadata.name})])
`})
	for name, base := range map[string]*sim.World{"it runs": running(t, web(nil)), "nothing runs": running(t, map[string]string{"other/module.star": "module()\n"})} {
		_, text := planned(t, base, files, nil)
		const want = "~ v1 Namespace starling-system  # updated by hook web/hooks/b.star:f\n    + metadata.labels.team: \"a\"\n"
		if !strings.Contains(text, want) {
			t.Errorf("%s: %q is not in\n%s", name, want, text)
		}
	}
}

// Changes of the user's config by hooks are shown value by value, and what sounds like a secret is not.
func TestPlansShowWhatHooksChangeOfTheUsersConfig(t *testing.T) {
	w := running(t, web(nil), thing("Node", "", "a", nil))
	if err := w.Configure(map[string]string{"web": "# of the user\ncolor: red\nold: [1]\nsize: {max: 3, min: 1}\n", "other": "- x"}); err != nil {
		t.Fatal(err)
	}
	p, text := planned(t, w, web(map[string]string{
		"web/module.star": strings.Replace(webModule, "module(", `module(config = ["password", "size", "old"], `, 1),
		"web/hooks/b.star": `
def f(ctx):
    config.set("password", "abc")
    config.set("size.max", 5)
    config.remove("old")

hook(f, on = [startup()])
`}), nil)
	want := `~ v1 ConfigMap starling-system/starling  # the user's config, updated by hook web/hooks/b.star:f
    - web.old: [1]
    + web.password: "***"
    ~ web.size.max: 3 -> 5
`
	if !strings.Contains(text, want) {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	if len(p.Objects) == 0 || !p.Objects[0].UserConfig && !p.Objects[len(p.Objects)-1].UserConfig {
		t.Errorf("no object is the user's config: %+v", p.Objects)
	}
}

// Fields that an earlier release has lost stand in the status of the module, also after a restart, and stop no plan:
// it changes nothing about them. They go with the field.
func TestFieldsThatWereDroppedBefore(t *testing.T) {
	pods := podSet + "  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: b}]}}\n"
	w := running(t, web(map[string]string{"web/templates/pods.yaml": pods}), thing("Node", "", "a", nil))
	const dropped = "web/templates/pods.yaml:5: DaemonSet pods has no field spec.updtaeStrategy: the API server drops it (did you mean updateStrategy?)"
	has := func(want ...string) {
		t.Helper()
		m := w.Status().Modules[0]
		if !slices.Equal(m.Problems, want) || !slices.Equal(m.Unknown, want) || m.State != status.ModuleReady {
			t.Errorf("%s: problems %q, unknown %q; want %q", m.State, m.Problems, m.Unknown, want)
		}
	}
	has(dropped)
	p, text := planned(t, w, nil, nil)
	if p.Failed() || !strings.Contains(text, "! warning: module web: "+dropped) {
		t.Error(text)
	}
	w.Stop()
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	has(dropped)
	for _, off := range []map[string]string{{"webEnabled": "false"}, nil} {
		if err := w.Configure(off); err != nil {
			t.Fatal(err)
		}
		if err := w.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if m := w.Status().Modules[0]; off != nil && len(m.Problems) > 0 {
			t.Errorf("off: %q", m.Problems)
		}
	}
	has(dropped)
	w.Stop()
	w.Use(load(t, web(map[string]string{"web/templates/pods.yaml": strings.Replace(pods, "updtaeS", "updateS", 1)})))
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	has()
}

// The plan is what happens: after it, nothing is left to do.
func TestWhatIsPlannedHappens(t *testing.T) {
	w := running(t, web(nil), thing("Node", "", "a", nil))
	files := web(map[string]string{"web/values.yaml": "color: green\n"})
	before, _ := planned(t, w, files, nil)
	w.Stop()
	w.Use(load(t, files))
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p, text := planned(t, w, files, nil); !before.Changes() || p.Changes() {
		t.Errorf("after it:\n%s", text)
	}
}

func TestColors(t *testing.T) {
	_, plain := planned(t, running(t, web(nil)), web(map[string]string{"web/values.yaml": "color: \"\\e[31mred\"\n"}), nil)
	if strings.Contains(plain, "\x1b") {
		t.Errorf("a value steers the terminal: %q", plain)
	}
	p, _ := planned(t, running(t, web(nil)), web(map[string]string{"web/values.yaml": "color: green\n"}), nil)
	var b bytes.Buffer
	if err := p.Print(&b, PrintOptions{Color: true}); err != nil || !strings.Contains(b.String(), "\x1b[33m~ module web") {
		t.Errorf("%q %v", b.String(), err)
	}
}
