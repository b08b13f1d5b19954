package script

import (
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/reconcile"
)

var update = flag.Bool("update", false, "write the golden files")

const habitsFile = "testdata/habits.txt"

// habit is something that people bring along from another language: the lines that do not work here, what is
// said about them, the lines that do the same, and their result.
type habit struct {
	name                      string
	wrong, said, right, gives []string
}

// TestHabits runs what people bring along from Python and other languages. Each is refused at its place, with
// a hint; what the hint leads to works.
func TestHabits(t *testing.T) {
	head, all := habits(t, read(t, habitsFile))
	for i := range all {
		h := &all[i]
		_, err := tryHabit(t, h.wrong)
		var at *Error
		if !errors.As(err, &at) {
			t.Errorf("%s: it works", h.name)
			continue
		}
		if at.Hint == "" || at.Line == 0 || at.Col == 0 {
			t.Errorf("%s: no hint, or no place: %v", h.name, err)
		}
		said := strings.Split(err.Error(), "\n")
		v, err := tryHabit(t, h.right)
		if err != nil {
			t.Errorf("%s: what is right does not work: %v", h.name, err)
			continue
		}
		gives := []string{v.String()}
		if !*update && (strings.Join(said, "\n") != strings.Join(h.said, "\n") || gives[0] != strings.Join(h.gives, "\n")) {
			t.Errorf("%s:\n  got %s = %s\n want %s = %s", h.name, said[0], gives[0], strings.Join(h.said, "\n"), strings.Join(h.gives, "\n"))
		}
		h.said, h.gives = said, gives
	}
	if len(all) < 100 {
		t.Errorf("%d habits, want at least 100", len(all))
	}
	if *update {
		if err := os.WriteFile(habitsFile, []byte(head+printHabits(all)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// habits reads the file: what comes before the first habit, and all habits.
func habits(t *testing.T, text string) (head string, all []habit) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if name, ok := strings.CutPrefix(line, "## "); ok {
			all = append(all, habit{name: name})
			continue
		}
		if len(all) == 0 {
			head += line + "\n"
			continue
		}
		h := &all[len(all)-1]
		sign, rest, _ := strings.Cut(line, " ")
		switch sign {
		case "-":
			h.wrong = append(h.wrong, rest)
		case "!":
			h.said = append(h.said, rest)
		case "+":
			h.right = append(h.right, rest)
		case "=":
			h.gives = append(h.gives, rest)
		case "":
		default:
			t.Fatalf("%s: a line begins with -, !, +, =, or ##: %s", h.name, line)
		}
	}
	return head, all
}

func printHabits(all []habit) string {
	var b strings.Builder
	for i, h := range all {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString("## " + h.name + "\n")
		for _, part := range []struct {
			sign  string
			lines []string
		}{{"-", h.wrong}, {"!", h.said}, {"+", h.right}, {"=", h.gives}} {
			for _, line := range part.lines {
				b.WriteString(strings.TrimRight(part.sign+" "+line, " ") + "\n")
			}
		}
	}
	return b.String()
}

// tryHabit runs lines as a file, when they begin with a line of one, else in the body of a function.
func tryHabit(t *testing.T, lines []string) (starlark.Value, error) {
	t.Helper()
	src := strings.Join(lines, "\n") + "\n"
	if !strings.Contains(src, "def f(") {
		src = "def f(o, d, xs, s, n, p, ctx, desired):\n    " + strings.ReplaceAll(strings.TrimSpace(src), "\n", "\n    ") + "\n"
	}
	f := newFixture(t, map[string]string{"a.star": src, "lib/x.star": "def y():\n    return 1\n"}, func(o *Options) { o.Predeclared = nil })
	globals, err := f.Load(t.Context(), "a.star")
	if err != nil {
		return nil, err
	}
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	xs := starlark.NewList([]starlark.Value{starlark.MakeInt(3), starlark.MakeInt(1), starlark.MakeInt(2)})
	d := starlark.NewDict(1)
	if err := d.SetKey(starlark.String("a"), starlark.MakeInt(1)); err != nil {
		t.Fatal(err)
	}
	o := object.New(map[string]any{
		"kind":     "Deployment",
		"metadata": map[string]any{"name": "web", "creationTimestamp": "2026-01-31T11:00:00Z", "labels": map[string]any{"app": "web"}},
		"spec":     map[string]any{"replicas": int64(2)},
	})
	p := starlarkstruct.FromStringDict(starlarkstruct.Default, starlark.StringDict{"x": starlark.MakeInt(1)})
	ctx := builtins.NewCtx(builtins.CtxOptions{Now: now, Events: []builtins.Event{
		{Type: "added", Binding: "nodes", Name: "a", Result: starlark.None}, {Type: "startup", Binding: "startup"},
	}})
	desired := builtins.Question{Key: "a", Parent: starlark.None, Children: make([]reconcile.Child, 1)}.Ctx()
	args := starlark.Tuple{o, d, xs, starlark.String("abc"), starlark.MakeInt(3), p, ctx, desired}
	fn := globals["f"].(*starlark.Function)
	c := &builtins.Context{Phase: spec.InRun, Log: &f.log, Run: &builtins.Run{
		Module: "web", Hook: "f", Now: now, Env: func(name string) (string, error) { return "of " + name, nil },
		Random: rand.NewChaCha8([32]byte{}),
	}}
	v, _, err := f.Call(t.Context(), fn, args[:fn.NumParams()], CallOptions{Name: "test", Context: c, Limits: Limits{}})
	return v, err
}
