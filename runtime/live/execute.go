package live

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/release"
	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/hook"
	"github.com/starling-operator/starling/runtime/watch"
)

// do carries out one action. What takes time gets a goroutine; its result comes
// back through the inbox.
func (d *Driver) do(a engine.Action) {
	switch a := a.(type) {
	case engine.StartWatch:
		d.startWatch(a)
	case engine.StopWatch:
		d.watches.Stop(a.ID)
		d.eachWatches.Delete(a.ID)
		d.metrics.state.watched(a.ID)
	case engine.RunHook:
		done := engine.RunDone{Run: a.Run}
		d.start(func() error { done = d.runHook(a); return done.Err },
			func(err error) engine.Input { done.Err = err; return done })
	case engine.Unhold:
		d.start(func() error { return d.unhold(d.work, a) },
			func(err error) engine.Input { return engine.Unheld{Op: a.Op, Err: err} })
	case engine.Serve:
		d.requests.serve(a)
	case engine.Respond:
		d.requests.respond(a)
	case engine.Commit:
		d.start(func() error { return d.commit(a) },
			func(err error) engine.Input { return engine.Committed{Run: a.Run, Err: err} })
	case engine.Save:
		d.start(func() error { return d.kept.Save(d.work, a.Module, a.Data) },
			func(err error) engine.Input { return engine.Saved{Op: a.Op, Err: err} })
	case engine.Evaluate:
		done := engine.Evaluated{Op: a.Op}
		d.start(func() error { done = d.evaluate(a); return done.Err },
			func(err error) engine.Input { done.Err = err; return done })
	case engine.ApplyCRDs:
		d.start(func() error { return d.applyCRDs(a) },
			func(err error) engine.Input { return engine.CRDsApplied{Op: a.Op, Err: err} })
	case engine.Release:
		done := engine.Released{Op: a.Op}
		d.start(func() error { done = d.release(a); return done.Err },
			func(err error) engine.Input { done.Err = err; return done })
	case engine.Uninstall:
		d.start(func() error { return d.uninstall(a) },
			func(err error) engine.Input { return engine.Uninstalled{Op: a.Op, Err: err} })
	case engine.Publish:
		for _, err := range d.metrics.hooks.publish(a.Module, a.Hook, a.Metrics) {
			d.log(a.Module, a.Hook).Log(builtins.LevelError, err.Error(), nil)
		}
	case engine.Send:
		d.outbox.send(a)
	case engine.Unpublish:
		d.metrics.hooks.unpublish(a.Module)
	case engine.Wake:
		d.timer.Stop()
		if !a.At.IsZero() {
			d.timer.Reset(max(time.Until(a.At), 0))
		}
	case engine.Note:
		var fields []builtins.Field
		if trace := traceOf(a.Err); trace != "" {
			fields = append(fields, builtins.Field{Key: TraceField, Value: trace})
		}
		d.log(a.Module, a.Hook).Log(a.Level, a.Message, fields)
	}
}

// start does work beside the engine's goroutine and hands its answer over.
func (d *Driver) start(work func() error, answer func(error) engine.Input) {
	d.busy.Go(func() { d.inbox.put(answer(d.guard(work))) })
}

// guard makes a panic, in Helm for instance, the error of the work that met it: it
// is tried again like any other, and all else goes on.
func (d *Driver) guard(work func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("internal error: %v; this is a bug, please report it", p)
			d.o.Log.Debug().Str(TraceField, string(debug.Stack())).Msg(err.Error())
		}
	}()
	return work()
}

func (d *Driver) startWatch(a engine.StartWatch) {
	d.metrics.state.watching(a)
	w := a.Watch
	spec := watchSpec(a.ID, w)
	spec.Finalizer = a.Finalizer
	if a.Each {
		d.eachWatches.Store(a.ID, true)
	}
	spec.Filter = hook.Filter(d.work, d.o.Generation.Host, w, d.log(a.Hook.Module, a.Hook.ID))
	d.watches.Start(spec)
}

// watchSpec is a watch as its binding says, all but its filter.
func watchSpec(id string, w *builtins.WatchBinding) watch.Spec {
	return watch.Spec{
		ID: id, APIVersion: w.APIVersion, Kind: w.Kind,
		Namespaces: w.Namespaces, ExcludeNamespaces: w.ExcludeNamespaces, NamespaceLabels: w.NamespaceLabels,
		Names: w.Names, Labels: w.Labels, Fields: w.Fields,
		FilterID: w.FilterID, KeepObject: w.KeepObject,
	}
}

