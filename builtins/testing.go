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

func testSpecs() []Spec {
	obj := Param{Name: "*objs", Type: TypeAny, Doc: "Objects, lists of them, or YAML texts."}
	module := Param{Name: "module", Type: TypeString, Default: "None", Doc: "Name of the module; None: the module of the test's file."}
	get := k8sReadSpecs()                                                                  // but for default=: a test may read all
	get[0].Params[3].Doc = "Its namespace; None: default. Cluster-scoped kinds ignore it." // a test is no module
	spec := func(name, doc string, do func(*call, *Test) (starlark.Value, error), params ...Param) Spec {
		return Spec{Name: "t." + name, Phases: PhaseTest, Effect: EffectWrite, Doc: doc, Params: params,
			call: func(c *call) (starlark.Value, error) { return do(c, c.ctx.Test) }}
	}
	read := func(s Spec, returns string) Spec { s.Returns, s.Effect = returns, EffectRead; return s }
	return append([]Spec{
		spec("start", "Starts Starling with the global hooks and the module of the test's file, which is switched on, and settles. Fails when a hook, a module or a value that was set fails then, unless t.expect_failure was told of it.", callTestStart,
			Param{Name: "all", Type: TypeBool, Default: "False", Doc: "Starts all modules of the tree, on or off as its values say."}),
		spec("settle", "Lets everything happen that does not wait for a time: runs, commits, releases. It does not wait for what failed and is tried again later: it fails then, unless t.expect_failure was told of it.", callTestSettle),
		spec("restart", "Ends the process as a crash does, and starts another one in the same cluster.", worldDoes(World.Restart)),
		spec("quiet", "Fails when something is still written, or run, though nothing has changed, or when something fails that t.expect_failure was not told of.", callTestQuiet,
			Param{Name: "requests", Type: TypeBool, Default: "False", Doc: "Moves the clock on by a minute first, and fails when Starling makes a request to the API server in it, watches aside."}),
		spec("expect_failure", "Says that a hook, or a module, fails in this test: t.start(), t.settle(), t.quiet() and the end of the test let such failures pass. One that never comes fails the test.", callExpectFailure,
			Param{Name: "hook", Type: TypeString, Doc: "The hook: its function's name, name= or id. Or a module, or \"global\": its release, enabled(), or what is refused of its config."},
			Param{Name: "pattern", Type: TypeString, Doc: "Regular expression (RE2) that the error's text must match somewhere, or the line that a test without this would end with: \"hook ID fails for NAMESPACE/NAME: TEXT\"."}),
		spec("clock.advance", "Moves the clock on. All that falls due on the way happens, in order, each with all that follows.", callTestAdvance,
			Param{Name: "by", Type: TypeDuration, Doc: "How far."}),
		read(spec("clock.now", "Returns the time of the test's world. It begins at 2026-01-01T00:00:00Z.", callTestNow), "a time"),
		spec("cluster.apply", "Applies objects as a user would, and settles. A namespace is there as soon as something is written into it.", callTestApply, obj),
		spec("cluster.delete", "Deletes an object as a user would, and settles. One that is not there is an error.", callTestDelete, refParam("t.cluster.delete", "default")),
		spec("cluster.patch", "Changes an object by a JSON merge patch as a user would, and settles.", callTestPatch, refParam("t.cluster.patch", "default"),
			Param{Name: "merge", Type: TypeDict, Keyword: true, Doc: "The merge patch."}),
		read(spec("cluster.get", "Reads one object.", callTestGet, get[0].Params[:len(get[0].Params)-1]...), "the object, or None when it is not there"),
		read(spec("cluster.list", "Reads the objects of a kind.", callTestList, get[1].Params[:len(get[1].Params)-1]...), "a list of objects, sorted by namespace and name"),
		spec("cluster.fail_next", "Has the next calls of Starling to the API server fail; the test's own are spared.", callTestFail,
			Param{Name: "verb", Type: TypeString, Doc: "A verb as in grants: get, list, create, patch, apply, delete and the like."},
			Param{Name: "kind", Type: TypeString, Doc: "A kind, such as \"ConfigMap\"."},
			Param{Name: "error", Type: TypeString, Doc: "conflict, notfound, forbidden, invalid, timeout or internal."},
			Param{Name: "times", Type: TypeInt, Default: "1", Doc: "How many calls."}),
		spec("config", "Sets the user's config of a module, as its section of the ConfigMap would, and settles. It replaces what was set before.", callTestConfig,
			Param{Name: "values", Type: TypeDict, Doc: "The section."},
			Param{Name: "module", Type: TypeString, Default: "None", Doc: "Name of the module, or \"global\"; None: the module of the test's file."}),
		spec("enable", "Switches a module on, as the user's config would, and settles.", callTestSwitch(true), module),
		spec("disable", "Switches a module off, as the user's config would, and settles.", callTestSwitch(false), module),
		read(spec("values.get", "Returns a value as the module's hooks see it.", callTestValues,
			Param{Name: "path", Type: TypePath, Doc: "The path, as in values.get."},
			Param{Name: "default", Type: TypeAny, Default: "None", Doc: "The result when nothing is there."}, module), "the value, or default"),
		read(spec("runs", "Returns the runs of a hook so far, in order. Each has .key (with for_each), .error (None after a success), .effects and .logs. .effects is a dict; keys that the run has not used are missing: values (a list of {op, path, value}), writes ({kind, ref, object, patch and more}), metrics, messages (requests of http.send), requeue in nanoseconds, and state, the whole of it. Secrets in it are plain, so that a test can check them; bodies of messages are base64. .logs is a list of {level, message} and the fields.", callTestRuns,
			Param{Name: "hook", Type: TypeString, Doc: "The hook: its function's name, name= or id, where that is clear."}), "a list of runs"),
		read(spec("metrics.get", "Returns the value of a metric that hooks have set.", callTestMetric,
			Param{Name: "name", Type: TypeString, Doc: "Name of the metric."},
			Param{Name: "labels", Type: TypeDict, Default: "{}", Keyword: true, Doc: "Its labels, as metrics.set has them."},
			Param{Name: "**more", Type: TypeAny, Doc: "Labels by keyword instead: zone = \"north\"."}), "a number, or None when there is none"),
		read(spec("release", "Returns the release of a module: .revision, .status, .values and .objects.", callTestRelease, module), "the release, or None"),
		read(spec("expect", "Begins an expectation: t.expect(x).equals(y). One that is not met ends the test.", callExpect,
			Param{Name: "x", Type: TypeAny, Doc: "The value."}), "an expectation: .equals(y), .contains(y), .matches(pattern), .is_none(), .is_true()"),
		spec("expect_error", "Fails unless the call of fn ends in an error that matches.", callExpectError,
			Param{Name: "fn", Type: TypeFunction, Doc: "A function without parameters."},
			Param{Name: "pattern", Type: TypeString, Doc: "Regular expression (RE2) that the error's text must match somewhere."}),
		spec("varies", "Has -explore leave out fields that rightly differ from one order to the next: times, and what depends on them or on chance, such as certificates. With metadata.name, which k8s.create makes up by generate_name, objects of the kind are compared by all else that they have. Fields whose names end in Time, those that the API server makes up, and values of part(fill=) are left out without.", callTestVaries,
			Param{Name: "kind", Type: TypeString, Doc: "Kind of the objects, such as \"Secret\", whose data is compared decoded; \"values\" and \"state\": what hooks have set, and what ctx.state keeps."},
			Param{Name: "*paths", Type: TypeAny, Doc: "Paths of the fields, as in values.get."}),
		spec("golden", "Compares a value, as YAML, with the golden file testdata/NAME.golden beside the test; `starling test -update` writes it. Fields that the API server makes up (uid, resourceVersion, creationTimestamp, managedFields) are left out.", callGolden,
			Param{Name: "name", Type: TypeString, Doc: "Name of the file, without its end."},
			Param{Name: "value", Type: TypeAny, Doc: "Plain data or an object; a text is compared as it is."}),
	}, slices.Concat(testAskSpecs(), testPodSpecs(), testWorkloadSpecs())...)
}

