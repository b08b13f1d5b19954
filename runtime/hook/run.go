// Package hook calls the functions of one module: its hooks, the filters of their
// watches, and enabled(), readiness() and chart_values() of module.star. A call gets all that it
// may see in a request and returns what it asked for; nothing is carried out here.
package hook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/reconcile"
	"github.com/starling-operator/starling/runtime/script"
)

// Request is one call of a hook: (events, snapshots, values, clock).
type Request struct {
	Host   *script.Host
	Module *generation.Module
	Hook   *generation.Hook
	Events []builtins.Event
	// Snapshots and Synced are by binding.
	Snapshots map[string][]starlark.Value
	Synced    map[string]bool
	// Unsynced are kinds of which a controller does not know yet which children there are.
	Unsynced []reconcile.Kind
	// Unserved are bindings of reads= whose kind was served, and is not any more: nobody knows their rows.
	Unserved []string
	// Lacking names, by binding, an object that a snapshot lacks; the hook must not
	// conclude from it that the object is not there.
	Lacking map[string]string
	Attempt int
	// Failed says why the run before this one has failed, of a controller alone; "" when it has not.
	Failed string
	// Past is what earlier runs of a controller about the parent have left, Observed what was observed about it last.
	Past     Past
	Observed *builtins.Observed
	// Plans says that nothing is done outside of the cluster: act makes no call.
	Plans bool
	// Key and Object are what a run of a hook with for_each is about. Cleanup has
	// the hook's cleanup called.
	Key     string
	Object  starlark.Value
	Cleanup bool
	// Gone says that Object is not there any more, or is not watched: it is as it was seen last.
	Gone bool
	Now  time.Time
	// Namespace is the default namespace of the run.
	Namespace string
	// Instance is whose run it is: no grant covers what belongs to it.
	Instance effect.Instance
	// Seal is that of [builtins.Run].
	Seal    *effect.Seal
	Compose func(own []effect.ValueOp) (map[string]any, error)
	Config  map[string]any
	// State is what the hook remembers; only read.
	State map[string]any
	// Switches are the `<camelName>Enabled` of all modules: global hooks may set
	// them.
	Switches []string
	// Request is what the run answers; nil for any other run.
	Request *builtins.Request
	Reader  builtins.Reader
	// Random is where random values come from; nil: the system's own source.
	Random io.Reader
	// HTTP makes the requests of http.get; nil: none are made.
	HTTP builtins.Fetcher
	// Pods asks containers; nil: nobody answers.
	Answerer builtins.Answerer
	// Env looks up an environment variable; nil: none may be read.
	Env func(name string) (string, error)
	// Secrets returns texts of the values and of State that earlier runs have set as
	// secrets; nil: there are none.
	Secrets func() []string
	Scope   func(apiVersion, kind string) (bool, error)
	// Rows returns the rows at a place among those that a controller reads.
	Rows func(effect.Lookup) ([]starlark.Value, error)
	// Family is what a controller knows of the children of its parent; nil for any other hook.
	Family *Family
	// Twice has the desired function of a controller asked twice: an answer that differs is an error.
	Twice bool
	Log   builtins.Logger
}

// Result is what a call asked for, or why it failed. A failed one asks for
// nothing, unless it has called fail(keep = True), but for what a controller does all the same.
type Result struct {
	Effects effect.Effects
	// Size is how much memory Effects take, about, in bytes.
	Size int
	// Response is what a request run answered.
	Response builtins.Response
	// Waits says why a controller has not done all about its parent, or "".
	Waits string
	// Progressing says that the author holds back the condition Ready of the parent.
	Progressing string
	// Children says that the parent of a controller has children, or may have some once Effects are written.
	Children bool
	// Lookups are where the functions of a controller have looked. Due is the soonest time for which they have
	// asked, of those that had not come; zero: none.
	Lookups []effect.Lookup
	Due     time.Time
	// Observed is what an observe function has returned; nil for any other run, and when it has failed.
	Observed *builtins.Observed
	// Called says that act has made a call.
	Called bool
	// Found are objects that a controller has asked [Family].Find for.
	Found []map[string]any
	// Actions are what a controller has decided about its parent, Wanted are the children that it wants,
	// nil while it holds.
	Actions []reconcile.Action
	Wanted  []Wanted
	// Writes say what the writes of children in Effects are about, in their order.
	Writes []reconcile.Write
	Usage  script.Usage
	Err    error
	// Ctx returns the ctx that the function was called with; nil for a conversion, and for a controller that was
	// not asked.
	Ctx func() starlark.Value
	// Seen is what the run has seen of Secrets, and puts there: it has to be hidden in
	// errors about Effects.
	Seen *Seen
}

