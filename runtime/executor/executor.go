// Package executor carries out what the engine wants done, one action at a time, in
// whatever cluster its clients reach. It starts nothing by itself and keeps no state:
// drivers decide when an action is carried out, beside which others, and hand the answer
// back to the engine.
package executor

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/release"
	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/drift"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/hook"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/record"
	"github.com/starling-operator/starling/runtime/script"
	"github.com/starling-operator/starling/runtime/watch"
)

// Watches are what runs see of the cluster: [watch.Manager] has these methods.
type Watches interface {
	// Snapshot returns what a watch keeps.
	Snapshot(id string) []starlark.Value
	// About returns what a watch keeps of the objects that are for a key alone.
	About(id, key string) []starlark.Value
	// Complete says whether a watch is there, and its snapshot shows all there is.
	Complete(id string) bool
	// Find returns what a watch keeps of one object; known is false for a watch
	// that is not there or not complete.
	Find(id, namespace, name string) (found watch.Entry, there, known bool)
	// Lacking names an object that the snapshot lacks while its other objects have runs,
	// or "".
	Lacking(id string) string
	// Kick looks for kinds that may be served now.
	Kick()
}

// Options configures an [Executor]. All fields but Pods, Env, Random, Twice, Record, Mark and Charge are required.
type Options struct {
	Client   *cluster.Client
	Writer   *cluster.Writer
	Kept     *cluster.Kept
	Releases *release.Manager
	// Drift is told what releases hold.
	Drift      *drift.Tracker
	Watches    Watches
	Generation *generation.Generation
	// Instance is whose runs these are.
	Instance effect.Instance
	// HTTP answers http.get.
	HTTP builtins.Fetcher
	// Pods asks containers; nil: nobody answers.
	Answerer builtins.Answerer
	// Env looks up an environment variable for a hook; nil: none may be read.
	Env func(name string) (string, error)
	// Random returns where the random values of a run come from; nil: from the
	// system's own source.
	Random func(engine.RunHook) io.Reader
	Now    func() time.Time
	// Log returns the log of a hook, or of a module for the hook "".
	Log func(module, hook string) builtins.Logger
	// Twice has controllers asked twice: see [hook.Request].
	Twice bool
	// Plans has act make no calls.
	Plans bool
	// Record takes the runs, once each has ended; it does not wait. Nil: nobody does.
	Record func(*record.Trace)
	// Mark notes that code of this name and digest begins, and says why it must not; ended
	// is called at its end. Nil: nobody notes it.
	Mark func(what, digest string) (ended func(ok bool), err error)
	// Charge is told how long a module's filters, enabled() and chart_values() have computed,
	// by each call, and every second what any run goes on to compute that was given up. Nil:
	// nobody is.
	Charge func(module string, computed time.Duration)
}

// Executor carries out actions. It is safe for concurrent use.
type Executor struct {
	o          Options
	generation atomic.Pointer[generation.Generation]
}

// New makes an executor. It does no I/O.
func New(o Options) *Executor {
	x := &Executor{o: o}
	x.o.Generation = nil // there may soon be another one
	x.Use(o.Generation)
	return x
}

// Use has what begins from now on go by another generation.
func (x *Executor) Use(g *generation.Generation) { x.generation.Store(g) }

// host calls functions of .star files, also those that earlier generations have left.
func (x *Executor) host() *script.Host { return x.generation.Load().Host }

// RunHook calls a hook with the snapshots as they are now.
func (x *Executor) RunHook(ctx context.Context, a engine.RunHook) (engine.RunDone, hook.Result) {
	about, there := x.subject(a)
	snapshots := make(map[string][]starlark.Value, len(a.Watches))
	lacking := map[string]string{}
	reports := func(apiVersion, kind string) bool { return x.o.Client.Reports(ctx, apiVersion, kind) }
	for binding, id := range a.Watches {
		switch {
		case a.Hook.Controller == nil:
			snapshots[binding] = x.o.Watches.Snapshot(id)
		case binding != a.Each && !reads(a.Hook, binding): // its own children, and no other parents
			key := object.UID(about)
			if strings.HasPrefix(binding, builtins.FieldsBinding) { // a parent that is made anew has them, too
				key = a.Key
			}
			snapshots[binding] = unpacked(x.generation.Load(), reports, x.o.Watches.About(id, key))
		}
		if name := x.o.Watches.Lacking(id); name != "" {
			if binding != a.Each { // since the run was wanted
				return engine.RunDone{Run: a.Run, Incomplete: true}, hook.Result{}
			}
			lacking[binding] = name
		}
	}
	if !x.complete(a) {
		return engine.RunDone{Run: a.Run, Incomplete: true}, hook.Result{}
	}
	if !there {
		return engine.RunDone{Run: a.Run, Gone: true}, hook.Result{}
	}
	var random io.Reader
	if x.o.Random != nil {
		random = x.o.Random(a)
	}
	began := x.o.Now()
	g := a.Generation // a reload may have come between
	if g == nil {
		g = x.generation.Load()
	}
	request := hook.Request{
		Host: g.Host, Module: a.Module, Hook: a.Hook, Events: a.Events,
		Snapshots: snapshots, Lacking: lacking, Synced: a.Synced, Unsynced: a.Unsynced, Unserved: a.Unserved, Attempt: a.Attempt, Failed: a.Failed, Past: a.Past, Observed: a.Observed, Plans: x.o.Plans, Now: a.Now,
		Namespace: a.Namespace, Instance: x.o.Instance, Seal: x.o.Client.Seal(), Config: a.Config, State: a.State, Switches: a.Switches,
		Request: a.Request, Key: a.Key, Object: about, Cleanup: a.Cleanup, Gone: a.Object != nil,
		Random: random, HTTP: x.o.HTTP, Answerer: x.o.Answerer, Env: x.o.Env, Reader: x.o.Client, Log: x.o.Log(a.Module.Name, a.Hook.ID),
		Scope: func(apiVersion, kind string) (bool, error) {
			m, err := x.o.Client.Mapping(ctx, apiVersion, kind)
			return m.Namespaced, err
		},
	}
	var lost atomic.Bool
	if a.Hook.Controller != nil {
		request.Events, request.Rows = bare(a.Events), x.lookups(a, &lost)
	}
	request.Family, request.Twice = x.family(a, snapshots), x.o.Twice
	if a.Values != nil {
		request.Compose, request.Secrets = a.Values.Compose, a.SecretTexts
	}
	take := x.o.Record
	if g.Hook(a.Hook.ID) != a.Hook {
		take = nil // the tree that its code is in is not at hand
	}
	trace := record.Start(take, a.Run, g.Number, &request)
	result := hook.Run(x.charged(ctx, a.Module.Name), request)
	if lost.Load() {
		return engine.RunDone{Run: a.Run, Incomplete: true}, hook.Result{}
	}
	took := x.o.Now().Sub(began)
	for _, obj := range result.Found { // a replay finds them there
		binding := builtins.FieldsOf(kindOf(effect.RefOf(obj)), "").Name
		snapshots[binding] = append(snapshots[binding], object.New(obj))
	}
	if ctx.Err() == nil && !result.Rests(a.Hook) { // else it was cut short, by a reason outside of it
		trace.End(take, result, took)
	}
	return engine.RunDone{
		Run: a.Run, Effects: result.Effects, Response: result.Response, Waits: result.Waits, Children: result.Children, Actions: result.Actions, Observed: result.Observed, Lookups: result.Lookups, Due: result.Due, Writes: result.Writes, Err: result.Err, Seen: result.Seen, Took: took,
	}, result
}

