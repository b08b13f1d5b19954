package dev

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/starling-operator/starling/modules/check"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/plan"
	"github.com/starling-operator/starling/runtime/sim"
	"github.com/starling-operator/starling/runtime/sim/store"
)

const hook = `def f(ctx):
    values.set("count", len(ctx.snapshots["nodes"]))

hook(f, on = [k8s.watch("v1", "Node", name = "nodes")])
`

func module(name string) map[string]string {
	return map[string]string{
		name + "/hooks/a.star":        hook,
		name + "/Chart.yaml":          "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n",
		name + "/values.yaml":         "count: 0\ncolor: red\n",
		name + "/templates/cm.yaml":   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {color: {{ .Values.color }}}\n",
		name + "/hooks/a_test.star":   "def test_a(t):\n    t.start()\n    t.expect(t.values.get(\"count\")).equals(0)\n",
		name + "/openapi/values.yaml": "type: object\nproperties: {count: {type: integer}, color: {type: string}}\n",
	}
}

// author is somebody who edits a tree, and looks at the rounds.
type author struct {
	t     *testing.T
	loop  *Loop
	files map[string]string
}

// look hands the files to the loop.
func (a *author) look() *Round {
	a.t.Helper()
	fsys := fstest.MapFS{}
	for name, text := range a.files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	t, err := tree.Read(fsys, tree.Options{})
	if err != nil {
		a.t.Fatal(err)
	}
	r, err := a.loop.Look(a.t.Context(), t)
	if err != nil {
		a.t.Fatal(err)
	}
	return r
}

// save changes files and returns what the round shows, in short.
func (a *author) save(edits ...string) string {
	a.t.Helper()
	for i := 0; i < len(edits); i += 3 {
		text := a.files[edits[i]]
		if !strings.Contains(text, edits[i+1]) {
			a.t.Fatalf("%q is not in %s", edits[i+1], edits[i])
		}
		a.files[edits[i]] = strings.Replace(text, edits[i+1], edits[i+2], 1)
	}
	r := a.look()
	out := fmt.Sprintf("%d of %d; %d errors;", r.Modules, r.All, r.Check.Count(check.Error))
	for _, f := range r.Tests {
		word := "ok"
		if f.Failed() {
			word = "FAIL"
		}
		out += fmt.Sprintf(" %s %s;", f.Path, word)
	}
	if len(r.Values) > 0 {
		out += fmt.Sprint(" ", r.Values)
	}
	if r.Plan != nil {
		var b bytes.Buffer
		if err := r.Plan.Print(&b, plan.PrintOptions{}); err != nil {
			a.t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if strings.Contains(line, "data.") || strings.HasPrefix(line, "No changes") || strings.Contains(line, "no module has this key") {
				out += " " + strings.TrimSpace(line)
			}
		}
	}
	if err := a.loop.Settle(a.t.Context()); err != nil {
		a.t.Fatal(err)
	}
	return out
}

func TestRounds(t *testing.T) {
	a := &author{t: t, files: map[string]string{}, loop: New(Options{Builtins: store.NewBuiltins(), Namespace: "starling-system", Name: "starling", Parallel: 1})}
	for _, name := range []string{"api", "web"} {
		maps.Copy(a.files, module(name))
	}
	const quiet = "No changes: the modules ask for nothing else than before, and the objects of releases are as their charts have them."
	for i, step := range []struct {
		edits []string
		want  string
	}{
		{nil, "2 of 2; 0 errors; api/hooks/a_test.star ok; web/hooks/a_test.star ok;"},
		{nil, "0 of 2; 0 errors; " + quiet},
		{[]string{"web/values.yaml", "red", "green"}, `1 of 2; 0 errors; web/hooks/a_test.star ok; ~ data.color: "red" -> "green"`},
		{[]string{"api/hooks/a_test.star", "equals(0)", "equals(1)"}, "0 of 2; 0 errors; api/hooks/a_test.star FAIL; " + quiet},
		// A failed test runs again, until it does not.
		{[]string{"web/values.yaml", "green", "blue"}, `1 of 2; 0 errors; api/hooks/a_test.star FAIL; web/hooks/a_test.star ok; ~ data.color: "green" -> "blue"`},
		{[]string{"api/hooks/a_test.star", "equals(1)", "equals(0)"}, "0 of 2; 0 errors; api/hooks/a_test.star ok; " + quiet},
		// While a module does not load there is no plan; then it tells what is new since the last that did.
		{[]string{"web/hooks/a.star", "len(", "lenn(", "web/values.yaml", "blue", "grey"}, "1 of 2; 1 errors; web/hooks/a_test.star FAIL;"},
		{[]string{"web/hooks/a.star", "lenn(", "len("}, `1 of 2; 0 errors; web/hooks/a_test.star ok; ~ data.color: "blue" -> "grey"`},
	} {
		if got := strings.TrimSpace(a.save(step.edits...)); got != step.want {
			t.Errorf("round %d: %s\nwant %s", i, got, step.want)
		}
	}
}

