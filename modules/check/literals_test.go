package check

import (
	"fmt"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-operator/starling/modules/tree"
)

// found are the errors of one check in a tree, as "file:line:col: message".
func found(t *testing.T, check string, files map[string]string) []string {
	t.Helper()
	fsys := fstest.MapFS{}
	for path, text := range files {
		fsys[path] = &fstest.MapFile{Data: []byte(text)}
	}
	read, err := tree.Read(fsys, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range run(t, Options{Tree: read}).Findings {
		switch {
		case f.Check == check:
			out = append(out, fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Col, f.Message))
		case f.Severity == Error:
			t.Errorf("%s: %s", f.Check, f.Render(nil))
		}
	}
	slices.Sort(out)
	return out
}

func TestTypesOfValues(t *testing.T) {
	schema := `type: object
properties:
  text: {type: string}
  count: {type: integer}
  part: {type: number}
  active: {type: boolean}
  port: {x-kubernetes-int-or-string: true}
  maybe: {type: string, nullable: true}
  any: {x-kubernetes-preserve-unknown-fields: true}
  names: {type: array, items: {type: string}}
  labels: {type: object, additionalProperties: {type: string}}
  nested:
    type: object
    properties:
      deep: {type: integer}
`
	hook := func(lines string) string {
		return "def f(ctx):\n    x = ctx.attempt\n" + lines + "\nhook(f, on = [startup])\n"
	}
	got := found(t, "values", map[string]string{
		"web/openapi/values.yaml": schema,
		"web/hooks/wrong.star": hook(`    values.set("text", 1)
    values.set("count", "3")
    values.set("count", str(x))
    values.set("part", value = "half")
    values.set("active", "yes" if x else "no")
    values.default("port", [80])
    values.set("names", ["a", 2, "b%s" % x])
    values.set("labels", {"a": "b", "c.d": 1})
    values.merge("nested", {"deep": len("x") > 0})
    values.set(["nested", "deep"], {"a": 1})
    values.set("count", 1.5)
`),
		"fine/openapi/values.yaml": schema,
		"fine/hooks/fine.star": hook(`    values.set("text", "a" + x)
    values.set("count", 2.0)
    values.set("part", -3)
    values.set("active", not x)
    values.set("port", "http")
    values.set("maybe", None)
    values.set("any", {"a": [1, "b"]})
    values.set("names", [n for n in "abc".elems()])
    values.set("labels", {k: 1 for k in []})
    values.set("nested.deep", x)
    values.merge("nested", dict(deep = x))
`),
		"shadowed/openapi/values.yaml": schema,
		"shadowed/hooks/a.star":        "def str(x):\n    return 1\n\n" + hook(`    values.set("count", str(x))`),
		"global/a.star":                hook(`    values.set("webEnabled", "yes")`),
	})
	want := []string{
		`global/a.star:3:30: webEnabled must be True or False, this is a string`,
		`web/hooks/wrong.star:10:44: labels["c.d"] must be a string, this is an integer`,
		`web/hooks/wrong.star:11:37: nested.deep must be an integer, this is a boolean`,
		`web/hooks/wrong.star:12:36: nested.deep must be an integer, this is a dict`,
		`web/hooks/wrong.star:13:25: count must be an integer, this is a number`,
		`web/hooks/wrong.star:3:24: text must be a string, this is an integer`,
		`web/hooks/wrong.star:4:25: count must be an integer, this is a string`,
		`web/hooks/wrong.star:5:25: count must be an integer, this is a string`,
		`web/hooks/wrong.star:6:32: part must be a number, this is a string`,
		`web/hooks/wrong.star:7:26: active must be a boolean, this is a string`,
		`web/hooks/wrong.star:8:28: port must be an integer or a string, this is a list`,
		`web/hooks/wrong.star:9:31: names[1] must be a string, this is an integer`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A function that a filter or a hook calls may call no more than these may; of helpers whose
// callers are not certain nothing is said.
func TestPhasesOfHelpers(t *testing.T) {
	grants := "module(grants = [grant(\"v1\", \"Pod\", verbs = [\"get\", \"apply\"])])\n"
	got := found(t, "phases", map[string]string{
		"web/module.star": grants,
		"web/hooks/wrong.star": `def keep(o):
    return first(o)

def first(o):
    return second(o.metadata.name)

def second(name):
    return k8s.get("v1", "Pod", name)

def review(ctx):
    note()

def note():
    k8s.apply({})

hook(lambda ctx: None, name = "a", on = [k8s.watch("v1", "Pod", filter = keep)])
hook(review, on = [k8s.validate("v1", "Pod", failure_policy = "fail")])
`,
		"fine/module.star": grants,
		"fine/lib/write.star": `def write():
    k8s.apply({})
`,
		"fine/hooks/fine.star": `load("../lib/write.star", "write")

def both(o, asked = False):
    return k8s.get("v1", "Pod", "x") if asked else o

def keep(o):
    return [both(o), local(o), shared]

def f(ctx):
    both(None, True)
    write()
    reached()

def reached():
    k8s.apply({})

def local(o):
    get = lambda x: x
    return get(o)

def get(x):
    return k8s.get("v1", "Pod", "x")

def shared():
    k8s.apply({})

hook(f, on = [k8s.watch("v1", "Pod", filter = keep)])
`,
		"fine/hooks/other.star": `def loaded():
    k8s.apply({})

def keep(o):
    return loaded() if o.get("spec.never") else 1

hook(lambda ctx: None, name = "o", on = [k8s.watch("v1", "Pod", filter = keep)])
`,
		"fine/hooks/third.star": `load("./other.star", "loaded")

hook(lambda ctx: loaded(), name = "t", on = [startup])
`,
		"far/module.star": grants,
		"far/lib/a.star": `load("//far/lib/b.star", inner = "write")

def outer(o):
    inner()
    return o.metadata.name
`,
		"far/lib/b.star": `def write():
    values.set("a", 1)

def handed():
    values.set("a", 1)

def late():
    values.set("a", 1)
`,
		"far/hooks/a.star": `load("../lib/a.star", "outer")
load("../lib/b.star", "handed", "late")

TABLE = {"a": handed}
AFTER = [lambda: late()]

def keep(o):
    return [outer(o), handed(), late()] if o else None

hook(lambda ctx: None, name = "a", on = [k8s.watch("v1", "Pod", filter = keep)])
`,
	})
	want := []string{
		`far/lib/b.star:2:5: values.set is not available in a filter, which may only look at its object; call it from a hook`,
		`web/hooks/wrong.star:14:5: k8s.apply is not available in a hook that answers an admission request, which may read but not write; write from a run of another hook`,
		`web/hooks/wrong.star:8:12: k8s.get is not available in a filter, which may only look at its object; call it from a hook`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Values that helpers in other files set count as set by the hooks.
func TestValuesOfLibraries(t *testing.T) {
	schema := "type: object\nproperties: {internal: {type: object, default: {}, properties: {a: {type: integer}, b: {type: integer}}}}\n"
	got := found(t, "values", map[string]string{
		"web/module.star":         "module()\n",
		"web/openapi/values.yaml": schema,
		"web/lib/set.star": `def set_a(n):
    values.set("internal.a", n)

def set_c(n):
    values.set("internal.c", n)
`,
		"web/hooks/one.star": `load("../lib/set.star", "set_a", "set_c")

def one(ctx):
    set_a(1)
    set_c(1)

hook(one, on = [startup])
`,
		"web/hooks/two.star": `load("../lib/set.star", set = "set_a")

def two(ctx):
    if ctx.events:
        set(2)

hook(two, on = [startup])
`,
		// Shared by modules: whose values they are nobody knows.
		"global/lib/any.star":    "def set_any(n):\n    values.set(\"internal.any\", n)\n",
		"db/module.star":         "module()\n",
		"db/hooks/a.star":        "load(\"//global/lib/any.star\", \"set_any\")\nload(\"//db/lib/own.star\", \"set_x\")\n\ndef a(ctx):\n    set_any(1)\n    set_x(1)\n\nhook(a, on = [startup])\n",
		"db/openapi/values.yaml": schema,
		"db/lib/own.star":        "def set_x(n):\n    values.set(\"x\", n)\n",
		"other/module.star":      "module()\n",
		"other/hooks/a.star":     "load(\"//db/lib/own.star\", \"set_x\")\n\ndef a(ctx):\n    set_x(1)\n\nhook(a, on = [startup])\n",
	})
	want := []string{
		`web/lib/set.star:2:16: hook hooks/two.star:two sets internal.a, and hook hooks/one.star:one may set internal.a (web/lib/set.star:2): the second one to run fails`,
		`web/lib/set.star:5:16: internal.c cannot be set: the schema has no such field (the schema has a, b)`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