// complete says that the snapshots are still those of watches that show all there is. A run
// may have waited since it was wanted: a watch that has ended, or was stopped for what it
// holds, would look like a cluster in which all is gone.
func (x *Executor) complete(a engine.RunHook) bool {
	for binding, id := range a.Watches {
		if a.Synced[binding] && !x.o.Watches.Complete(id) {
			return false
		}
	}
	return true
}

// subject returns the object that a run is about; false when it is not there any more.
func (x *Executor) subject(a engine.RunHook) (starlark.Value, bool) {
	if a.Key == "" || a.Object != nil {
		return a.Object, true
	}
	e, there, _ := x.o.Watches.Find(a.Watches[a.Each], a.ObjectNamespace, a.ObjectName)
	if e.Lacks {
		return nil, false
	}
	if e.Object != nil && !a.Hook.Binding(a.Each).Watch.KeepBoth {
		return e.Object, there
	}
	return e.Result, there
}

// Evaluate calls def enabled() of a module and, unless that says no, its def readiness().
func (x *Executor) Evaluate(ctx context.Context, a engine.Evaluate) engine.Evaluated {
	m, out := a.Module, engine.Evaluated{Op: a.Op}
	digest := x.host().Digest(m.Tree.ModuleFile)
	asked := hook.Asked{Module: m, Values: a.Values, Config: a.Config, Secrets: a.Secrets.Texts, Now: x.o.Now(), Log: x.o.Log(m.Name, "")}
	if ctx = x.metered(ctx, m.Name); m.Enabled != nil {
		out.Err = x.marked("enabled() of "+m.Name, digest, func() (err error) {
			out.Decision, err = hook.Enabled(ctx, x.host(), asked)
			return err
		})
	}
	if m.Readiness != nil && out.Err == nil && out.Decision.Answer == builtins.AnswerOn {
		if out.Err = x.marked("readiness() of "+m.Name, digest, func() (err error) {
			out.Decision.Unready, err = hook.Readiness(ctx, x.host(), asked)
			return err
		}); out.Err != nil {
			out.Decision.Unready = "readiness(): " + out.Err.Error()
		}
	}
	return out
}

// CheckSettings calls def settings_check(old, new) of a module.
func (x *Executor) CheckSettings(ctx context.Context, a engine.CheckSettings) engine.SettingsChecked {
	m, out := a.Module, engine.SettingsChecked{Op: a.Op}
	out.Err = x.marked("settings_check() of "+m.Name, m.SettingsDigest, func() (err error) {
		out.Against, err = hook.CheckSettings(x.metered(ctx, m.Name), x.host(), m, a.Old, a.New, x.o.Log(m.Name, ""))
		return err
	})
	return out
}

// metered has what is computed with ctx charged to a module.
func (x *Executor) metered(ctx context.Context, module string) context.Context {
	if x.o.Charge == nil {
		return ctx
	}
	return script.Metered(x.charged(ctx, module), func(u script.Usage) { x.o.Charge(module, u.Wall-u.Waited) })
}

// charged has what goes on past its limits charged to a module.
func (x *Executor) charged(ctx context.Context, module string) context.Context {
	if x.o.Charge == nil {
		return ctx
	}
	return script.Charged(ctx, func(_ string, computed time.Duration) { x.o.Charge(module, computed) })
}

// marked evaluates code of this name and digest, noted as long as it takes.
func (x *Executor) marked(what, digest string, evaluate func() error) error {
	if x.o.Mark == nil {
		return evaluate()
	}
	ended, err := x.o.Mark(what, digest)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	ok := false
	defer func() { ended(ok) }()
	err = evaluate()
	ok = err == nil
	return err
}

var _ builtins.Reader = (*cluster.Client)(nil)
