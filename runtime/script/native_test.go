//go:build unix && !race

package script

import (
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.starlark.net/starlark"
)

// large are values that are as large as the limits of operations let them be.
const large = `
def shared(n):
    x = [0]
    for i in range(n):
        x = [x] * 10
    return x

def tuples(n, last):
    x = (last,)
    for i in range(n):
        x = x * 10
    return x

def make():
    lists, other_lists = shared(7), shared(7)
    text, other_text = "a" * (1 << 24), "a" * (1 << 24)
    numbers = list(range(1000000))
    wide = tuples(6, 0)
    huge = 1
    for i in range(8000):
        huge = huge << 500
    return struct(
        huge = huge, lists = lists, other_lists = other_lists, wide = [wide] * 1000000, other_wide = [tuples(6, 0)] * 1000000, longer = wide[1:] + (1,),
        deep = struct(a = lists), other_deep = struct(a = other_lists), tables = {"a": lists}, other_tables = {"a": other_lists},
        numbers = numbers, backwards = numbers[::-1] * 4,
        text = text, other_text = other_text, texts = [text] * 1000000, other_texts = [other_text] * 1000000, last = text[1:] + "b",
        keys = [(i, tuple(numbers[:900])) for i in range(5000)] * 100,
        colliding = [i << 32 for i in range(200000)], pairs = [(i << 32, None) for i in range(200000)],
        heavy = [tuples(6, i) for i in range(4)] * 250000,
        some = set(range(500000)), more = set(range(300000, 800000)), table = {i: None for i in numbers[:500000]},
        ints = [1 << 500] * 1000000, other_ints = [1 << 500] * 1000000, floats = [float(1 << 500)] * 1000000,
    )
`

// nativeSteps are single steps that go through much.
var nativeSteps = []string{
	"v.lists == v.other_lists", "v.lists != v.other_lists", "v.lists < v.other_lists", "v.lists >= v.other_lists", "[v.lists] == [v.other_lists]",
	"v.lists in [v.other_lists]", "v.lists not in [v.other_lists]", "v.lists in (1, v.other_lists)", "[v.lists].index(v.other_lists)", "[v.lists].remove(v.other_lists)",
	"v.deep == v.other_deep", "v.tables == v.other_tables", "{1: v.deep} != {1: v.other_deep}",
	"v.wide == v.other_wide", "v.wide < v.other_wide", "v.longer in v.wide", "v.wide.index(v.longer)",
	"v.texts == v.other_texts", "v.last in v.texts", "v.texts > v.other_texts", "v.texts.index(v.last)",
	"v.ints == v.floats", "v.ints == v.other_ints", "v.some == v.more", "v.some <= v.more", "v.some >= v.more",
	"sorted(v.backwards)", "sorted(v.backwards, reverse = True)", "sorted(v.wide)", "sorted([v.lists, v.other_lists])", "sorted(v.numbers, key = lambda x: v.lists)",
	"sorted(v.texts)", "sorted(v.texts + v.other_texts)", "sorted(v.ints + v.floats)",
	"min(v.wide)", "max([v.lists, v.other_lists])", "max(v.lists, v.other_lists)", "min(v.numbers, key = lambda x: v.lists)", "max(v.texts + v.other_texts)",
	"set(v.colliding)", "set(v.keys)", "set(v.heavy)", "dict(v.pairs)", "dict([(k, 1) for k in v.keys])", "dict([(v.heavy[0], 1)] * 100000)",
	"{}.update(v.pairs)", "set().update(v.colliding)", "set().union(v.colliding)", "{k: 1 for k in v.colliding}", "{k: 1 for k in v.keys}",
	"v.some | v.more", "v.some - v.more", "v.some & v.more", "v.some ^ v.more", "v.some.union(v.more)", "v.some.issubset(v.colliding)", "v.some.issuperset(v.numbers)",
	"v.some.difference(v.colliding)", "v.some.intersection(v.colliding)", "v.some.symmetric_difference(v.colliding)", "v.table | {1: 2}", "dict(v.table)",
	"{v.heavy[0]: 1}", "v.heavy[0] in {}", "{}.get(v.heavy[0])", "set([v.heavy[0]])", "set().add(v.heavy[0])",
	"int(\"9\" * (1 << 24))", "int(x = \"9\" * (1 << 24))", "int(\"f\" * (1 << 24), 16)", "int(x = \"f\" * (1 << 24), base = 16)",
	"str(v.huge)", "\"%d\" % v.huge", "repr([v.huge])", "v.huge // (v.huge >> 2000)", "v.huge % 7", "v.huge == 1.5",
	"str(v.ints)", "\"%s\" % (v.ints,)", "repr(v.texts)", "\",\".join(v.texts)", "\"{}\".format(v.ints)", "str(v.lists)", "hash(v.text)", "float(v.text)",
	"v.text.split(\"a\")", "v.text.replace(\"a\", \"b\")", "v.text.count(\"aa\")", "v.text.find(\"b\")", "v.text.rfind(\"ba\")", "v.text.title()", "v.text.upper()", "v.text.splitlines()",
	"list(reversed(v.numbers * 4))", "list(zip(v.numbers, v.numbers))", "enumerate(v.numbers)", "all(v.ints)", "[].extend(range(4000000))",
	"bytes(v.text)", "list(v.text.elems())", "v.text == v.other_text", "v.text < v.other_text",
}

// No step of the language goes on for long once its run has passed its time.
func TestNativeStepsEnd(t *testing.T) {
	var file strings.Builder
	file.WriteString(large + "\nsteps = [\n")
	for _, step := range nativeSteps {
		file.WriteString("    lambda v: " + step + ",\n")
	}
	file.WriteString("]\n")
	f := newFixture(t, map[string]string{"a.star": file.String()}, nil)
	globals, err := f.Load(t.Context(), "a.star")
	if err != nil {
		t.Fatal(err)
	}
	call := func(fn starlark.Value, wall time.Duration, args ...starlark.Value) (starlark.Value, error) {
		v, _, err := f.Call(t.Context(), fn.(starlark.Callable), args, CallOptions{Name: "a", Context: f.context("a.star"), Limits: Limits{Wall: wall}})
		return v, err
	}
	values, err := call(globals["make"], time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	steps := globals["steps"].(*starlark.List)
	// Idle cores collect garbage, which counts as computed.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for i, step := range nativeSteps {
		runtime.GC()
		began := computed(t)
		_, err := call(steps.Index(i), 20*time.Millisecond, values)
		if took := computed(t) - began; took > time.Second {
			t.Errorf("%s took %s: %v", step, took, err)
		}
	}
}

// computed is what the process has computed: a machine with much else to do changes the time
// that passes more than that.
func computed(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
