package repl

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/script"
	"github.com/starling-operator/starling/runtime/sim"
	"github.com/starling-operator/starling/runtime/sim/store"
	"github.com/starling-operator/starling/stdlib"
)

// noEnv has no variable.
func noEnv(name string) (string, error) { return "", errors.New(name + " is not set") }

type noLog struct{}

func (noLog) Log(builtins.Level, string, []builtins.Field) {}

// files is a module tree with one hook that follows Nodes, and one that fails.
func files() map[string]string {
	return map[string]string{
		"web/module.star": `module(grants = [grant("v1", "ConfigMap", verbs = ["get", "apply"])])` + "\n",
		"web/hooks/nodes.star": `
def discover(ctx):
    names = [n.metadata.name for n in ctx.snapshots["nodes"]]
    log.info("looked", n = len(names))
    values.set("internal.nodes", names)

hook(discover, on = [k8s.watch("v1", "Node", name = "nodes"), schedule("0 * * * *")])
`,
		"web/hooks/each.star": `
def one(ctx):
    k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": ctx.key}})

hook(one, on = [k8s.watch("v1", "Namespace", name = "spaces", object_names = ["a", "b"])], for_each = "spaces")
`,
		"web/lib/text.star": `
def twice(x):
    """Says it two times.

    And that is all.
    """
    return x + x

_hidden = 1
`,
		"other/hooks/x.star": "def fails(ctx):\n    fail(\"not now\")\n\nhook(fails, on = [schedule(\"0 0 1 1 *\")])\n",
		"global/module.star": "module(http = [\"api.example.com\"])\n",
		"values.yaml":        "otherEnabled: true\n",
	}
}

type fixture struct {
	*Session
	t   *testing.T
	dir string
}

