package builtins

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/builtins/spec"
)

// TestNames makes sure that everything of the issue is there, and nothing of a
// type that go.starlark.net would take for its own.
func TestNames(t *testing.T) {
	names := Names()
	if !slices.IsSorted(names) {
		t.Error("not sorted")
	}
	for _, want := range strings.Fields(`module grant waiting disabled hook retry startup schedule before_helm after_helm
		k8s values config log print metrics fail requeue json yaml time math re base64 hash struct equal copy dict len`) {
		if !slices.Contains(names, want) {
			t.Errorf("%s is missing", want)
		}
	}
	for name, v := range Predeclared() {
		if v.Type() == "dict" || v.Type() == "list" {
			t.Errorf("%s has the type %s", name, v.Type())
		}
		if !slices.Contains(names, name) {
			t.Errorf("%s is not in Names", name)
		}
	}
}

func exec(t *testing.T, c *Context, src string) (starlark.Value, error) {
	t.Helper()
	thread := &starlark.Thread{}
	Attach(thread, c)
	globals, err := starlark.ExecFileOptions(&syntax.FileOptions{}, thread, "x.star", src, Predeclared())
	return globals["r"], err
}

func TestFailError(t *testing.T) {
	run := newTestRun(new(int))
	_, err := exec(t, &Context{Phase: spec.InRun, Run: run, Log: &memoryLog{}}, "def f():\n    fail({\"a\": 1}, retry_after = 1.5)\nf()\n")
	var fail *FailError
	if !errors.As(err, &fail) {
		t.Fatalf("got %v", err)
	}
	if want := (FailError{Msg: `{"a": 1}`, RetryAfter: 1500 * time.Millisecond}); *fail != want {
		t.Errorf("got %+v, want %+v", *fail, want)
	}
}

func TestLimitError(t *testing.T) {
	run := newTestRun(new(int))
	run.Limits.MaxWrites = 1
	_, err := exec(t, &Context{Phase: spec.InRun, Run: run, Log: &memoryLog{}}, "values.set('a', 1)\nvalues.set('b', 1)\n")
	var limit *spec.LimitError
	if !errors.As(err, &limit) || limit.Limit != "effects" {
		t.Errorf("got %v", err)
	}
	if len(run.Effects.Values) != 1 {
		t.Errorf("recorded %v", run.Effects.Values)
	}
}

func TestDecisionOf(t *testing.T) {
	for src, want := range map[string]Decision{
		"r = True":                {Answer: AnswerOn},
		"r = False":               {Answer: AnswerDisabled, Reason: "enabled() returned False"},
		"r = waiting('a domain')": {Answer: AnswerWaiting, Reason: "a domain"},
		"r = disabled('off')":     {Answer: AnswerDisabled, Reason: "off"},
	} {
		v, err := exec(t, &Context{Phase: spec.InEnabled, Run: newTestRun(new(int)), Log: &memoryLog{}}, src)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := DecisionOf(v); err != nil || got != want {
			t.Errorf("%s: got %+v, %v", src, got, err)
		}
	}
	for _, v := range []starlark.Value{starlark.None, starlark.String("yes"), starlark.MakeInt(1)} {
		if _, err := DecisionOf(v); err == nil || !strings.Contains(err.Error(), "it must return True") {
			t.Errorf("%s: got %v", v, err)
		}
	}
}

// TestWithoutContext: pure builtins need none, all others say so.
func TestWithoutContext(t *testing.T) {
	thread := &starlark.Thread{}
	env := Predeclared()
	if _, err := starlark.EvalOptions(&syntax.FileOptions{}, thread, "x", "json.encode(1)", env); err != nil {
		t.Error(err)
	}
	for _, src := range []string{"values.get('a')", "hook(len, on = [])", "log.info('a')", "time.now()", "module()"} {
		_, err := starlark.EvalOptions(&syntax.FileOptions{}, thread, "x", src, env)
		if err == nil || !strings.HasSuffix(err.Error(), "is not available here") {
			t.Errorf("%s: %v", src, err)
		}
	}
	for phase, src := range map[spec.Phase]string{spec.InRun: "values.get('a')", spec.InLoad: "hook(len, on = [])"} {
		if _, err := exec(t, &Context{Phase: phase, Log: &memoryLog{}}, src); err == nil || !strings.HasSuffix(err.Error(), "is not available here") {
			t.Errorf("%s: %v", src, err)
		}
	}
}