// A value of a module without a chart that changes is told of: nothing else shows it.
func TestADefaultOfASchema(t *testing.T) {
	a := &author{t: t, files: map[string]string{
		"bare/module.star":         "module()\n",
		"bare/openapi/values.yaml": "type: object\nproperties:\n  size: {type: integer, default: 1}\n",
	}, loop: New(Options{Builtins: store.NewBuiltins(), Namespace: "starling-system", Name: "starling", Parallel: 1})}
	a.save()
	if got := a.save("bare/openapi/values.yaml", "default: 1", "default: 2"); !strings.Contains(got, "[bare: size]") {
		t.Errorf("got %s", got)
	}
	if got := a.save(); strings.Contains(got, "size") {
		t.Errorf("got %s", got)
	}
}

// Tests run when a file changes that only they load, and those of libraries, too.
func TestWhatTestsLoadHasThemRun(t *testing.T) {
	a := &author{t: t, files: module("web"), loop: New(Options{Builtins: store.NewBuiltins(), Namespace: "starling-system", Name: "starling", Parallel: 1})}
	a.files["lib/more.star"] = "load(\"./base.star\", \"one\")\n\ndef more():\n    return one\n"
	a.files["lib/base.star"] = "one = 1\n"
	a.files["lib/more_test.star"] = "load(\"./more.star\", \"more\")\n\ndef test_more(t):\n    t.expect(more()).equals(1)\n"
	a.files["lib/want.star"] = "count = 0\n"
	a.files["web/hooks/a_test.star"] = "load(\"//lib/want.star\", \"count\")\n" + strings.Replace(a.files["web/hooks/a_test.star"], "equals(0)", "equals(count)", 1)
	a.save()
	for _, step := range []struct{ file, old, now, want string }{
		{"lib/base.star", "1", "2", "lib/more_test.star FAIL;"},
		{"lib/base.star", "2", "1", "lib/more_test.star ok;"},
		{"lib/want.star", "0", "1", "web/hooks/a_test.star FAIL;"},
		{"lib/want.star", "1", "0", "web/hooks/a_test.star ok;"},
	} {
		if got := a.save(step.file, step.old, step.now); !strings.Contains(got, "; 0 errors; "+step.want+" ") {
			t.Errorf("%s: %s, want %s alone", step.file, got, step.want)
		}
	}
}

// The cluster goes on from round to round, and only what was edited is at work there: one
// that is set up anew takes long with many modules, and the next save waits for it.
func TestTheClusterGoesOn(t *testing.T) {
	a := &author{t: t, files: map[string]string{}, loop: New(Options{Builtins: store.NewBuiltins(), Namespace: "starling-system", Name: "starling", Parallel: 1})}
	for _, name := range []string{"api", "web"} {
		maps.Copy(a.files, module(name))
	}
	a.save()
	world, writes := a.loop.world, a.loop.world.Writes
	a.save("web/values.yaml", "red", "green")
	if a.loop.world != world || world.Writes != writes+1 || len(world.Runs) > 0 {
		t.Errorf("another cluster, or more than one release: %d writes, before %d", a.loop.world.Writes, writes)
	}
	// The same holds for files under another name, and for files that are gone.
	for file := range module("api") {
		delete(a.files, file)
	}
	maps.Copy(a.files, module("store"))
	if got := a.save(); strings.Contains(got, "no module has this key") {
		t.Errorf("got %s", got)
	}
	if got := a.save(); !strings.Contains(got, "No changes") {
		t.Errorf("got %s", got)
	}
	for name, want := range map[string]bool{"api": false, "store": true} {
		if obj, err := a.loop.world.Get(effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "starling-system", Name: name}); err != nil || (obj != nil) != want {
			t.Errorf("ConfigMap %s: %v, %v", name, obj, err)
		}
	}
}