func newFixture(t *testing.T, o Options) *fixture {
	t.Helper()
	f := &fixture{t: t, dir: t.TempDir()}
	for name, text := range files() {
		f.write(name, text)
	}
	governor := script.NewGovernor(script.GovernorOptions{})
	o.Load = func(ctx context.Context, number int) (*generation.Generation, error) {
		read, err := tree.ReadDir(f.dir, tree.Options{})
		if err != nil {
			return nil, err
		}
		return generation.Load(ctx, generation.Options{Tree: read, Std: stdlib.FS, Number: number, Governor: governor,
			Log: func(string) builtins.Logger { return noLog{} }}), nil
	}
	var err error
	if o.Generation, err = o.Load(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if o.World, err = sim.New(sim.Options{Generation: o.Generation, Builtins: store.NewBuiltins(), HTTP: answers{}, Answerer: answers{}, Env: noEnv}); err != nil {
		t.Fatal(err)
	}
	if o.Module == "web" {
		if err := o.World.Configure(map[string]string{"webEnabled": "true"}); err != nil {
			t.Fatal(err)
		}
	}
	o.Files = Files{Tree: f.dir, Std: stdlib.FS}
	if f.Session, _, err = New(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fixture) write(name, text string) {
	f.t.Helper()
	p := filepath.Join(f.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

// eval returns what a text says, with its error as the last line.
func (f *fixture) eval(text string) string {
	f.t.Helper()
	out, _, err := f.Eval(f.t.Context(), text)
	if err != nil {
		return out.String() + "error: " + err.Error() + "\n"
	}
	return out.String()
}

// A transcript is a list of lines and what each says.
type transcript []struct{ in, out string }

func (tr transcript) check(t *testing.T, f *fixture) {
	t.Helper()
	for _, step := range tr {
		if got := strings.TrimRight(f.eval(step.in), "\n"); got != step.out {
			t.Errorf("%s\ngot:\n%s\nwant:\n%s", step.in, got, step.out)
		}
	}
}

func TestLinesAreRunsOfAHook(t *testing.T) {
	f := newFixture(t, Options{})
	transcript{
		{`1 + 2`, `3`},
		{`x = [1, 2]`, ``},
		{`x.append(3)`, ``},
		{`x`, `[1, 2, 3]`},
		{`None`, ``},
		{`1; "a"; None`, "1\n\"a\""},
		{`_`, `"a"`},
		{`print("a", 1)`, `a 1`},
		{`log.warn("b", n = 1)`, `warn: b n=1`},
		{`for i in x: print(i)`, ""}, // the block is not finished
		{``, "1\n2\n3"},
		{`i, x = 1, i + len(x)`, ``},
		{`(i, x)`, `(1, 6)`},
		{`x += 1; x`, `7`},
		{"def f(a, b = 2):\n    \"\"\"Adds.\"\"\"\n    return g(a, b)\n", "error: repl:16:12: undefined: g"},
		{"def g(a, b): return a + b\n", ``},
		{"def f(a, b = 2):\n    return g(a, b)\n", ``},
		{`f(1)`, `3`},
		{"def g(a, b): return a * b\n", ``},
		{`f(5)`, `10`},
		{`load("@std//k8s.star", "is_ready")`, ``},
		{`is_ready({"status": {"conditions": [{"type": "Ready", "status": "True"}]}})`, `True`},
		{`load("//web/lib/text.star", double = "twice"); double(2)`, `4`},
		{`load("./web/lib/none.star", "x")`, `error: repl:26:1: cannot load "./web/lib/none.star": no file web/lib/none.star (did you mean "//web/lib/text.star"?)`},
		{`k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "default"}, "data": {"a": "b"}})`,
			"~ apply v1 ConfigMap default/x"},
		{`k8s.get("v1", "ConfigMap", "x", "default").data`, `{"a": "b"}`},
		{`values.set("global.domain", "example.org"); metrics.set("m", 2, labels = {"a": "b"}); requeue("5m")`,
			"~ values.set global.domain\n~ metrics.set m{a=b} 2\n~ requeue 5m0s"},
		{`values.get("global.domain")`, `"example.org"`},
		{`ctx.state.set("n", 1)`, `~ ctx.state: 1 key`},
		{`ctx.state.get("n")`, `1`},
		{`ctx.module.name`, `"global"`},
		{`k8s = 1; k8s`, `1`},
		{`values.set("global.a", 1); fail("no")`, `error: repl:35:32: no`},
		{`values.has("global.a")`, `False`},
		{`undefned`, `error: repl:37:1: undefined: undefned`},
		{`prnt(1)`, `error: repl:38:1: undefined: prnt (did you mean print?)`},
		{`doubl(1)`, `error: repl:39:1: undefined: doubl (did you mean double?)`},
		{`x = `, `error: repl:40:5: got newline, want primary expression`},
		{`x`, `7`},
		{`# nothing`, ``},
		{`hook(f)`, `error: repl:43:5: hook is only available while a file is loading; call it outside the hook's function`},
		{`ctx = 1; _ = 2; 3`, `3`},
		{`ctx + _`, `3`},
	}.check(t, f)
}

func TestWhatALineCausesIsTold(t *testing.T) {
	f := newFixture(t, Options{Module: "web"})
	transcript{
		{`:apply -`, ``},
		{"apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n---\napiVersion: v1\nkind: Node\nmetadata:\n  name: n2\n.",
			"applied Node n1\napplied Node n2\ninfo: hooks/nodes.star:discover: looked n=2\nran hooks/nodes.star:discover: values internal.nodes"},
		{`values.get("internal.nodes")`, `["n1", "n2"]`},
		{`:values internal.nodes`, "- n1\n- n2"},
		{`:values`, "global: {}\ninternal:\n  nodes:\n  - n1\n  - n2"},
		{`:values internal.none`, `error: :values: module web has no value internal.none`},
		{`:values wep x`, `error: :values: there is no module wep; did you mean web?`},
		{`:delete node n1`, "deleted Node n1\ninfo: hooks/nodes.star:discover: looked n=1\nran hooks/nodes.star:discover: values internal.nodes"},
		{`:delete node n1`, `error: :delete: Node n1: nodes "n1" not found`},
		{`:delete nod n1`, `error: :delete: there is no kind nod; did you mean Node?`},
		{`:run discover`, "info: hooks/nodes.star:discover: looked n=1\nran hooks/nodes.star:discover: values internal.nodes\n~ values.set internal.nodes"},
		{`:run nodes.star:discover`, "info: hooks/nodes.star:discover: looked n=1\nran hooks/nodes.star:discover: values internal.nodes\n~ values.set internal.nodes"},
		{`:run discovr`, `error: :run: there is no hook discovr; did you mean discover?`},
		{`:time`, `2026-01-01T00:00:00Z`},
		{`:time 1h`, "info: hooks/nodes.star:discover: looked n=1\nran hooks/nodes.star:discover: values internal.nodes\nit is 2026-01-01T01:00:00Z"},
		{`:time soon`, `error: :time: "soon" is no time to move on by; write 30s, 5m or 1h30m`},
		{`:time -1h`, `error: :time: "-1h" is no time to move on by; write 30s, 5m or 1h30m`},
		{`k8s.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}})`,
			`error: repl:26:10: hook web/repl may not apply Namespace a; add to the grants of module.star: grant("v1", "Namespace", verbs = ["apply"])`},
		{`:apply -`, ``},
		{"apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n.", "applied Namespace a\nran hooks/each.star:one of a: apply v1 ConfigMap starling-system/a"},
		{`:run one`, `error: :run: hook web/hooks/each.star:one runs for each object of spaces: say for which; there are a`},
		{`:run one a`, "ran hooks/each.star:one of a: apply v1 ConfigMap starling-system/a\n~ apply v1 ConfigMap starling-system/a"},
		{`values.set("internal.nodes", [])`,
			`error: repl:34: hook web/repl may not set values path internal.nodes: hook web/hooks/nodes.star:discover sets it too; one path belongs to one hook`},
		{`:runs`, strings.Join([]string{
			"hooks/nodes.star:discover: values internal.nodes",
			"hooks/nodes.star:discover: values internal.nodes",
			"hooks/nodes.star:discover: values internal.nodes",
			"hooks/nodes.star:discover: values internal.nodes",
			"hooks/nodes.star:discover: values internal.nodes",
			"hooks/nodes.star:discover: values internal.nodes",
			"hooks/each.star:one of a: apply v1 ConfigMap starling-system/a",
			"hooks/each.star:one of a: apply v1 ConfigMap starling-system/a",
		}, "\n")},
		{`:modules`, "NAME   STATE   RELEASE   REVISION   DRIFT   AGE   REASON\nweb    ready   -         -          -       60m"},
		{`:nodes`, `error: there is no command :nodes, see :help`},
		{`:rus`, `error: there is no command :rus; did you mean :run?`},
		{`:`, `error: a command follows the colon, see :help`},
		{`:load`, `error: write :load FILE.star`},
		{`:run a b c`, `error: write :run HOOK [KEY]`},
	}.check(t, f)
	if _, _, err := f.Eval(t.Context(), ":quit"); err != ErrQuit {
		t.Errorf(":quit: %v", err)
	}
}

// Free hand: no grants, all modules, as their values say; hooks that fail are told of.
func TestWithoutAModuleNothingBinds(t *testing.T) {
	f := newFixture(t, Options{})
	transcript{
		{`k8s.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "z"}})`, `~ apply v1 Namespace z`},
		{`k8s.list("v1", "Namespace")[-1].metadata.name`, `"z"`},
		{`:run fails`, `error: :run: other/hooks/x.star:2:9: not now`},
		{`:run fails`, `error: :run: other/hooks/x.star:2:9: not now`},
		{`:run discover`, "error: :run: module web is off: add `webEnabled: true` to values.yaml or module(enabled=True)"},
		{`values.set("webEnabled", True)`, "~ values.set webEnabled\ninfo: web/hooks/nodes.star:discover: looked n=0\nran web/hooks/nodes.star:discover: values internal.nodes\ninfo: web: ready"},
		{`:values web`, "global: {}\ninternal:\n  nodes: []"},
		{`:values other`, "global: {}"},
		{`k8s.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "z"}})`, "\"z\"\n" + `error: repl:9: cannot create Namespace z: it is there already: use if_absent=True to leave it alone, or k8s.apply to change it`},
	}.check(t, f)
}

// Broken, endless or huge input ends a line, and never the session.
func TestBadInputEndsALine(t *testing.T) {
	f := newFixture(t, Options{})
	for in, want := range map[string]string{
		"def f():\n    for i in range(10000000):\n        for j in range(10000000): pass\n\nf()": "stopped after 50000000 steps",
		"x = [0] * 1000000000000":                       "elements times 1000000000000 are too many",
		"\"a\" * 10000000":                              "… (the rest is cut)",
		"[i for i in range(1000000)]":                   "… (the rest is cut)",
		"print(\"a\" * 600000); print(\"b\")":           "… (the rest is cut)",
		":apply -\na: [\n.":                             ":apply: the lines: ",
		":apply -\n.":                                   ":apply: the lines: there is no object in it",
		":apply -\nkind: Pod\n.":                        "metadata is missing",
		":apply none.yaml":                              ":apply: cannot open none.yaml: no such file or directory",
		"(":                                             "",
		"print(\"\\033[31m\")":                          "\uFFFD[31m",
		strings.Repeat("(", 100_000):                    "",
		"x = \"" + strings.Repeat("a", 2<<20) + "\"":    "this is more than 1024 KiB",
		"l = []; l.append(l); l":                        "[\n    …,\n]",
		"\xff\xfe":                                      "repl:",
		"time.now()":                                    "2026-01-01",
		"k8s.secret(\"x\", \"y\", \"z\")":               "repl:",
		"def g(n):\n    return g(n - 1)\n\ng(1)":        "recursively",
		"while True: pass\n":                            "there is no while loop",
		"load(\"x\", \"y\")":                            "cannot load \"x\"",
		"d = dict([(i, str(i)) for i in range(20)]); d": "    19: \"19\",",
		"struct(a = [i for i in range(60)])":            "struct(a = [0, 1,",
	} {
		f.pending = nil
		if got := f.eval(in); !strings.Contains(got, want) {
			t.Errorf("%.80s: %.300s, want %q", in, got, want)
		}
		f.pending = nil
		if got := f.eval("1 + 1"); got != "2\n" {
			t.Fatalf("%.80s: the session is broken: %.300s", in, got)
		}
	}
}
