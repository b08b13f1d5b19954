package script

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/builtins/spec"
)

type logLines struct {
	mu    sync.Mutex
	lines []string
}

func (l *logLines) Log(_ builtins.Level, msg string, _ []builtins.Field) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, msg)
}

type failure struct{ msg string }

func (f *failure) Error() string { return f.msg }

// fixture is a host over the files of a txtar-like map, with builtins for tests.
type fixture struct {
	*Host
	log  logLines
	runs map[string]int // how often each file was run
	mu   sync.Mutex
}

func newFixture(t *testing.T, files map[string]string, change func(*Options)) *fixture {
	t.Helper()
	f := &fixture{runs: map[string]int{}}
	o := Options{
		Files: tree(files),
		Std:   tree(map[string]string{"k8s.star": "def is_ready(o):\n    return True\n"}),
		Context: func(path string) *builtins.Context {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.runs[path]++
			return &builtins.Context{Phase: spec.InLoad, Log: &f.log}
		},
		Predeclared: starlark.StringDict{
			"values": starlark.NewBuiltin("values", func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
				return starlark.None, nil
			}),
			"explode": starlark.NewBuiltin("explode", func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
				panic("boom\nand more")
			}),
			"struct": starlark.NewBuiltin("struct", starlarkstruct.Make),
			"fail": starlark.NewBuiltin("fail", func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
				return nil, &failure{string(args[0].(starlark.String))}
			}),
		},
	}
	if change != nil {
		change(&o)
	}
	f.Host = New(o)
	return f
}

func tree(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, data := range files {
		m[name] = &fstest.MapFile{Data: []byte(data)}
	}
	return m
}

// call loads a.star and calls its f.
func (f *fixture) call(t *testing.T, ctx context.Context, l Limits, args ...starlark.Value) (starlark.Value, Usage, error) {
	t.Helper()
	globals, err := f.Load(t.Context(), "a.star")
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	fn, ok := globals["f"].(starlark.Callable)
	if !ok {
		t.Fatal("a.star defines no f")
	}
	l.Wall = cmp.Or(l.Wall, time.Hour) // on a busy machine, with the race detector, calls take minutes
	return f.Call(ctx, fn, args, CallOptions{Name: "test", Context: &builtins.Context{Phase: spec.InRun, Log: &f.log}, Limits: l})
}

func TestCall(t *testing.T) {
	tests := []struct{ name, src, want string }{
		{"arithmetic", "def f():\n    x = 6\n    x *= 7\n    return x * 1000", "42000"},
		{"sequence times number", "def f():\n    n = 20\n    return [\"ab\" * n, n * [1], (1,) * n][0]", `"` + strings.Repeat("ab", 20) + `"`},
		{"item times", "def f():\n    d = {\"a\": [1]}\n    d[\"a\"] *= 20\n    return len(d[\"a\"])", "20"},
		{"join and replace", `def f():` + "\n" + `    return ",".join(["a", "b"]).replace("a", "c", 1) + "x".join(["1"].__class__ if False else ["1"])`, `"c,b1"`},
		{"formatting", "def f():\n    n = 7\n    s = \"%d\"\n    s %= n\n    return [n % 3, n % n, \"%s-%d\" % (\"a\", n), \"{} {k}\".format(1, k = 2), s, str([n]), repr(\"x\")]", `[1, 0, "a-7", "1 2", "7", "[7]", "\"x\""]`},
		{"bound method", "def f():\n    j = \"-\".join\n    return j([\"a\", \"b\"])", `"a-b"`},
		{"struct field named join", "def f():\n    return [x for x in range(3) if x * x == 4]", "[2]"},
		{"sets", "def f():\n    return len(set([1, 1, 2]))", "2"},
		{"range", "def f():\n    return list(range(4, 0, -2))", "[4, 2]"},
		{"lambda with defaults", "def f():\n    g = lambda x, y = 3 * 40: x * y\n    return g(30, y = 20 * 30)", "18000"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, map[string]string{"a.star": tt.src}, nil)
			v, usage, err := f.call(t, t.Context(), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if v.String() != tt.want {
				t.Errorf("got %s, want %s", v, tt.want)
			}
			if usage.Steps == 0 {
				t.Error("no steps were counted")
			}
		})
	}
}