// Rests says that a controller has found all as it should be: nobody asks for such a run again.
func (r *Result) Rests(h *generation.Hook) bool {
	return h.Controller != nil && !r.Called && r.Err == nil && r.Waits == "" && len(r.Actions)+len(r.Effects.Writes) == 0
}

// Run calls a hook. The data of Secrets that it has seen is hidden in its log, in its error and in
// what it has others told.
func Run(ctx context.Context, r Request) Result {
	s := &Seen{}
	s.known(r.Secrets)
	asked := s.given(&r)
	if r.Reader != nil {
		r.Reader = seenReader{r.Reader, s}
	}
	if r.Answerer != nil {
		r.Answerer = seenAnswerer{r.Answerer, s}
	}
	if r.Log != nil {
		r.Log = seenLog{r.Log, s}
	}
	var result Result
	switch {
	case r.Hook.Controller == nil:
		result = call(ctx, r, asked)
	case r.Hook.Decides():
		result = decide(ctx, r, s)
	default:
		result = observe(ctx, r, s)
	}
	result.Err = s.Err(result.Err)
	s.maskOutputs(&result)
	s.saw(func(m *object.Mask) { Outcome(m, result.Effects, result.Response) })
	s.mark(&result.Effects)
	result.Seen = s
	return result
}

// run is what a call of a hook may see and do. It notes in waited how long others are waited for.
func (r *Request) run(waited *waiting) *builtins.Run {
	if r.Reader != nil {
		r.Reader = waitingReader{r.Reader, waited}
	}
	if r.HTTP != nil {
		r.HTTP = waitingFetcher{r.HTTP, waited}
	}
	if r.Answerer != nil {
		r.Answerer = waitingAnswerer{r.Answerer, waited}
	}
	run := &builtins.Run{
		Module: r.Module.Name, Hook: r.Hook.HookDecl.ID, Global: r.Module.Global,
		Namespace: r.Namespace, Instance: r.Instance, Seal: r.Seal, Now: r.Now, Grants: r.Module.Decl.Grants, Labels: r.Module.Decl.Labels,
		Compose: r.Compose, Config: r.Config, Reader: r.Reader, Scope: r.Scope,
		Enabled: r.Switches, State: r.State, Key: r.Key, Cleanup: r.Cleanup,
		Random: r.Random, HTTP: r.HTTP, Answerer: r.Answerer, Env: r.Env, Hosts: r.Module.Decl.Hosts, HostSources: r.Module.Decl.HostSources,
		MayConfigure: r.Module.Decl.Config, Free: r.Hook.Free,
	}
	if len(run.HostSources) > 0 && !run.Global {
		if config, _, err := r.Module.Schemas(); err == nil && config != nil {
			run.Defaults = config.Default
		}
	}
	return run
}

