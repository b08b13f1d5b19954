package repl

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Lines of a file: empty ones end nothing, what is not indented does.
func TestAScriptIsReadAsAFile(t *testing.T) {
	f := newFixture(t, Options{Script: true, Name: "stdin"})
	text := `# a script

def f(x):
    y = x

    # still inside
    if y:
        return "yes"

    else:
        return """

no
"""
f(1); f(0)
if True:
    print("a")
else:
    print("b")
:apply -
apiVersion: v1
kind: Node

metadata: {name: n1}
.
for i in range(2):
    print(i)
:time
x = [
  1,

]
for i in x: print(i)`
	out := ""
	for line := range strings.SplitSeq(text, "\n") {
		out += f.eval(line)
	}
	end, err := f.End(t.Context())
	out += end.String()
	if want := "\"yes\"\n\"\\n\\nno\\n\"\na\napplied Node n1\n0\n1\n2026-01-01T00:00:00Z\n1\n"; out != want || err != nil {
		t.Errorf("got %v\n%s\nwant\n%s", err, out, want)
	}
	for _, tt := range []struct{ in, want string }{
		{":apply -\na: [", "stdin:35: :apply: the lines: "},
		{"x = (1,", "stdin:37:1: got end of file, want ')'"},
		{":time x", `stdin:37: :time: "x" is no time`},
		{"def g():\n\n  return 1 / 0\ng()", "stdin:40:12: floating-point division by zero"},
		{"\"\"\"a", "unexpected EOF in string"},
	} {
		_, _, err := f.Eval(t.Context(), tt.in)
		if err == nil {
			_, err = f.End(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.in, err, tt.want)
		}
	}
}

func TestUnfinished(t *testing.T) {
	f := newFixture(t, Options{})
	for text, want := range map[string]bool{
		"x = 1": false, "": false, "# a": false, ":run x": false, ":apply -": false,
		"def f():": true, "def f():\n    return 1": true, "def f():\n    return 1\n": false,
		"x = [": true, "x = [\n1]": false, "\"\"\"a": true, "\"\"\"a\n\n\"\"\"": false, "x = )": false, "if x:": true,
		"x = 1 \\": true, "f(": true, "f(\n\n": true, "x = \"a": false, "class A:": false,
	} {
		if got := f.Unfinished(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	f.eval(":apply -")
	if f.Unfinished("x = [") {
		t.Error("lines of an object are no Starlark")
	}
}

// Ctrl-C ends the line, and what it has defined stays; so do watches that it started.
func TestALineCanBeStopped(t *testing.T) {
	f := newFixture(t, Options{Module: "web"})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(errors.New("interrupted")) })
		_, _, err := f.Eval(ctx, "def loop():\n    for i in range(1000000):\n        for j in range(1000000): pass\n\nx = 5; loop()")
		if err == nil || !strings.Contains(err.Error(), "stopped: interrupted") && !strings.Contains(err.Error(), "stopped after") {
			t.Errorf("the error is %v", err)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	if _, _, err := f.Eval(ctx, ":reload"); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, _, err := f.Eval(ctx, "1 + 1"); err == nil {
		t.Error("a line that is stopped already has run")
	}
	transcript{
		{`x`, `5`},
		{`:apply -`, ``},
		{"apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n.",
			"applied Node n1\ninfo: hooks/nodes.star:discover: looked n=1\nran hooks/nodes.star:discover: values internal.nodes"},
	}.check(t, f)
}

func TestHelpComesFromTheTable(t *testing.T) {
	f := newFixture(t, Options{})
	f.eval("load(\"//web/lib/text.star\", \"twice\")\nx = [1]")
	for in, want := range map[string][]string{
		`help()`:                {"Builtins; ", "\n  k8s      ", " apply "},
		`help(k8s)`:             {"k8s has\n\n", "\n  apply ", "server-side"},
		`help(k8s.apply)`:       {"k8s.apply(obj", "\nPhases: run. Effect: write.\n", "\n  owner "},
		`help("k8s.apply")`:     {"k8s.apply(obj"},
		`help("ctx.state")`:     {"ctx.state has", "  get "},
		`help(twice)`:           {"twice(x)\n    web/lib/text.star:2:1\n\nSays it two times.\n\n", "And that is all."},
		`help("twice")`:         {"twice(x)"},
		`help(x)`:               {"a value of type list, length 1; it has\n\n", " append "},
		`help("k8s.aply")`:      {"there is nothing of the name \"k8s.aply\"; did you mean k8s.apply?"},
		`help(len)`:             {"len is of the language"},
		`help(help)`:            {"help(x)\n"},
		`help(1, 2)`:            {"help: takes what to tell about"},
		`help("time")`:          {"time has"},
		`:help`:                 {"  :apply FILE.yaml|-  ", "Builtins; "},
		`:help k8s.apply`:       {"k8s.apply(obj"},
		`:help :run`:            {":run HOOK [KEY]\n\n"},
		`:help t.cluster.apply`: {"t.cluster.apply("},
	} {
		got := f.eval(in)
		for _, text := range want {
			if !strings.Contains(got, text) {
				t.Errorf("%s: no %q in\n%s", in, text, got)
			}
		}
	}
}