func TestPrintIsLogged(t *testing.T) {
	f := newFixture(t, map[string]string{
		"a.star": `load("./b.star", "b")` + "\nprint(\"a\", b)\n",
		"b.star": "b = 1\nprint(\"in b\")\n",
	}, nil)
	if _, err := f.Load(t.Context(), "a.star"); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(f.log.lines, "; "); got != "in b; a 1" {
		t.Errorf("log: %s", got)
	}
}

func TestBuiltinErrorIsFound(t *testing.T) {
	f := newFixture(t, map[string]string{"a.star": "def g():\n    fail(\"no nodes\")\n\ndef f():\n    g()\n"}, nil)
	_, _, err := f.call(t, t.Context(), Limits{})
	var own *failure
	if !errors.As(err, &own) || own.msg != "no nodes" {
		t.Fatalf("the builtin's error is not found in %v", err)
	}
	if got, want := err.Error(), "a.star:2:9: no nodes"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	var e *Error
	errors.As(err, &e)
	want := "a.star:2:9: no nodes\n    " + `    fail("no nodes")` + "\n            ^\n  a.star:5:6 in f\n  a.star:2:9 in g\n"
	if got := e.Render(); got != want {
		t.Errorf("rendered:\n%s\nwant:\n%s", got, want)
	}
}

// TestTimeoutOfABuiltin: a builtin whose own wait ran out has not stopped the run.
func TestTimeoutOfABuiltin(t *testing.T) {
	f := newFixture(t, map[string]string{"a.star": "def f():\n    read()\n"}, func(o *Options) {
		o.Predeclared["read"] = starlark.NewBuiltin("read", func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
			return nil, fmt.Errorf("read: no answer: %w", context.DeadlineExceeded)
		})
	})
	_, _, err := f.call(t, t.Context(), Limits{})
	if want := "a.star:2:9: read: no answer: context deadline exceeded"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestPanicIsAnError(t *testing.T) {
	f := newFixture(t, map[string]string{"a.star": "def f():\n    explode()\n", "b.star": "explode()\n"}, nil)
	_, _, err := f.call(t, t.Context(), Limits{})
	var p *PanicError
	if !errors.As(err, &p) || len(p.Stack) == 0 {
		t.Fatalf("got %v, want a PanicError with a stack", err)
	}
	if got, want := err.Error(), "a.star:1:1: internal error: boom"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err = f.Load(t.Context(), "b.star"); !errors.As(err, &p) {
		t.Errorf("load: got %v, want a PanicError", err)
	}
}

func TestStopped(t *testing.T) {
	const loop = "def f():\n    for i in range(1000000):\n        for j in range(1000000):\n            pass\n"
	f := newFixture(t, map[string]string{"a.star": loop}, nil)

	t.Run("steps", func(t *testing.T) {
		_, usage, err := f.call(t, t.Context(), Limits{Steps: 250_000})
		var l *LimitError
		if !errors.As(err, &l) || l.Limit != LimitSteps {
			t.Fatalf("got %v, want the steps limit", err)
		}
		if usage.Steps < 250_000 || usage.Steps > 250_000+2*stride {
			t.Errorf("stopped after %d steps", usage.Steps)
		}
		if !strings.HasPrefix(err.Error(), "a.star:3:") && !strings.HasPrefix(err.Error(), "a.star:4:") {
			t.Errorf("no place in %q", err)
		}
	})
	t.Run("time", func(t *testing.T) {
		_, _, err := f.call(t, t.Context(), Limits{Steps: 1 << 60, Wall: time.Millisecond})
		var l *LimitError
		if !errors.As(err, &l) || l.Limit != LimitTime {
			t.Fatalf("got %v, want the time limit", err)
		}
	})
	t.Run("context", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("the operator stops")
		cancel(cause)
		_, _, err := f.call(t, ctx, Limits{Steps: 1 << 60})
		if !errors.Is(err, cause) || !strings.Contains(err.Error(), "stopped: the operator stops") {
			t.Fatalf("got %v", err)
		}
	})
}