func (d *Driver) runHook(a engine.RunHook) engine.RunDone {
	if a.Request == nil { // whoever takes requests bounds them, and somebody waits
		d.runSlots <- struct{}{}
		defer func() { <-d.runSlots }()
	}
	snapshots := make(map[string][]starlark.Value, len(a.Watches))
	for binding, id := range a.Watches {
		snapshots[binding] = d.watches.Snapshot(id)
	}
	about, there := d.subject(a)
	if !there {
		return engine.RunDone{Run: a.Run, Gone: true}
	}
	began := time.Now()
	if err := d.marks.begin(a.Hook.ID); err != nil {
		return engine.RunDone{Run: a.Run, Err: fmt.Errorf("the run cannot be marked in --state-dir: %w", err)}
	}
	d.metrics.begins(a.Module.Name, a.Hook.ID, a.Attempt, began)
	result := hook.Run(d.work, hook.Request{
		Host: d.o.Generation.Host, Module: a.Module, Hook: a.Hook, Events: a.Events,
		Snapshots: snapshots, Synced: a.Synced, Attempt: a.Attempt, Now: a.Now,
		Namespace: a.Namespace, Compose: a.Compose, Config: a.Config, State: a.State, Switches: a.Switches,
		Request: a.Request, Key: a.Key, Object: about, Cleanup: a.Cleanup,
		HTTP: d.web, Reader: d.o.Client, Scope: d.scope, Log: d.log(a.Module.Name, a.Hook.ID),
	})
	took := time.Since(began)
	d.metrics.ran(a.Module.Name, a.Hook.ID, took, result)
	if err := d.marks.end(a.Hook.ID, result.Err == nil); err != nil {
		d.o.Log.Warn().Err(err).Msg("the mark of a run stays in --state-dir")
	}
	return engine.RunDone{Run: a.Run, Effects: result.Effects, Response: result.Response, Err: result.Err, Took: took}
}

func (d *Driver) scope(apiVersion, kind string) (bool, error) {
	m, err := d.o.Client.Mapping(d.work, apiVersion, kind)
	return m.Namespaced, err
}

// commit writes objects in call order, then what is kept. The first failing write
// ends it.
func (d *Driver) commit(a engine.Commit) error {
	manager := fieldManager(a.Hook.ID)
	for i, w := range a.Writes {
		if err := d.write(a.Module, manager, w); err != nil {
			at := ""
			if w.Pos != "" {
				at = w.Pos + ": "
			}
			if len(a.Writes) > 1 {
				return fmt.Errorf("%s%w (%d of %d written)", at, err, i, len(a.Writes))
			}
			return fmt.Errorf("%s%w", at, err)
		}
	}
	if a.Keep == nil {
		return nil
	}
	if err := d.kept.Save(d.work, a.Module, a.Keep); err != nil {
		return fmt.Errorf("values are not kept: %w", err)
	}
	return nil
}

func (d *Driver) evaluate(a engine.Evaluate) engine.Evaluated {
	decision, err := hook.Enabled(d.work, d.o.Generation.Host, a.Module, a.Values, time.Now(), d.log(a.Module.Name, ""))
	return engine.Evaluated{Op: a.Op, Decision: decision, Err: err}
}

func (d *Driver) applyCRDs(a engine.ApplyCRDs) error {
	changed, err := d.releases.ApplyCRDs(d.work, a.Module.Name, a.Module.Tree.CRDs)
	if changed {
		d.o.Client.Refresh()
		d.releases.ResetDiscovery()
		d.watches.Kick()
	}
	return err
}

func (d *Driver) release(a engine.Release) engine.Released {
	decl := a.Module.Decl
	slots := d.helmSlots
	if decl.Wait {
		slots = d.waitSlots
	}
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-d.work.Done():
		return engine.Released{Op: a.Op, Err: errStopping}
	}
	vals, err := hook.ChartValues(d.work, d.o.Generation.Host, a.Module, a.Values, time.Now(), d.log(a.Module.Name, ""))
	if err != nil {
		return engine.Released{Op: a.Op, Err: err}
	}
	began := time.Now()
	result, err := d.releases.Reconcile(d.work, release.Target{
		Module: a.Ref.Module, Name: a.Ref.Name, Namespace: a.Ref.Namespace,
		Chart: a.Module.Tree.Chart, Values: vals, Wait: decl.Wait, Timeout: decl.Timeout,
	})
	d.metrics.released(a.Ref.Module, string(result.Action), time.Since(began), err)
	if err == nil && result.Action != release.ActionUnchanged {
		// The chart may have brought kinds that hooks wait for.
		d.watches.Kick()
		d.o.Log.Info().Str("module", a.Ref.Module).Str("release", a.Ref.Namespace+"/"+a.Ref.Name).
			Int("revision", result.Revision).Stringer("took", result.Duration.Round(time.Millisecond)).Msg(string(result.Action))
	}
	return engine.Released{Op: a.Op, Err: err, Changed: result.Action != release.ActionUnchanged, Revision: result.Revision}
}

func (d *Driver) uninstall(a engine.Uninstall) error {
	timeout := a.Timeout
	if timeout == 0 {
		timeout = 10 * time.Minute
	}
	select {
	case d.helmSlots <- struct{}{}:
		defer func() { <-d.helmSlots }()
	case <-d.work.Done():
		return errStopping
	}
	began := time.Now()
	done, err := d.releases.Uninstall(d.work, release.Ref(a.Ref), timeout)
	if done || err != nil {
		d.metrics.released(a.Ref.Module, "uninstalled", time.Since(began), err)
	}
	if done {
		d.o.Log.Info().Str("module", a.Ref.Module).Str("release", a.Ref.Namespace+"/"+a.Ref.Name).Msg("uninstalled")
	}
	return err
}

var errStopping = errors.New("starling is stopping")

var _ builtins.Reader = (*cluster.Client)(nil)
