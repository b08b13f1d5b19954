package script

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.starlark.net/starlark"
)

// Comprehensions and slices ask for memory before they take it: the heap that the
// governor sees here never grows.
func TestComprehensionsAndSlicesAskForRoom(t *testing.T) {
	for body, stopped := range map[string]bool{
		"return len([None for _ in range(500000)])":                                          true,
		"return len([x for x in range(250) for y in range(2000)])":                           true,
		"return len([y for x in range(4) for y in range(125000)])":                           true,
		"return len([y for x in range(2) if x for y in range(300000) if y >= 0])":            true,
		"return len([z for x in [[1] * 1000] * 250 for y in [1] for z in x + x])":            true,
		"return len({x: None for x in range(120000)})":                                       true,
		"return len([[len([i for i in range(70000)]) for _ in range(2)] for k in range(3)])": false,
		"return len([x for x in range(75000)])":                                              false,
		"return len([x for x in \"ab\".elems() for y in range(40000)])":                      false,
		"return len({x: None for x in range(40000)})":                                        false,
		"x = [None] * 100000\n    return [len(x[:]), len(x[::2]), len(x[::-1])]":             false,
		"x = [None] * 250000\n    y = x[0:10]\n    return len(y)":                            false,
		"x = [None] * 250000\n    return len(x[:]) + len(x[:])":                              false,
	} {
		heap := &fakeHeap{}
		f := newFixture(t, map[string]string{"a.star": "def f():\n    " + body + "\n"}, func(o *Options) { o.Governor = NewGovernor(heap.options()) })
		_, _, err := f.call(t, t.Context(), Limits{Heap: 18 << 18})
		var l *LimitError
		if limited := errors.As(err, &l) && l.Limit == LimitMemory; limited != stopped || err != nil && !limited {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// A slice asks for what it takes, not for what it is taken of.
func TestSlicesAskForWhatTheyTake(t *testing.T) {
	heap := &fakeHeap{}
	r := newRun(t.Context(), NewGovernor(heap.options()), Limits{Heap: 8 << 20})
	defer r.end()
	thread := &starlark.Thread{}
	thread.SetLocal(runKey, r)
	large := slicedValue(thread, starlark.NewList(make([]starlark.Value, 1_000_000))).(starlark.Sliceable)
	if part, ok := large.Slice(0, 100_000, 1).(*starlark.List); !ok || part.Len() != 100_000 || r.cancelled() != nil {
		t.Errorf("a small part: %v", r.cancelled())
	}
	var l *LimitError
	if all := large.Slice(0, 1_000_000, 1); all != starlark.None || !errors.As(r.cancelled(), &l) || l.Limit != LimitMemory {
		t.Errorf("all of it: %v", r.cancelled())
	}
}

// Slices and comprehensions mean what they mean without guards.
func TestGuardedSlicesAndComprehensions(t *testing.T) {
	large := "list(range(100000))"
	for expr, want := range map[string]string{
		"(" + large + ")[5:8]": "[5, 6, 7]", "(" + large + ")[99998:]": "[99998, 99999]", "(" + large + ")[2:-99990:4]": "[2, 6]",
		"(" + large + ")[3:0:-1]": "[3, 2, 1]", "(" + large + ")[7:7]": "[]", "tuple(" + large + ")[1:3]": "(1, 2)",
		"(\"abc\" * 1000000)[1:3]": "\"bc\"", "(\"abc\" * 1000000)[2::-1]": "\"cba\"", "range(100000)[2:4]": "range(2, 4)",
		"[x for x in [1, 2, 3] if x != 2]": "[1, 3]", "[(x, y) for x in [1, 2] for y in \"ab\".elems()]": "[(1, \"a\"), (1, \"b\"), (2, \"a\"), (2, \"b\")]",
		"{x: y for x, y in {\"a\": 1}.items()}": "{\"a\": 1}", "[y for x in [[1], [2, 3]] for y in x]": "[1, 2, 3]",
		"[[y for y in range(x)] for x in range(3) for z in [0]]": "[[], [0], [0, 1]]",
		"len([x for x in range(100000) if x % 2])":               "50000", "len([x for x in range(70000) for y in range(2)])": "140000",
	} {
		f := newFixture(t, map[string]string{"a.star": "def f():\n    return " + expr + "\n"}, nil)
		if got, _, err := f.call(t, t.Context(), Limits{}); err != nil || got.String() != want {
			t.Errorf("%s is %v, %v, want %s", expr, got, err, want)
		}
	}
	for expr, want := range map[string]string{
		"[x for x in 1]": "is not iterable", "[y for x in [1] for y in x]": "is not iterable", "(1)[1:]": "invalid slice operand int", "[1][::0]": "zero is not a valid slice step",
	} {
		f := newFixture(t, map[string]string{"a.star": fmt.Sprintf("def f():\n    return %s\n", expr)}, nil)
		if _, _, err := f.call(t, t.Context(), Limits{}); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "⟨") {
			t.Errorf("%s: %v", expr, err)
		}
	}
}