func TestHostile(t *testing.T) {
	doubled := "x = [0]" + strings.Repeat("; x = [x, x]", 40)
	tests := []struct{ name, body, want string }{
		{"range", "list(range(1 << 62))", "range: 4611686018427387904 elements are too many, the limit is 10000000"},
		{"text", `"a" * (1 << 40)`, "1 bytes times 1099511627776 are too many"},
		{"list", `[0] * ((1 << 30) - 1)`, "1 elements times 1073741823 are too many"},
		{"number first", `(1 << 30) * (0,)`, "are too many"},
		{"huge number", `"a" * (1 << 400)`, "are too many"},
		{"item", `d = {"x": [0]}; d["x"] *= 1 << 30`, "are too many"},
		{"replace", `s = "a" * (1 << 20); s.replace("a", s)`, "replace: the result would have more than 16777216 bytes"},
		{"join", `s = "a" * (1 << 20); ",".join([s] * 1000000)`, "join: the result would have more"},
		{"str", doubled + "; str(x)", "str: the result would have more than 16777216 bytes"},
		{"repr", "x = []; y = [x for _ in range(600)]; z = deep(1000); repr(z)", "repr: values lie in each other more than 500 deep"},
		{"format", `s = "a" * (1 << 20); "{}{}".format(s, s); ("{0}" * 1000).format(s)`, "format: the result would have more"},
		{"format keyword", `s = "a" * (1 << 20); ("{x}" * 1000).format(x = s)`, "format: the result would have more"},
		{"percent", `s = "a" * (1 << 20); ("%s" * 100) % ((s,) * 100)`, "%: the result would have more"},
		{"percent now", doubled + `; s = "%s"; s %= (x,)`, "%: the result would have more"},
		{"doubled text", `x = "a" * 1000; x = twice(x, 60)`, "16384000 and 16384000 bytes together are too many, the limit is 16777216"},
		{"doubled list", `x = twice([0], 60)`, "elements together are too many, the limit is 4000000"},
		{"doubled tuple", `x = twice((0,), 60)`, "elements together are too many"},
		{"doubled at once", `x = "a" * (1 << 20); x = now(x)`, "16777216 and 16777216 bytes together are too many, the limit is 16777216"},
		{"doubled list at once", `x = now([0] * 1000)`, "extend: 4096000 elements are too many, the limit is 4000000"},
		{"squares", `n = square(1 << 500)`, "the product would have 256002 bits, the limit is 131072"},
		{"digits", `int("9" * (1 << 20))`, "int: the text has 1048576 characters, the limit is 10000"},
		{"set", "set(range(10000000))", "set: 10000000 elements are too many, the limit is 1000000"},
		{"pairs", "enumerate(range(10000000))", "enumerate: 10000000 elements are too many"},
		{"zip", "zip(*[range(1000000)] * 100)", "zip: 100000000 elements are too many"},
		{"zip of a number", "zip(5)", "argument #1 is not iterable: int"},
		{"codepoints", `("a" * (1 << 24)).codepoints()`, "codepoints: 16777216 elements are too many, the limit is 2000000"},
		{"bytes", `bytes("a" * (1 << 24)).elems()`, "elems: 16777216 elements are too many"},
		{"lines", `("\n" * (1 << 24)).splitlines()`, "splitlines: 16777217 elements are too many"},
		{"words", `("a " * (1 << 23)).split()`, "split: 8388609 elements are too many"},
		{"fields", `("a," * (1 << 23)).split(",")`, "split: 8388609 elements are too many"},
		{"max", "max(range(1 << 62))", "range: 4611686018427387904 elements are too many"},
		{"a key in the message", `{}["a" * (1 << 20)]`, "…"},
		{"a large key", `t = ("\x00" * (1 << 20),) * 400; {}[t]`, "a key has more than 2 MiB as a text"},
		{"a large key that is added to", `t = ("\x00" * (1 << 20),) * 400; d = {}; d[t] += 1`, "a key has more than 2 MiB as a text"},
		{"a large key that is there twice", `t = ("\x00" * (1 << 20),) * 400; {t: 1, t: 2}`, "a key has more than 2 MiB as a text"},
		{"a large text as a key", `{}["\x00" * (1 << 24)]`, "a key has more than 2 MiB as a text"},
		{"a large keyword", `args(**{"\x00" * (1 << 24): 1})`, "a key has more than 2 MiB as a text"},
		{"getattr", `s = "a" * (1 << 20); getattr(s, "replace")("a", s)`, "replace: the result would have more than"},
		{"bound method", `a = [0].append; r = "a".replace; r("a", "a" * (1 << 24)); s = "a" * (1 << 20); s.replace("a", s)`, "replace: the result would have more than"},
		{"join of keys", `s = "a" * (1 << 20); ",".join({s + str(i): 1 for i in range(100)})`, "join: the result would have more"},
		{"text and literal", `s = "a" * (1 << 24); s + "b"`, "16777216 and 1 bytes together are too many"},
		{"small factor", `s = "a" * (1 << 24); s * 3`, "16777216 bytes times 3 are too many"},
		{"item percent now", `s = "a" * (1 << 20); d = {"x": "%s" * 100}; d["x"] %= tuple([s] * 100)`, "%: the result would have more"},
		{"item added now", `d = {"x": "a" * (1 << 24)}; d["x"] += "b"`, "together are too many"},
		{"set union", "all = set(range(1000000)) | set(range(1000000, 2000000)); all | set([1])", "elements together are too many, the limit is 2000000"},
		{"extend", "[].extend(range(10000000))", "extend: 10000000 elements are too many, the limit is 4000000"},
		{"update", "set().update(range(10000000))", "update: 10000000 elements are too many, the limit is 2000000"},
		{"bytes of numbers", "bytes([1]*4000000 + [1]); bytes(range(10000000) and [1] * 4000000); bytes(\"a\" * (1 << 24)) + b\"x\"", "together are too many"},
		{"nested tuple as a key", "x = (); d = {nested(x, 3000000, lambda x: (x,)): 1}", "tuples or structs lie in each other more than 1000 deep"},
		{"nested by tuple", "{nested((), 3000000, lambda x: tuple([x])): 1}", "more than 1000 deep"},
		{"nested by zip", "{nested((), 3000000, lambda x: zip([x])[0]): 1}", "more than 1000 deep"},
		{"nested by items", "{nested((), 3000000, lambda x: {1: x}.items()[0]): 1}", "more than 1000 deep"},
		{"nested by getattr", "{nested((), 3000000, lambda x: getattr({1: x}, \"items\")()[0]): 1}", "more than 1000 deep"},
		{"nested by popitem", "{nested((), 3000000, lambda x: {1: x}.popitem()): 1}", "more than 1000 deep"},
		{"nested by enumerate", "{nested((), 3000000, lambda x: enumerate([x])[0]): 1}", "more than 1000 deep"},
		{"nested by args", "{nested((), 3000000, lambda *x: x): 1}", "more than 1000 deep"},
		{"nested by args of a function", "{nested((), 3000000, args): 1}", "more than 1000 deep"},
		{"nested by struct", "{nested((), 3000000, lambda x: struct(x = x)): 1}", "more than 1000 deep"},
		{"wide tuple as a key", "{nested((), 60, lambda x: (x, x)): 1}", "a tuple or struct holds more than 8000000 values"},
		{"long texts in a tuple", `{("a" * (1 << 24),) * 1000000: 1}`, "a tuple or struct holds more than 8000000 values"},
		{"recursion", "f()", "function f called recursively (recursion is off: use a loop)"},
		{"recursion by lambda", "g = lambda h: h(h); g(g)", "called recursively"},
	}
	const deep = "\n\ndef deep(n):\n    x = []\n    for i in range(n):\n        x = [x]\n    return x\n" +
		"\ndef twice(x, n):\n    for i in range(n):\n        x = x + x\n    return x\n" +
		"\ndef now(x):\n    for i in range(60):\n        x += x\n    return x\n" +
		"\ndef nested(x, n, f):\n    for i in range(n):\n        x = f(x)\n    return x\n" +
		"\ndef args(*x):\n    \"A doc string.\"\n    return x\n" +
		"\ndef square(n):\n    for i in range(60):\n        n = n * n\n    return n\n"
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, map[string]string{"a.star": "def f():\n    " + tt.body + deep}, nil)
			// The race detector takes its time.
			_, _, err := f.call(t, t.Context(), Limits{Wall: 10 * time.Minute})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			if strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "a.star:") || len(err.Error()) > 5000 {
				t.Errorf("no one line with a place: %q", err)
			}
		})
	}
}

