package builtins

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	startime "go.starlark.net/lib/time"
	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// A function test_x(t) of a *_test.star file finds this in t: a simulated cluster with
// its own clock, and no process in it before t.start().

// World is the simulated cluster of one test.
type World interface {
	// Apply applies objects as a user would, and makes the namespaces they need.
	Apply(ctx context.Context, objects []map[string]any) error
	// Patch changes an object that is there by a merge patch.
	Patch(ctx context.Context, ref effect.Ref, merge map[string]any) error
	Delete(ctx context.Context, ref effect.Ref) error
	Reader
	// Scope says whether a kind is namespaced; one that is not known counts as such.
	Scope(apiVersion, kind string) (namespaced bool, err error)
	// FailNext has the next calls of Starling fail; kind "" means all kinds.
	FailNext(verb, kind, failure string, times int) error

	// Start begins the process; all means with the whole tree, as its values say.
	Start(ctx context.Context, all bool) error
	Settle(ctx context.Context) error
	// Restart ends the process as a crash does, and begins another.
	Restart(ctx context.Context) error
	Advance(ctx context.Context, d time.Duration) error
	// Quiet says what is still written, or run, though nothing has changed; "" when
	// all is at rest.
	Quiet(ctx context.Context) (string, error)
	// Requests moves the clock on by a minute in which nothing changes, and names a request
	// that the process makes in it; "" when it makes none.
	Requests(ctx context.Context) (string, error)
	// Stale has the next process first read a kind as it is now.
	Stale(kind string) error
	TestWorkloads
	// ExpectFailure says that a hook, or a module, may fail with errors that match.
	ExpectFailure(of, pattern string) error
	// Failed is an [ExpectError] with what fails now though the test has not said that
	// it may, or nil.
	Failed() error
	Now() time.Time
	// Random are bytes for what a test makes itself, such as certificates.
	Random() io.Reader

	// Module is that of the test's file, "global" for the global hooks.
	Module() string
	// Configure sets the user's config of a module; nil takes it away.
	Configure(ctx context.Context, module string, values map[string]any) error
	// Switch sets or takes away the user's switch of a module.
	Switch(ctx context.Context, module string, on bool) error
	// Values are those of a module, as its hooks see them.
	Values(module string) (map[string]any, error)
	// Runs are those of a hook so far.
	Runs(hook string) ([]TestRun, error)
	// Actions are what a controller has decided about a parent when it looked last.
	Actions(controller, key string) ([]reconcile.Action, error)
	// Reading has the functions of the controller with this desired function find objects in its reads=, by
	// name; of another function there may be none.
	Reading(ctx context.Context, desired starlark.Callable, objects map[string][]map[string]any) (LookupsOptions, error)
	Metric(name string, labels map[string]string) (float64, bool)
	// Release is what `helm get` would show of a module's release, nil without one.
	Release(ctx context.Context, module string) (map[string]any, error)
	// Admit has hooks review a change, Convert one convert an object.
	Admit(ctx context.Context, obj, old map[string]any, operation, subresource string, by ReviewUser) (TestReview, error)
	Convert(ctx context.Context, obj map[string]any, to string) (map[string]any, error)
	// Request sends an HTTP request to a hook, HTTP has a function answer those of
	// hooks to a host, Env gives them an environment variable, Sent are their messages so far.
	Request(ctx context.Context, method, path, body string, headers map[string]string) (Reply, error)
	HTTP(host string, answer func(effect.Request) (Fetched, error))
	Env(name, text string)
	// AnswerExec has a function answer k8s.exec of hooks, AnswerLogs k8s.logs.
	AnswerExec(answer func(effect.Exec) (Executed, error))
	AnswerLogs(answer func(effect.LogQuery) ([]byte, error))
	// AnswerAsk has a function answer k8s.ask and k8s.token of hooks.
	AnswerAsk(answer func(effect.Ask) (map[string]any, error))
	Sent() []SentMessage
	// Plan says what a process would change that begins now.
	// It has what [World.Start] would give it.
	Plan(ctx context.Context, all bool) (TestPlan, error)
	// Replay runs a hook with what a recorded run was given, and returns what it asks for, in lines.
	Replay(ctx context.Context, run map[string]any) ([]string, error)
	// Vary has explorations leave out a field of all objects of a kind.
	Vary(kind string, path object.Path)
	// Golden compares a text with the golden file of this name, or writes it.
	Golden(name, text string) error
}

// TestRun is one run of a hook, as a test looks at it.
type TestRun struct {
	Key     string
	Error   string // of the run or of its commit; "" for one that succeeded
	Effects map[string]any
	Logs    []map[string]any
}