func call(ctx context.Context, r Request, asked func(binding string)) Result {
	var waited waiting
	run := r.run(&waited)
	arg := builtins.NewCtx(builtins.CtxOptions{
		Events: r.Events, Snapshots: r.Snapshots, Lacking: r.Lacking, Asked: asked, Synced: r.Synced, Now: r.Now, Attempt: r.Attempt,
		Module:  builtins.ModuleInfo{Name: r.Module.Name, Namespace: r.Namespace, Release: r.Module.Decl.Release},
		Request: r.Request, Key: r.Key, Object: r.Object,
	})
	given := func() starlark.Value { return arg }
	phase, binding := spec.InRun, (*builtins.Binding)(nil)
	if r.Request != nil {
		if binding = r.Hook.Binding(r.Request.Binding); binding == nil || binding.Phase() == 0 {
			return Result{Err: fmt.Errorf("hook %s takes no requests at %q", r.Hook.ID, r.Request.Binding)}
		}
		phase = binding.Phase()
	}
	if phase == spec.InConvert {
		return Convert(ctx, r, binding.Convert, asked)
	}
	run.Request = r.Request
	wall := r.Hook.Timeout
	if binding != nil && binding.Admission != nil { // nobody waits for longer
		wall = min(wall, binding.Admission.Timeout)
	}
	fn := r.Hook.Fn
	if r.Cleanup {
		fn = r.Hook.Cleanup
	}
	v, usage, err := r.Host.Call(ctx, fn, starlark.Tuple{arg}, script.CallOptions{
		Name:    r.Hook.ID,
		Context: &builtins.Context{Phase: phase, Run: run, Log: r.Log},
		Limits:  script.Limits{Wall: wall},
		Subject: r.Key,
	})
	usage.Waited += time.Duration(waited.total.Load())
	if err == nil && binding != nil {
		if err = run.Respond(binding, v); err != nil {
			err = fmt.Errorf("%s%w", placeOf(fn), err)
		}
	}
	var failed *builtins.FailError
	switch {
	case errors.As(err, &failed) && failed.Keep:
		return Result{Usage: usage, Effects: run.Effects, Size: run.Size(), Ctx: given, Err: err}
	case err != nil:
		return Result{Usage: usage, Ctx: given, Err: err}
	}
	return Result{Usage: usage, Effects: run.Effects, Size: run.Size(), Response: run.Response, Ctx: given}
}

// placeOf says where a function stands, before an error about what it has returned.
func placeOf(fn starlark.Callable) string {
	if f, ok := fn.(*starlark.Function); ok {
		return fmt.Sprintf("%s: %s: ", f.Position(), f.Name())
	}
	return ""
}

// Asked is a module whose module.star has functions that read values and the user's config. Texts that Secrets returns
// are hidden in its log, their errors and their reasons.
type Asked struct {
	Module         *generation.Module
	Values, Config map[string]any
	Secrets        func() []string
	Now            time.Time
	Log            builtins.Logger
}

// Enabled calls def enabled() of a module.star.
func Enabled(ctx context.Context, host *script.Host, a Asked) (out builtins.Decision, err error) {
	err = a.ask(ctx, host, "enabled", a.Module.Enabled, func(v starlark.Value) (*string, error) {
		var err error
		out, err = builtins.DecisionOf(v)
		return &out.Reason, err
	})
	return out, err
}

// Readiness calls def readiness() of a module.star, and returns why the module is not ready for others, or "".
func Readiness(ctx context.Context, host *script.Host, a Asked) (unready string, err error) {
	err = a.ask(ctx, host, "readiness", a.Module.Readiness, func(v starlark.Value) (*string, error) {
		var err error
		unready, err = builtins.UnreadyOf(v)
		return &unready, err
	})
	return unready, err
}

// ask calls a function. Read takes its answer in, and says where its reason is.
func (a Asked) ask(ctx context.Context, host *script.Host, name string, fn starlark.Callable, read func(starlark.Value) (reason *string, err error)) error {
	s := &Seen{}
	s.known(a.Secrets)
	v, _, err := host.Call(ctx, fn, nil, script.CallOptions{
		Name: a.Module.Name + "/" + name,
		Context: &builtins.Context{Phase: spec.InEnabled, Log: seenLog{a.Log, s}, Run: &builtins.Run{
			Module: a.Module.Name, Hook: name, Now: a.Now, Config: a.Config,
			Compose: func([]effect.ValueOp) (map[string]any, error) { return a.Values, nil },
		}},
		Limits: askedLimits,
	})
	if err != nil {
		return s.Err(err)
	}
	reason, err := read(v)
	s.use(func(m *object.Mask) { *reason = m.Text(*reason) })
	return s.Err(err)
}