// A switch that somebody has set since stays, also while its module is gone.
func TestASwitchOfTheUserStays(t *testing.T) {
	a := &author{t: t, files: map[string]string{}, loop: New(Options{Builtins: store.NewBuiltins(), Namespace: "starling-system", Name: "starling", Parallel: 1})}
	maps.Copy(a.files, module("api"))
	maps.Copy(a.files, module("web"))
	a.save()
	if err := a.loop.world.Configure(map[string]string{"apiEnabled": "true", "webEnabled": "false"}); err != nil {
		t.Fatal(err)
	}
	a.save("api/values.yaml", "red", "green")
	for file := range module("web") {
		delete(a.files, file)
	}
	a.look()
	if err := a.loop.Settle(t.Context()); err == nil || !strings.Contains(err.Error(), "webEnabled: no module has this key") {
		t.Errorf("got %v", err)
	}
	maps.Copy(a.files, module("web"))
	a.save()
	if config, err := a.loop.world.UserConfig(); err != nil || config["webEnabled"] != "false" {
		t.Errorf("%v, %v", config, err)
	}
}

// A config that is refused is told, not left out in silence.
func TestARefusedConfigIsTold(t *testing.T) {
	a := &author{t: t, files: module("web"), loop: New(Options{
		Builtins: store.NewBuiltins(), Namespace: "starling-system", Name: "starling",
		Prepare: func(w *sim.World) error { return w.Configure(map[string]string{"web": "color: 5"}) },
	})}
	a.files["web/openapi/config-values.yaml"] = "type: object\nproperties: {color: {type: string}}\n"
	a.look()
	if err := a.loop.Settle(t.Context()); err == nil || !strings.Contains(err.Error(), "color: must be a string") {
		t.Errorf("got %v", err)
	}
}

// A host that cannot be asked is told of once, and is no failure of each round.
func TestHostsThatNobodyAnswersFor(t *testing.T) {
	answer := filepath.Join(t.TempDir(), "answer.json")
	if err := os.WriteFile(answer, []byte(`{"color": "red"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		http     map[string]string
		told, up string
	}{
		{nil, "[status.example.com]", "No changes"},
		{map[string]string{"status.example.com": answer}, "[]", `data.color: "red" -> "red!"`},
	} {
		a := &author{t: t, files: map[string]string{
			"web/module.star": `module(enabled = True, http = ["status.example.com"])`,
			"web/hooks/a.star": "def a(ctx):\n    values.set(\"color\", http.get(\"https://status.example.com/\").json()[\"color\"] + \"\")\n\n" +
				"hook(a, on = [startup])\n",
			"web/Chart.yaml":       "{apiVersion: v2, name: web, version: 0.1.0}",
			"web/templates/a.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {color: \"{{ .Values.color }}\"}}",
		}, loop: New(Options{Builtins: store.NewBuiltins(), Namespace: "starling-system", Name: "starling", Parallel: 1, HTTP: c.http})}
		a.save()
		if got := fmt.Sprint(a.loop.Unanswered()); got != c.told {
			t.Errorf("told of %s, want %s", got, c.told)
		}
		got := a.save("web/hooks/a.star", `+ ""`, `+ "!"`)
		if !strings.Contains(got, c.up) || strings.Contains(got, "not the whole one") {
			t.Errorf("the second round: %s, want %s", got, c.up)
		}
		if more := a.loop.Unanswered(); len(more) > 0 {
			t.Errorf("told again of %v", more)
		}
	}
}