// Test is what the thread of a test serves.
type Test struct {
	World World
	// Ctx ends with the test.
	Ctx context.Context
	// Lenient lets expectations that are not met pass: only the end counts.
	Lenient bool
}

// ExpectError is an expectation that was not met.
type ExpectError struct {
	Msg string
	// Differences are lines for people, where there are any.
	Differences []string
}

// Error returns the message in one line.
func (e *ExpectError) Error() string {
	if len(e.Differences) == 1 {
		return e.Msg + ": " + e.Differences[0]
	}
	return e.Msg
}

func testSpecs() []spec.Spec {
	module := spec.Optional("module", spec.String, "None")
	get := k8sReadSpecs() // but for default=: a test may read all
	row, read := testSpec(spec.Writes), testSpec(spec.Reads)
	return append([]spec.Spec{
		does("start", func(c *call, t *Test) error { return c.unfailed(t, t.World.Start(t.Ctx, c.BoolOr("all", false))) },
			spec.Optional("all", spec.Bool, "False")),
		does("settle", func(c *call, t *Test) error { return c.unfailed(t, t.World.Settle(t.Ctx)) }),
		does("restart", func(_ *call, t *Test) error { return t.World.Restart(t.Ctx) }),
		row("quiet", callTestQuiet, spec.Optional("requests", spec.Bool, "False")),
		does("expect_failure", func(c *call, t *Test) error { return t.World.ExpectFailure(c.Str("hook"), c.Str("pattern")) },
			spec.Required("hook", spec.String), spec.Required("pattern", spec.String)),
		does("clock.advance", func(c *call, t *Test) error { return t.World.Advance(t.Ctx, c.DurationOr("by", 0)) },
			spec.Required("by", spec.Duration)),
		read("clock.now", callTestNow),
		row("cluster.apply", callTestApply, spec.Rest("*objs", spec.Any)),
		row("cluster.delete", callTestDelete, refParam),
		row("cluster.patch", callTestPatch, refParam, spec.Keyword("merge", spec.Dict, "")),
		read("cluster.get", callTestGet, get[0].Params[:len(get[0].Params)-1]...),
		read("cluster.list", callTestList, get[1].Params[:len(get[1].Params)-1]...),
		does("cluster.fail_next", func(c *call, t *Test) error {
			return t.World.FailNext(c.Str("verb"), c.Str("kind"), c.Str("error"), c.IntOr("times", 1))
		}, spec.Required("verb", spec.String), spec.Required("kind", spec.String), spec.Required("error", spec.String), spec.Optional("times", spec.Int, "1")),
		row("config", callTestConfig, spec.Required("values", spec.Dict), spec.Optional("module", spec.String, "None")),
		row("enable", callTestSwitch(true), module),
		row("disable", callTestSwitch(false), module),
		read("values.get", callTestValues, spec.Required("path", spec.Path), spec.Optional("default", spec.Any, "None"), module),
		read("runs", callTestRuns, spec.Required("hook", spec.String)),
		read("metrics.get", callTestMetric, spec.Required("name", spec.String), spec.Keyword("labels", spec.Dict, "{}"),
			spec.Rest("**more", spec.Any)),
		read("release", callTestRelease, module),
		read("expect", callExpect, spec.Required("x", spec.Any)),
		does("expect_error", func(c *call, _ *Test) error { return c.lenient(expectError(c, c.Str("pattern"))) },
			spec.Required("fn", spec.Function), spec.Required("pattern", spec.String)),
		row("varies", callTestVaries, spec.Required("kind", spec.String), spec.Rest("*paths", spec.Any)),
		row("golden", callGolden, spec.Required("name", spec.String), spec.Required("value", spec.Any)),
	}, slices.Concat(testAskSpecs(), testPodSpecs(), testWorkloadSpecs())...)
}

// does declares a function of t that returns nothing.
func does(name string, do func(*call, *Test) error, params ...spec.Param) spec.Spec {
	return testSpec(spec.Writes)(name, func(c *call, t *Test) (starlark.Value, error) { return nil, do(c, t) }, params...)
}

// testSpec makes declarations of functions of t.
func testSpec(e spec.EffectClass) func(string, func(*call, *Test) (starlark.Value, error), ...spec.Param) spec.Spec {
	return func(name string, do func(*call, *Test) (starlark.Value, error), params ...spec.Param) spec.Spec {
		return declare("t."+name, spec.InTest, e, func(c *call) (starlark.Value, error) { return do(c, c.ctx.Test) },
			params...)
	}
}