// The limits leave the everyday uses of the same names alone.
func TestBoundedBuiltinsAreTheirOwn(t *testing.T) {
	f := newFixture(t, map[string]string{"a.star": `
def f():
    x, l, t = "a b", [1], (2,)
    y = l
    y += t
    n = 3
    n += len(l)
    b = bytes("xy")
    d, e, s = {"a": 5, "b": "%s-%s"}, {"c": 1}, set([1])
    d["a"] %= 3
    d["b"] %= (1, 2)
    d |= e
    s |= set([2])
    s ^= set([1])
    m = [7, 8]
    m[-1] %= 5
    m += {"k": 1}
    w = m
    w += [9]
    p, (q, r) = 1, (2, 3)
    k, c = (1, "a"), {True: 1, b"x": 2}
    c[k], c[struct(z = 1)] = 3, 4
    c[k] += len(l)
    if [c[(1, "a")], c[k], c[True], c[b"x"], c[struct(z = 1)], m[n - 4], x[-1 - 0], dict(**{"y": 1}), {k: 1}] != [5, 5, 1, 2, 4, 3, "b", {"y": 1}, {(1, "a"): 1}]:
        fail("got %s" % c)
    if [d, s, m, p, q, r, d | {"z": 1}, s - s, s & s, n - n, 7 & 3] != [{"a": 2, "b": "1-2", "c": 1}, set([2]), [7, 3, "k", 9], 1, 2, 3, {"a": 2, "b": "1-2", "c": 1, "z": 1}, set(), set([2]), 0, 3]:
        fail("got %s" % [d, s, m, p, q, r])
    return [x + x, l + y, t + t, n, n * (1 << 70), list("ab".elems()), x.split(), x.split(" ", 1), "a\nb".splitlines(), x.rsplit(),
            sorted(set([3, 1])), list(zip([1], [2])), enumerate(["z"]), reversed([1, 2]), int("7"), int("ff", 16), list(b.elems()), list("é".codepoints())]
`}, nil)
	v, _, err := f.call(t, t.Context(), Limits{})
	want := `["a ba b", [1, 2, 1, 2], (2, 2), 5, 5902958103587056517120, ["a", "b"], ["a", "b"], ["a", "b"], ["a", "b"], ["a", "b"], ` +
		`[1, 3], [(1, 2)], [(0, "z")], [2, 1], 7, 255, [120, 121], ["é"]]`
	if err != nil || v.String() != want {
		t.Errorf("got  %v, %v\nwant %s", v, err, want)
	}
}

