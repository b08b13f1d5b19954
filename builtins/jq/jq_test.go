package jq

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/itchyny/gojq"
	libjson "go.starlark.net/lib/json"
	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/object"
)

// The rewriting changes no program's meaning: the same outputs as gojq's alone.
func TestRewrittenJQMeansTheSame(t *testing.T) {
	input := func() any {
		return map[string]any{
			"a": []any{3, 1, 2}, "s": "b,a", "o": map[string]any{"x": 1, "y": []any{map[string]any{"n": "p", "v": 1}, map[string]any{"n": "q", "v": 2}}},
			"m": []any{[]any{1, 2}, []any{3}},
		}
	}
	for _, program := range []string{
		"[(1, 2) * (10, 100)]", "[(1, 2) + (10, 100)]", "[(8, 4) / (1, 2)]", "[(1,2) < (2,1)]",
		".a[0] *= 2", ".a[] += 1", ".a[] -= (1, 2)", ".a[] /= 2", ".a |= map(. * 2)", ".o.y[].v *= .a[0]",
		"del(.o.y[] | select(.n == \"p\"))", "[paths(. == 1)]", "(.o.y[] | select(.v >= 2)).v = 7", "path(.o.y[] | select(.v * 2 == 4))",
		".o.y | sort_by(-.v)", ".o.y | group_by(.n), unique_by(.v), min_by(.v), max_by(.v)", ".o.y | INDEX(.n)", ".a | IN([3, 1, 2], 4)",
		".s / \",\"", ".s | split(\",\")", "[.s | splits(\",\")]", ".s | test(\"b\"), gsub(\"[ab]\"; \"x\"), [scan(\".\")], sub(\",\"; \";\")",
		".m | transpose, flatten, add", "[.a[] | tostring] | join(\"-\", \"+\")", "\"\\(.a) and \\(.s * 2)\"", "@json, @html \"<\\(.s)>\"", ".a | @csv, @sh",
		"def f(x): x * 2; f(.a[0]; 1)?", "def f(x): x * 2; f(.a[0])", "def g: def h: 3; h * h; g + 1", ".a as [$x, $y] | $x * $y - 1", ".a as $r | $r | length * 2",
		"reduce .a[] as $i (0; . + $i * 2)", "[foreach .a[] as $i (0; . + $i; [$i, .])]", "[limit(3; repeat(1))]", "try (.a * {}) catch \"no\"", "try error({x: 1}) catch .x",
		"if .a[0] * 2 == 6 then \"yes\" else \"no\" end", "{(.s + \"!\"): .a[0] * 2, b: (1 + 2)}", ".a | .[1 * 1 : 1 + 1]", "-(1 + 2) * 3", "1 as $x | 2 as $y | [$x * $y, $x / $y, $x % $y]",
		".. | numbers | . * 2", "walk(if type == \"number\" then . + 1 else . end)", "to_entries | map(.key) | sort", "with_entries(.value |= tostring)", ".a | contains([1]), index(1), any(. == 1)",
		"label $out | .a[] | if . == 1 then break $out else . * 1 end", ".nope // \"d\" * 2", ".o.x //= 3", "setpath([\"a\", 0]; 9) | delpaths([[\"o\"], [\"m\"]])", "[.a[] | select(. > 1)] | length", ".a[1:] = [9] * 1?", ".o | tojson | fromjson", "[splits(\"a\")]?", "first(.a[] * 2), last(.a[]), nth(1; .a[])", "@base64 \"\\(.s)\" | @base64d", "ltrimstr(\"x\"), ascii?", "input_x?", ".a[1 - 1] = 4", ".a[.a[1]]", ".[\"a\"][1:]", "fromstream(tostream)", "[getpath([\"a\", 0], [\"o\"])]", "getpath([\"o\", \"x\"]) = 4", "pick(.a[1])", ".m[0][1] = 2", ".a[-1] = 1",
	} {
		query, err := gojq.Parse(program)
		if err != nil {
			t.Fatalf("%s: %v", program, err)
		}
		plain, errPlain := gojq.Compile(query)
		rewritten, err := compile(program)
		if (err == nil) != (errPlain == nil) {
			t.Errorf("%s: %v, alone %v", program, err, errPlain)
		}
		if err != nil || errPlain != nil {
			continue
		}
		if diff := cmp.Diff(outputsOf(plain, input()), outputsOf(rewritten, input())); diff != "" {
			t.Errorf("%s: %s", program, diff)
		}
	}
}

func outputsOf(code *gojq.Code, input any) []any {
	var out []any
	for it := code.Run(input); ; {
		v, ok := it.Next()
		if !ok {
			return out
		}
		if err, failed := v.(error); failed {
			return append(out, err.Error())
		}
		out = append(out, v)
	}
}

func TestJQEndsWithItsRun(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	code, err := compile("last(range(1e12))")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run(ctx, func(int) error { return nil }, code, starlark.None, 1); err == nil || err.Error() != context.DeadlineExceeded.Error() {
		t.Errorf("got %v", err)
	}
}

// A program that waits for its turn to take memory loses no time by that; one that works for ten seconds ends.
func TestJQTimeIsThatOfItsOwnWork(t *testing.T) {
	code, err := compile("last(range(300))")
	if err != nil {
		t.Fatal(err)
	}
	for wait, want := range map[time.Duration]string{time.Hour: "", tickTime / 2: "a jq program took longer than 10s"} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			room := func(int) error {
				if asked++; asked == 100 || wait < tickTime {
					time.Sleep(wait)
				}
				return nil
			}
			_, err := run(t.Context(), room, code, starlark.None, 1)
			if got := fmt.Sprint(err); want == "" && err != nil || want != "" && !strings.Contains(got, want) {
				t.Errorf("with %s in room: %v", wait, err)
			}
		})
	}
}

func TestJQProgramsAreBounded(t *testing.T) {
	p := &cache{known: map[string]*gojq.Code{}}
	for i := range 2 * maxPrograms {
		if _, err := p.compile(starlark.MakeInt(i).String()); err != nil {
			t.Fatal(err)
		}
		if len(p.known) > maxPrograms {
			t.Fatal("more programs than are to be kept")
		}
	}
}

func FuzzJQ(f *testing.F) {
	for _, program := range []string{".a", ".a[0] *= 2", "[.[] | tostring] | join(\",\")", "def f: 1; f * 2", "\"\\(.)\"", "reduce range(9) as $i (.; [., .])", "@json", "..|=.", "1 as [$a] ?// $a | $a"} {
		f.Add(program, `{"a": [1, "x"]}`)
	}
	f.Fuzz(func(t *testing.T, program, input string) {
		code, err := compile(program)
		if err != nil {
			return
		}
		v, err := starlark.Call(&starlark.Thread{}, libjson.Module.Members["decode"], starlark.Tuple{starlark.String(input)}, nil)
		if err != nil {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		out, err := run(ctx, func(int) error { return nil }, code, v, 100)
		if err != nil {
			return
		}
		for _, v := range out {
			if _, err := object.ToTree(v); err != nil && v.Truth() {
				t.Logf("%s: %v", v.Type(), err) // NaN and deep values may be made
			}
		}
	})
}
