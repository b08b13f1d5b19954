package builtins

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	startime "go.starlark.net/lib/time"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/runtime/effect"
)

// lookAt evaluates an expression in which ctx is that of a controller.
func lookAt(t *testing.T, l *Lookups, expr string) (string, error) {
	t.Helper()
	thread := &starlark.Thread{}
	v, err := starlark.EvalOptions(&syntax.FileOptions{}, thread, "test", expr, starlark.StringDict{"ctx": Question{Key: "a", Parent: starlark.None, Lookups: l}.Ctx(), "time": startime.Module})
	if err != nil {
		return "", err
	}
	return v.String(), nil
}

func TestLookups(t *testing.T) {
	nodes := &WatchBinding{Read: "nodes", Index: []Index{{Name: "zone"}, {Name: "label"}}}
	calls := 0
	o := LookupsOptions{
		Bindings:   []Binding{{Name: "pod", Watch: &WatchBinding{}}, {Name: "reads-nodes", Watch: nodes}, {Name: "reads-pods", Watch: &WatchBinding{Kind: "Pod", Read: "pods"}}},
		Namespaced: func(_, kind string) bool { return kind == "Pod" },
		Rows: func(l effect.Lookup) ([]starlark.Value, error) {
			calls++
			switch l {
			case effect.Lookup{Watch: "reads-nodes", At: effect.AtObject("n1")}:
				return []starlark.Value{starlark.String("one")}, nil
			case effect.Lookup{Watch: "reads-nodes", At: effect.AtIndex("zone", "x")}, effect.Lookup{Watch: "reads-nodes", At: effect.Everywhere}:
				return []starlark.Value{starlark.String("one"), starlark.String("two")}, nil
			case effect.Lookup{Watch: "reads-pods", At: effect.Everywhere}:
				return nil, errors.New("boom")
			}
			return nil, nil
		},
		Now: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC),
	}
	for expr, want := range map[string]string{
		`ctx.reads.nodes.get("n1")`:                                     `"one" at /n1`,
		`ctx.reads.nodes.get(key = "a/b")`:                              `None at /a/b`,
		`ctx.reads.nodes.by("zone", "x")`:                               `["one", "two"] at zone=x`,
		`ctx.reads.nodes.by("label", "app=web")`:                        `[] at label=app=web`,
		`ctx.reads.nodes.all()`:                                         `["one", "two"] at *`,
		`dir(ctx.reads) + dir(ctx.reads.nodes)`:                         `["nodes", "pods", "all", "by", "get"] at `,
		`ctx.reads.nodes.by("zon", "x")`:                                `ctx.reads.nodes.by: there is no index "zon" (did you mean zone?)`,
		`ctx.reads.nodes.by("color", "x")`:                              `ctx.reads.nodes.by: there is no index "color" (it has zone, label)`,
		`ctx.reads.pods.by("color", "x")`:                               `ctx.reads.pods.by: there is no index "color" (its watch has none: k8s.watch(…, index = {…}))`,
		`ctx.reads.pods.all()`:                                          `ctx.reads.pods.all: boom`,
		`ctx.reads.nodes.get(1)`:                                        `ctx.reads.nodes.get: get: for parameter key: got int, want string`,
		`ctx.reads.nodes.get("n2")`:                                     `None at /n2`,
		`ctx.reads.pods.get("a/web")`:                                   `None`,
		`ctx.reads.pods.get("web")`:                                     `ctx.reads.pods.get: the key of a Pod is "namespace/name", got "web"`,
		`ctx.reads.node`:                                                `reads has no .node field or method (did you mean .nodes?)`,
		`ctx.reached("2026-01-31T12:00:00Z")`:                           `True`,
		`ctx.reached("2026-01-31T13:00:00+01:00")`:                      `True`,
		`ctx.reached("2026-01-31T12:00:01Z")`:                           `False until 12:00:01`,
		`ctx.reached(time.time(year = 2026, month = 2, day = 1))`:       `False until 00:00:00`,
		`[ctx.reached("2026-01-31T12:00:0%dZ" % i) for i in (5, 2, 3)]`: `[False, False, False] until 12:00:02`,
		`ctx.reached("soon")`:                                           `ctx.reached: "soon" is no time; write "2026-01-31T12:00:00Z"`,
		`ctx.reached(None)`:                                             `ctx.reached: got NoneType, want a time, or text as "2026-01-31T12:00:00Z"`,
	} {
		l := NewLookups(o)
		got, err := lookAt(t, l, expr)
		if err != nil {
			got = err.Error()
		}
		asked, due := l.Asked()
		var at []string
		for _, a := range asked {
			at = append(at, a.At)
		}
		if slices.Sort(at); err == nil && strings.Contains(expr, "nodes") {
			got += " at " + strings.Join(at, " ")
		}
		if !due.IsZero() {
			got += " until " + due.UTC().Format(time.TimeOnly)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", expr, got, want)
		}
	}

	l := NewLookups(o)
	l.Values()
	calls = 0
	if got, err := lookAt(t, l, `[ctx.reads.nodes.all() == ctx.reads.nodes.all() for i in range(3)]`); err != nil || got != "[True, True, True]" || calls != 1 {
		t.Errorf("%s, error %v, after %d calls", got, err, calls)
	}
	if asked, _ := l.Asked(); len(asked) != 2 || !slices.Contains(asked, effect.Lookup{At: effect.Everywhere}) {
		t.Errorf("asked %v", asked)
	}
	fails := NewLookups(LookupsOptions{Bindings: o.Bindings, Rows: func(effect.Lookup) ([]starlark.Value, error) { return nil, errors.New("not now") }})
	for range 2 { // another function of the same run asks again
		if got, err := lookAt(t, fails, `ctx.reads.nodes.all()`); err == nil || !strings.Contains(err.Error(), "not now") {
			t.Errorf("%s, error %v", got, err)
		}
	}
	if _, err := lookAt(t, NewLookups(o), `[ctx.reads.nodes.get(str(i)) for i in range(20000)]`); err == nil || !strings.Contains(err.Error(), "more than 10000 lookups in one run") {
		t.Errorf("error %v", err)
	}
}