// Globals that nobody could freeze are an error of their file.
func TestGlobalsThatCannotBeFrozen(t *testing.T) {
	const grow = "def grow(x, n, wrap):\n    for i in range(n):\n        x = wrap(x)\n    return x\n"
	for body, want := range map[string]string{
		"x = [grow((), 21, lambda x: (x, x))] * 10":                       "a.star: x: holds more than 20000000 values",
		"x = grow([], 20000, lambda x: [x])":                              "a.star: x: holds values that lie in each other more than 10000 deep",
		"x = grow([], 60, lambda x: [x, x])":                              "", // each list is frozen once
		"x = [grow(0, 60, lambda x: {1: x, 2: x})]":                       "",
		"def g(y = [grow(0, 21, lambda x: (x, x))] * 10):\n    pass":      "a.star: g: holds more than",
		"g = (lambda y: lambda: y)([grow(0, 21, lambda x: (x, x))] * 10)": "a.star: g: holds more than",
		"s = set([grow((), 20, lambda x: (x,))])\nl = [s, s, [s]]\n":      "",
	} {
		f := newFixture(t, map[string]string{"a.star": grow + body + "\n"}, nil)
		_, err := f.Load(t.Context(), "a.star")
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", body, err, want)
		}
	}
}

func TestFilesAreFrozen(t *testing.T) {
	f := newFixture(t, map[string]string{"a.star": "cache = {}\nlines = []\n\ndef f(what):\n    if what == 1:\n        cache[\"x\"] = 1\n    lines.append(1)\n"}, nil)
	for i, want := range []string{
		"a.star:7:17: append: this value is shared and cannot be changed (copy(x) makes a copy you may change)",
		"a.star:6:14: this value is shared and cannot be changed (copy(x) makes a copy you may change)",
	} {
		_, _, err := f.call(t, t.Context(), Limits{}, starlark.MakeInt(i))
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestManyCalls(t *testing.T) {
	f := newFixture(t, map[string]string{"a.star": "def f(x):\n    return x + 1\n"}, func(o *Options) { o.Governor = NewGovernor(GovernorOptions{}) })
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			v, _, err := f.call(t, t.Context(), Limits{}, starlark.MakeInt(i))
			if err != nil || v.String() != fmt.Sprint(i+1) {
				t.Errorf("%d: %v, %v", i, v, err)
			}
		})
	}
	wg.Wait()
	if n := f.runs["a.star"]; n != 1 {
		t.Errorf("a.star was run %d times", n)
	}
}