func worldDoes(do func(World, context.Context) error) func(*call, *Test) (starlark.Value, error) {
	return func(_ *call, t *Test) (starlark.Value, error) { return nil, do(t.World, t.Ctx) }
}

func callTestStart(c *call, t *Test) (starlark.Value, error) {
	return nil, c.unfailed(t, t.World.Start(t.Ctx, c.boolOr("all", false)))
}

func callTestSettle(c *call, t *Test) (starlark.Value, error) {
	return nil, c.unfailed(t, t.World.Settle(t.Ctx))
}

// unfailed is an error that is there, or that of what fails unexpectedly.
func (c *call) unfailed(t *Test, err error) error {
	if err == nil {
		err = t.World.Failed()
	}
	return c.lenient(err)
}

func callExpectFailure(c *call, t *Test) (starlark.Value, error) {
	return nil, t.World.ExpectFailure(c.str("hook"), c.str("pattern"))
}

func callTestQuiet(c *call, t *Test) (starlark.Value, error) {
	what, err := "", error(nil)
	if c.boolOr("requests", false) {
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

func callTestAdvance(c *call, t *Test) (starlark.Value, error) {
	return nil, t.World.Advance(t.Ctx, c.durationOr("by", 0))
}

func callTestNow(_ *call, t *Test) (starlark.Value, error) { return startime.Time(t.World.Now()), nil }

func callTestApply(c *call, t *Test) (starlark.Value, error) {
	var objects []map[string]any
	for i, v := range c.rest {
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
	merge, err := object.ToPlain(c.arg("merge"))
	if err != nil {
		return nil, fmt.Errorf("merge: %w", err)
	}
	return nil, t.World.Patch(t.Ctx, ref, merge.(map[string]any))
}

func callTestGet(c *call, t *Test) (starlark.Value, error) {
	ref := effect.Ref{APIVersion: c.str("api_version"), Kind: c.str("kind"), Name: c.str("name"), Namespace: c.str("namespace")}
	m, err := t.World.Get(t.Ctx, ref)
	if err != nil || m == nil {
		return starlark.None, err
	}
	return object.New(m), nil
}

func callTestList(c *call, t *Test) (starlark.Value, error) {
	labels, err := selectorText(c.arg("labels"))
	if err != nil {
		return nil, fmt.Errorf("labels: %w", err)
	}
	fields, err := selectorText(c.arg("fields"))
	if err != nil {
		return nil, fmt.Errorf("fields: %w", err)
	}
	found, err := t.World.List(t.Ctx, c.str("api_version"), c.str("kind"), c.strings("namespaces"), labels, fields)
	if err != nil {
		return nil, err
	}
	out := make([]starlark.Value, len(found))
	for i, m := range found {
		out[i] = object.New(m)
	}
	return starlark.NewList(out), nil
}

func callTestFail(c *call, t *Test) (starlark.Value, error) {
	return nil, t.World.FailNext(c.str("verb"), c.str("kind"), c.str("error"), c.intOr("times", 1))
}

func (c *call) testModule(t *Test) string { return c.strOr("module", t.World.Module()) }

func callTestConfig(c *call, t *Test) (starlark.Value, error) {
	plain, err := object.ToPlain(c.arg("values"))
	if err != nil {
		return nil, fmt.Errorf("values: %w", err)
	}
	return nil, t.World.Configure(t.Ctx, c.testModule(t), plain.(map[string]any))
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
	path, err := object.ParsePath(c.arg("path"))
	if err != nil {
		return nil, fmt.Errorf("path: %w", err)
	}
	if v, ok := object.Get(all, path.Resolve(all)); ok && v != nil {
		return object.FromPlain(v), nil
	}
	return c.argOr("default", starlark.None), nil
}

func callTestRuns(c *call, t *Test) (starlark.Value, error) {
	runs, err := t.World.Runs(c.str("hook"))
	if err != nil {
		return nil, err
	}
	out := make([]starlark.Value, len(runs))
	for i, r := range runs {
		out[i] = r.value()
	}
	return starlark.NewList(out), nil
}

func callTestVaries(c *call, t *Test) (starlark.Value, error) {
	if len(c.rest) == 0 {
		return nil, errors.New("paths: none is given")
	}
	for i, v := range c.rest {
		path, err := object.ParsePath(v)
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+2, err)
		}
		t.World.Vary(c.str("kind"), path)
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