// unfailed is an error that is there, or that of what fails unexpectedly.
func (c *call) unfailed(t *Test, err error) error {
	if err == nil {
		err = t.World.Failed()
	}
	return c.lenient(err)
}

func callTestQuiet(c *call, t *Test) (starlark.Value, error) {
	what, err := "", error(nil)
	if c.BoolOr("requests", false) {
		what, err = t.World.Requests(t.Ctx)
	}
	if err == nil && what == "" {
		what, err = t.World.Quiet(t.Ctx)
	}
	if err == nil && what != "" {
		err = &ExpectError{Msg: "not quiet: " + what}
	}
	return nil, c.unfailed(t, err)
}

func callTestNow(_ *call, t *Test) (starlark.Value, error) { return startime.Time(t.World.Now()), nil }

func callTestApply(c *call, t *Test) (starlark.Value, error) {
	var objects []map[string]any
	for i, v := range c.Rest {
		more, err := testObjects(v)
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
		objects = append(objects, more...)
	}
	return nil, t.World.Apply(t.Ctx, objects)
}

// testObjects reads an object, a list of objects, or YAML.
func testObjects(v starlark.Value) ([]map[string]any, error) {
	if text, ok := starlark.AsString(v); ok {
		return ParseObjects(text)
	}
	return objectsOf(v)
}

func callTestDelete(c *call, t *Test) (starlark.Value, error) {
	ref, _, err := c.target()
	if err != nil {
		return nil, err
	}
	return nil, t.World.Delete(t.Ctx, ref)
}

func callTestPatch(c *call, t *Test) (starlark.Value, error) {
	ref, _, err := c.target()
	if err != nil {
		return nil, err
	}
	merge, err := c.plainDict("merge")
	if err != nil {
		return nil, err
	}
	return nil, t.World.Patch(t.Ctx, ref, merge)
}

func callTestGet(c *call, t *Test) (starlark.Value, error) {
	ref := effect.Ref{APIVersion: c.Str("api_version"), Kind: c.Str("kind"), Name: c.Str("name"), Namespace: c.Str("namespace")}
	m, err := t.World.Get(t.Ctx, ref)
	if err != nil || m == nil {
		return starlark.None, err
	}
	return object.New(m), nil
}

func callTestList(c *call, t *Test) (starlark.Value, error) {
	labels, err := selectorText(c.Arg("labels"))
	if err != nil {
		return nil, fmt.Errorf("labels: %w", err)
	}
	fields, err := selectorText(c.Arg("fields"))
	if err != nil {
		return nil, fmt.Errorf("fields: %w", err)
	}
	found, err := t.World.List(t.Ctx, c.Str("api_version"), c.Str("kind"), c.Strings("namespaces"), labels, fields)
	if err != nil {
		return nil, err
	}
	return listOf(found, objectOrNone), nil
}

func (c *call) testModule(t *Test) string { return c.StrOr("module", t.World.Module()) }

func callTestConfig(c *call, t *Test) (starlark.Value, error) {
	values, err := c.plainDict("values")
	if err != nil {
		return nil, err
	}
	return nil, t.World.Configure(t.Ctx, c.testModule(t), values)
}

func callTestSwitch(on bool) func(*call, *Test) (starlark.Value, error) {
	return func(c *call, t *Test) (starlark.Value, error) {
		return nil, t.World.Switch(t.Ctx, c.testModule(t), on)
	}
}

func callTestValues(c *call, t *Test) (starlark.Value, error) {
	all, err := t.World.Values(c.testModule(t))
	if err != nil {
		return nil, err
	}
	path, err := object.ParsePath(c.Arg("path"))
	if err != nil {
		return nil, fmt.Errorf("path: %w", err)
	}
	if v, ok := object.Get(all, path.Resolve(all)); ok && v != nil {
		return object.FromPlain(v), nil
	}
	return c.ArgOr("default", starlark.None), nil
}

func callTestRuns(c *call, t *Test) (starlark.Value, error) {
	runs, err := t.World.Runs(c.Str("hook"))
	if err != nil {
		return nil, err
	}
	return listOf(runs, TestRun.value), nil
}

func callTestVaries(c *call, t *Test) (starlark.Value, error) {
	if len(c.Rest) == 0 {
		return nil, errors.New("paths: none is given")
	}
	for i, v := range c.Rest {
		path, err := object.ParsePath(v)
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+2, err)
		}
		t.World.Vary(c.Str("kind"), path)
	}
	return nil, nil
}

func callTestRelease(c *call, t *Test) (starlark.Value, error) {
	m, err := t.World.Release(t.Ctx, c.testModule(t))
	if err != nil || m == nil {
		return starlark.None, err
	}
	return object.New(m), nil
}
