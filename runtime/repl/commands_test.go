package repl

import (
	"os"
	"strings"
	"testing"

	"github.com/starling-operator/starling/runtime/effect"
)

func TestReloadTakesTheTreeAsItIs(t *testing.T) {
	f := newFixture(t, Options{Module: "web"})
	transcript{
		{`x = 1; values.set("own", 1)`, `~ values.set own`},
		{`:apply -`, ``},
		{"apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n.",
			"applied Node n1\ninfo: hooks/nodes.star:discover: looked n=1\nran hooks/nodes.star:discover: values internal.nodes"},
	}.check(t, f)
	f.write("web/hooks/nodes.star", `
def count(ctx):
    values.set("internal.count", len(ctx.snapshots["nodes"]))

hook(count, on = [k8s.watch("v1", "Node", name = "nodes")])
`)
	transcript{
		{`:reload`, "ran hooks/nodes.star:count: values internal.count\ninfo: web: ready\ngeneration 2"},
		{`x`, `1`},
		{`values.get("own")`, `1`},
		{`values.get("internal")`, `{"count": 1}`},
	}.check(t, f)
	f.write("web/hooks/nodes.star", "def count(:\n")
	out := f.eval(":reload")
	if !strings.Contains(out, "error: :reload: module web: web/hooks/nodes.star:1:12: got ':', want ')'") {
		t.Errorf("a broken file: %s", out)
	}
	transcript{
		{`x + 1`, `2`},
		{`values.get("own")`, `1`},
		{`values.get("internal")`, `{"count": 1}`},
	}.check(t, f)
}

// Values that hooks, or lines, have set as a secret are not shown.
func TestValuesHideSecrets(t *testing.T) {
	f := newFixture(t, Options{})
	f.eval(":apply -\napiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: default}\nstringData: {k: hunter2}\n.")
	transcript{
		{`s = k8s.secret("s", "k", "default"); s`, `***`},
		{`reveal(s)`, `"***"`},
		{`[base64.decode(k8s.get("v1", "Secret", "s", "default").data.k), {"k": "by " + reveal(s)}]`, `["***", {"k": "by ***"}]`},
		{`values.set("global.token", s); values.set("global.list", [1, s])`, "~ values.set global.token\n~ values.set global.list"},
		{`:values global`, "global:\n  list:\n  - 1\n  - '***'\n  token: '***'"},
		{`:values global.token`, "'***'"},
	}.check(t, f)
}

// A session that goes on for days does not remember every run.
func TestOldRunsAreForgotten(t *testing.T) {
	f := newFixture(t, Options{Module: "web"})
	for range 10 {
		f.eval(":time 300h")
	}
	if n := len(f.world.Runs); n > 2*maxRunsKept+300 || n < maxRunsKept {
		t.Errorf("%d runs are remembered", n)
	}
	transcript{
		{`:run discover`, "info: hooks/nodes.star:discover: looked n=0\nran hooks/nodes.star:discover: values internal.nodes\n~ values.set internal.nodes"},
	}.check(t, f)
	if out := f.eval(":runs"); strings.Count(out, "\n") != maxRuns+1 || !strings.HasPrefix(out, "… and more before\n") {
		t.Errorf(":runs shows %d lines", strings.Count(out, "\n"))
	}
}

func TestReleasesThatAreThereAreNoNews(t *testing.T) {
	f := newFixture(t, Options{})
	f.write("app/module.star", "module(enabled = True)\n")
	f.write("app/Chart.yaml", "apiVersion: v2\nname: app\nversion: 1.0.0\n")
	f.write("app/templates/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\ndata: {a: \"{{ .Values.a }}\"}\n")
	if got := f.eval(":reload"); !strings.Contains(got, "released starling-system/app: revision 1\n") {
		t.Fatalf("a new module: %s", got)
	}
	fork, err := f.world.Fork()
	if err != nil {
		t.Fatal(err)
	}
	o := f.o
	o.World = fork
	if o.Generation, err = o.Load(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	again, begun, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(begun.String(), "released") {
		t.Errorf("nothing was released:\n%s", begun)
	}
	out, _, err := again.Eval(t.Context(), ":modules")
	if err != nil || !strings.Contains(out.String(), "starling-system/app") {
		t.Errorf("the release: %v\n%s", err, out)
	}
}

func TestPlanShowsWhatTheSessionHasChanged(t *testing.T) {
	f := newFixture(t, Options{Module: "web"})
	origin := f.world
	if err := origin.Apply(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "old", "namespace": "default"}}); err != nil {
		t.Fatal(err)
	}
	fork, err := origin.Fork()
	if err != nil {
		t.Fatal(err)
	}
	o := f.o
	o.World = fork
	if f.Session, _, err = New(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if got := f.eval(":plan"); !strings.Contains(got, "No changes") {
		t.Errorf("before anything is done: %s", got)
	}
	f.eval("k8s.apply({\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"x\"}, \"data\": {\"a\": \"b\"}})")
	if got := f.eval(":plan"); !strings.Contains(got, "+ v1 ConfigMap starling-system/x") {
		t.Errorf("after a write: %s", got)
	}
	f.eval(":apply -\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: mine, namespace: default}\n.\n")
	if got := f.eval(":plan"); !strings.Contains(got, "+ v1 ConfigMap default/mine  # created by hand") {
		t.Errorf("after :apply: %s", got)
	}
	f.eval(":delete ConfigMap mine default")
	if got := f.eval(":plan"); strings.Contains(got, "mine") {
		t.Errorf("after :delete: %s", got)
	}
	f.eval(":delete ConfigMap old default")
	if got := f.eval(":plan"); !strings.Contains(got, "- v1 ConfigMap default/old  # deleted by hand") {
		t.Errorf("after :delete of what was there: %s", got)
	}
	below, err := f.o.World.Get(effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "starling-system", Name: "x"})
	if below == nil || err != nil {
		t.Errorf("the session does not see what it has written: %v, %v", below, err)
	}
	if base, err := origin.Get(effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "starling-system", Name: "x"}); base != nil || err != nil {
		t.Errorf("the cluster below was written to: %v, %v", base, err)
	}
}