func BenchmarkFilter(b *testing.B) {
	h := New(Options{
		Files:       tree(map[string]string{"a.star": "def f(x):\n    return {\"a\": x}\n"}),
		Context:     func(string) *builtins.Context { return &builtins.Context{Log: &logLines{}} },
		Governor:    NewGovernor(GovernorOptions{}),
		Predeclared: starlark.StringDict{},
	})
	globals, err := h.Load(b.Context(), "a.star")
	if err != nil {
		b.Fatal(err)
	}
	o := CallOptions{Context: &builtins.Context{Log: &logLines{}}}
	for b.Loop() {
		if _, _, err := h.Call(b.Context(), globals["f"].(starlark.Callable), starlark.Tuple{starlark.None}, o); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkComparisons is what branches of hooks mostly ask.
func BenchmarkComparisons(b *testing.B) {
	h := New(Options{
		Files: tree(map[string]string{"a.star": "def f(x):\n    n, s, l = 5, \"b\", [\"a\", \"b\"]\n    for i in range(100000):\n" +
			"        if i == n or s != \"b\" or i < n and s not in l or x != None or l == None:\n            pass\n"}),
		Context:     func(string) *builtins.Context { return &builtins.Context{Log: &logLines{}} },
		Governor:    NewGovernor(GovernorOptions{}),
		Predeclared: starlark.StringDict{},
	})
	globals, err := h.Load(b.Context(), "a.star")
	if err != nil {
		b.Fatal(err)
	}
	o := CallOptions{Context: &builtins.Context{Log: &logLines{}}}
	var steps uint64
	for b.Loop() {
		_, usage, err := h.Call(b.Context(), globals["f"].(starlark.Callable), starlark.Tuple{starlark.None}, o)
		if err != nil {
			b.Fatal(err)
		}
		steps = usage.Steps
	}
	b.ReportMetric(float64(steps), "steps")
}

func BenchmarkSteps(b *testing.B) {
	h := New(Options{
		Files:       tree(map[string]string{"a.star": "def f(x):\n    n = 0\n    for i in range(100000):\n        n += i\n"}),
		Context:     func(string) *builtins.Context { return &builtins.Context{Log: &logLines{}} },
		Governor:    NewGovernor(GovernorOptions{}),
		Predeclared: starlark.StringDict{},
	})
	globals, err := h.Load(b.Context(), "a.star")
	if err != nil {
		b.Fatal(err)
	}
	o := CallOptions{Context: &builtins.Context{Log: &logLines{}}}
	for b.Loop() {
		if _, _, err := h.Call(b.Context(), globals["f"].(starlark.Callable), starlark.Tuple{starlark.None}, o); err != nil {
			b.Fatal(err)
		}
	}
}