func TestLookupsAreToldAsCode(t *testing.T) {
	for want, l := range map[string]effect.Lookup{
		"values":                         {At: effect.Everywhere},
		"ctx.reads.pods.all()":           {Watch: "reads-pods", At: effect.Everywhere},
		`ctx.reads.pods.get("a/p")`:      {Watch: "reads-pods", At: effect.AtObject("a/p")},
		`ctx.reads.pods.by("x", "a=\"")`: {Watch: "reads-pods", At: effect.AtIndex("x", `a="`)},
		`ctx.reads.pods.by("x", …)`:      {Watch: "reads-pods", At: effect.AtIndex("x", strings.Repeat("y", 300))},
	} {
		if got := LookupText(l, false); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := LookupText(effect.Lookup{Watch: "reads-pods", At: effect.AtIndex("x", "s3cret")}, true); got != `ctx.reads.pods.by("x", …)` {
		t.Errorf("got %s", got)
	}
}

// Places of different values, and of names, are different, however long these are and whatever they hold.
func TestPlaces(t *testing.T) {
	long := strings.Repeat("x", 300)
	seen := map[string]string{}
	for what, place := range map[string]string{
		"all": effect.Everywhere, "object": effect.AtObject("a"), "in a namespace": effect.AtObject("a/a"), "no value": effect.AtIndex("a", ""),
		"value": effect.AtIndex("a", "a"), "long": effect.AtIndex("a", long), "other long": effect.AtIndex("a", long+"x"), "star": effect.AtIndex("a", "*"),
	} {
		if seen[place] != "" {
			t.Errorf("%s and %s are both %q", what, seen[place], place)
		}
		if seen[place] = what; len(place) > 300 {
			t.Errorf("%s has %d bytes", what, len(place))
		}
	}
}