func TestLoadTakesOverWhatAFileExports(t *testing.T) {
	f := newFixture(t, Options{Module: "web"})
	outside := t.TempDir() + "/mine.star"
	if err := os.WriteFile(outside, []byte("load(\"@std//k8s.star\", \"is_ready\")\nprint(\"hello\")\n\ndef three(): return 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	transcript{
		{`:load //web/lib/text.star`, `loaded twice`},
		{`twice(2)`, `4`},
		{`_hidden`, `error: repl:4:1: undefined: _hidden`},
		{`:load ` + outside, "info: hello\nloaded three"},
		{`three()`, `3`},
		{`:load //web/hooks/nodes.star`, `loaded discover`},
		{`:load //web/lib/none.star`, `error: :load: //web/lib/none.star: there is no such file`},
		{`:load values.yaml`, `error: :load: values.yaml is no .star file`},
		{`:load @std//k8s.star`, f.eval(`:load @std//k8s.star`)[:0]},
	}[:8].check(t, f)
	f.write("web/lib/text.star", "def twice(x): return fail(\"now\")\n")
	transcript{{`:load ` + f.dir + `/web/lib/text.star`, `loaded twice`}, {`twice(1)`, `error: web/lib/text.star:1:26: now`}}.check(t, f)
	if out := f.eval(`:load @std//k8s.star`); !strings.Contains(out, "is_ready") {
		t.Errorf("the library: %s", out)
	}
}

// Once :run has run a hook, lines find its ctx.
func TestCtxIsThatOfTheLastRun(t *testing.T) {
	f := newFixture(t, Options{})
	if got := f.eval("ctx.module.name"); got != "\"global\"\n" {
		t.Errorf("in the first line ctx is %s", got)
	}
	f.write("web/hooks/each.star", `
def one(ctx):
    ctx.state.set("seen", ctx.state.get("seen", 0) + 1)

hook(one, on = [k8s.watch("v1", "Namespace", name = "spaces", object_names = ["a", "b"])], for_each = "spaces")
`)
	f.eval(":reload")
	f.eval(`values.set("global.x", 1)`)
	if err := f.world.Configure(map[string]string{"webEnabled": "true"}); err != nil {
		t.Fatal(err)
	}
	f.eval(":apply -\napiVersion: v1\nkind: Node\nmetadata: {name: n1}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n.")
	if got := f.eval("ctx.module.name"); got != "\"global\"\n" {
		t.Errorf("before any :run ctx is that of the line, got %s", got)
	}
	f.eval(":run web/hooks/nodes.star:discover")
	for in, want := range map[string]string{
		`[e.binding for e in ctx.events]`:         `["nodes", "schedule"]`,
		`ctx.snapshots["nodes"][0].metadata.name`: `"n1"`,
		`(ctx.module.name, ctx.key, ctx.attempt)`: `("web", None, 1)`,
		`ctx.state.set("a", 1)`:                   `error: repl:`,
		`help(ctx)`:                               `ctx.snapshots  dict of lists`,
	} {
		if got := f.eval(in); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
	f.eval(":run web/hooks/each.star:one a")
	if got := f.eval(`(ctx.key, ctx.object.metadata.name, ctx.state.get("seen"), ctx.state.get("b", "none"))`); got != `("a", "a", 2, "none")`+"\n" {
		t.Errorf("ctx of an object: got %s", got)
	}
}
