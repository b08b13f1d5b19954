package live

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/release"
	"github.com/starling-operator/starling/modules/release/owned"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/executor"
	"github.com/starling-operator/starling/runtime/lane"
	"github.com/starling-operator/starling/runtime/modules"
)

// do carries out one action. An action that takes time gets a goroutine; its result comes
// back through the inbox.
func (d *Driver) do(a engine.Action) {
	switch a := a.(type) {
	case engine.StartWatch:
		d.metrics.state.watching(a)
		d.watching.Store(a.ID, a)
		d.watches.Start(d.executor.WatchSpec(d.serve, a))
	case engine.StopWatch:
		d.watches.Stop(a.ID)
		d.watching.Delete(a.ID)
		d.metrics.state.watched(a.ID)
		d.metrics.forget(engine.WatchHook(a.ID))
	case engine.RunHook:
		done := engine.RunDone{Run: a.Run}
		put := d.inbox.put
		if a.Request != nil {
			put = d.inbox.putFirst
		}
		d.busy().Go(func() {
			done.Err = d.guard(func() error { done = d.runHook(d.work(), a); return done.Err })
			put(done)
		})
	case engine.Unhold:
		done := engine.Unheld{Op: a.Op}
		d.start(func() (err error) { done.Unwatched, err = d.executor.Unhold(d.work(), a); return err },
			func(err error) engine.Input { done.Err = err; return done })
	case engine.Serve:
		if d.receive != nil {
			d.receive.Serve(a.Module, a.Hooks)
		}
		d.webhooks.Serve(a.Module, a.Hooks, a.Waits)
		d.answers.serve(a.Module, a.Hooks, a.Waits)
	case engine.Review:
		d.answers.review(a)
	case engine.Respond:
		d.requests.respond(a)
	case engine.Commit:
		done := engine.Committed{Run: a.Run}
		d.start(func() error {
			return d.traces.commit(a, func() error {
				return d.told.commit(a, func() error { done = d.executor.Commit(d.work(), a); return done.Err })
			})
		}, func(err error) engine.Input { done.Err = err; return done })
	case engine.Uncommitted:
		d.recorder.Uncommitted(a.Run, a.Err)
		if !a.Lost {
			d.metrics.failed(a.Module, a.Hook, a.Allowed)
		}
	case engine.Save:
		d.start(func() error {
			err := d.traces.save(a, func() error { return d.executor.Save(d.work(), a) })
			if d.told.saved(a, err); err == nil {
				d.outbox.saved(a)
			}
			return err
		}, func(err error) engine.Input { return engine.Saved{Op: a.Op, Err: err} })
	case engine.Evaluate:
		done := engine.Evaluated{Op: a.Op}
		d.start(func() error { done = d.executor.Evaluate(d.work(), a); return done.Err },
			func(err error) engine.Input { done.Err = err; return done })
	case engine.CheckSettings:
		done := engine.SettingsChecked{Op: a.Op}
		d.start(func() error { done = d.executor.CheckSettings(d.work(), a); return done.Err },
			func(err error) engine.Input { done.Err = err; return done })
	case engine.ApplyCRDs:
		d.start(func() error { return d.executor.ApplyCRDs(d.work(), a) },
			func(err error) engine.Input { return engine.CRDsApplied{Op: a.Op, Err: err} })
	case engine.Release:
		done, waits := engine.Released{Op: a.Op}, &d.term.Load().overtake
		ctx, overtake := release.Overtakable(d.work())
		waits.Store(a.Op, overtake)
		d.start(func() error { done = d.release(ctx, a); return done.Err },
			func(err error) engine.Input { waits.Delete(a.Op); done.Err = err; return done })
	case engine.Overtake:
		if overtake, is := d.term.Load().overtake.Load(a.Op); is {
			overtake.(context.CancelFunc)()
		}
	case engine.Repair:
		done := engine.Repaired{Op: a.Op}
		d.start(func() error { done = d.repair(a); return done.Err },
			func(err error) engine.Input { done.Err = err; return done })
	case engine.Uninstall:
		d.start(func() error { return d.uninstall(a) },
			func(err error) engine.Input { return engine.Uninstalled{Op: a.Op, Err: err} })
	case engine.Publish:
		for _, err := range d.metrics.hooks.Publish(a.Module, a.Hook, a.Key, a.Metrics) {
			d.log(a.Module, a.Hook).Log(builtins.LevelError, err.Error(), nil)
		}
	case engine.Send:
		d.outbox.send(a)
	case engine.Adopted:
		d.adopted(a.Generation)
	case engine.Refused:
		d.unused("refused", a.Reason)
	case engine.Gone:
		d.gone(a)
	case engine.Unpublish:
		d.metrics.hooks.Unpublish(a.Module, a.Hook, a.Key)
	case engine.DropSets:
		d.executor.DropSets(a)
	case engine.RemoveSets:
		mark := d.executor.SetMark()
		d.start(func() error { return d.executor.RemoveSets(d.work(), a, mark) },
			func(err error) engine.Input { return engine.SetsRemoved{Op: a.Op, Err: err} })
	case engine.Wake:
		d.sleep(a.At)
	case engine.Note:
		d.note(a)
		if d.standsBy() {
			break // the process that leads makes the Event
		}
		if a.Config {
			d.tellOfConfig(a.Message)
		}
		if a.Event != "" {
			d.event(d.deployment, effect.Event{Type: "Warning", Reason: a.Event, Message: about(a) + ": " + a.Message})
		}
	}
}

// note logs a line.
func (d *Driver) note(n engine.Note) {
	var fields []builtins.Field
	if trace := traceOf(n.Err); trace != "" {
		fields = append(fields, builtins.Field{Key: TraceField, Value: trace})
	}
	d.log(n.Module, n.Hook).Log(n.Level, n.Message, fields)
}

// about is the hook of a line, or its module.
func about(n engine.Note) string {
	if n.Hook == "" {
		return "module " + n.Module
	}
	return "hook " + n.Hook
}

// runHook calls a hook. A run that passes its limits and does not end is given up: what it
// goes on to compute is charged to its module meanwhile.
func (d *Driver) runHook(ctx context.Context, a engine.RunHook) (done engine.RunDone) {
	var took time.Duration
	if a.Request == nil { // requests are bounded where they come in, and somebody waits
		if !d.slots.take(ctx, a.Hook.Module) {
			return engine.RunDone{Run: a.Run, Err: errStopping}
		}
		defer func() { d.slots.give(a.Hook.Module, took) }()
	}
	err := d.guard(func() error {
		done, took = d.callHook(ctx, a)
		return done.Err
	})
	done.Run, done.Err = a.Run, err
	return done
}

// start does work beside the engine's goroutine and hands its answer over.
func (d *Driver) start(work func() error, answer func(error) engine.Input) {
	d.busy().Go(func() { d.inbox.put(answer(d.guard(work))) })
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

// callHook calls a hook, and says how long that has computed.
func (d *Driver) callHook(ctx context.Context, a engine.RunHook) (engine.RunDone, time.Duration) {
	began := time.Now()
	unmarked := d.marks.begin(a.Hook.ID, a.Hook.Digest)
	if failed := unmarked != nil; d.unmarked.Swap(failed) != failed && failed {
		// A disk that is full is no reason to stop every hook.
		d.o.Log.Error().Err(unmarked).Msg("runs cannot be marked in --state-dir: they go on, and a hook that takes the process with it is not known afterwards")
	}
	came := d.metrics.begins(a.Module.Name, a.Hook.ID, a.Attempt, began)
	done, result := d.executor.RunHook(context.WithValue(ctx, hookKey{}, a.Hook), a)
	ran := !done.Gone && !done.Incomplete
	if ran {
		d.traces.ran(a, came, began, done, result)
		d.told.ran(a, done)
	}
	// A hook that has gone meanwhile must not come back to the metrics.
	if ran && d.generation.Load().Hook(a.Hook.ID) != nil {
		d.metrics.ran(a.Module.Name, a.Hook.ID, done.Took, result, a.Hook.AllowFailure && !a.Cleanup)
	}
	if unmarked != nil {
		return done, result.Usage.Wall - result.Usage.Waited
	}
	if err := d.marks.end(a.Hook.ID, a.Hook.Digest, ran && result.Err == nil); err != nil {
		d.o.Log.Warn().Err(err).Msg("the mark of a run stays in --state-dir")
	}
	return done, result.Usage.Wall - result.Usage.Waited
}

func (d *Driver) release(ctx context.Context, a engine.Release) engine.Released {
	aside, leave, err := d.helmSlots.take(ctx)
	if err != nil {
		return engine.Released{Op: a.Op, Err: err}
	}
	defer leave()
	began := time.Now()
	done, result := d.executor.Release(d.onWait(ctx, a.Ref, aside, "waits until its objects are ready"), a)
	if lane.AwaitedBy(done.Err) == lane.AwaitsTree {
		return done // it was left alone
	}
	took := time.Since(began)
	d.metrics.released(a.Ref.Module, string(result.Action), took, done.Err)
	d.traces.helm("release", a.Ref, a.Cause, began, done.Err, named("action", string(result.Action)), named("revision", result.Revision))
	if done.Err == nil && done.Changed {
		d.o.Log.Info().Str("module", a.Ref.Module).Str("release", a.Ref.Namespace+"/"+a.Ref.Name).
			Int("revision", result.Revision).Stringer("took", took.Round(time.Millisecond)).Msg(string(result.Action))
	}
	if undone := executor.ChangesOf(result.Undone); len(undone) > 0 {
		var objects []effect.Ref
		for _, c := range undone {
			objects = append(objects, c.Ref)
		}
		d.putRight(a.Ref, objects, undone, began, "a revision has put right what others had changed")
	}
	return done
}

// onWait has an action of Helm tell that it begins to wait, and move aside.
func (d *Driver) onWait(ctx context.Context, ref engine.ReleaseRef, aside func(context.Context, int64), what string) context.Context {
	tell, tellSlow := d.told.waits(ref, what), d.told.waits(ref, "waits for an answer of the API server")
	return release.OnWait(ctx, func(action context.Context, holds int64, slow bool) {
		if slow {
			tellSlow()
		} else {
			tell()
		}
		aside(action, holds)
	})
}

// repair puts objects of a release right, and says which were not as they should be.
func (d *Driver) repair(a engine.Repair) engine.Repaired {
	aside, leave, err := d.helmSlots.take(d.work())
	if err != nil {
		return engine.Repaired{Op: a.Op, Err: err}
	}
	defer leave()
	began := time.Now()
	done := d.executor.Repair(d.onWait(d.work(), a.Ref, aside, "waits to be repaired"), a)
	if len(done.Written) > 0 || done.Err != nil {
		d.metrics.released(a.Ref.Module, "repaired", time.Since(began), done.Err)
		d.traces.helm("repair", a.Ref, nil, began, done.Err, named("objects", len(done.Written)))
	}
	if len(done.Written) > 0 {
		d.putRight(a.Ref, done.Written, done.Changes, began, "repaired")
	}
	return done
}

// putRight tells of objects that others had changed, and by whom the first one was.
func (d *Driver) putRight(ref engine.ReleaseRef, objects []effect.Ref, changes []engine.Change, began time.Time, did string) {
	log := d.o.Log.Info().Str("module", ref.Module).Str("release", ref.Namespace+"/"+ref.Name).Int("objects", len(objects)).
		Stringer("first", objects[0]).Stringer("took", time.Since(began).Round(time.Millisecond))
	var edits []owned.Edit
	for _, c := range changes {
		if c.Ref == objects[0] && len(c.Edits) > 0 {
			edits = c.Edits
			log = log.Str("by", edits[0].By).Stringer("field", edits[0].Path)
		}
	}
	log.Msg(did)
	d.repairs.Store(ref.Module, modules.RepairOf(objects, edits, time.Now()))
}

func (d *Driver) uninstall(a engine.Uninstall) error {
	aside, leave, err := d.helmSlots.take(d.work())
	if err != nil {
		return err
	}
	defer leave()
	began := time.Now()
	done, err := d.executor.Uninstall(d.onWait(d.work(), a.Ref, aside, "waits until its objects are gone"), a)
	did := "uninstalled"
	if a.GiveBack {
		did = "given back"
	}
	if (done || err != nil) && !a.GiveBack {
		d.metrics.released(a.Ref.Module, did, time.Since(began), err)
		d.traces.helm("uninstall", a.Ref, nil, began, err)
	}
	if done {
		d.o.Log.Info().Str("module", a.Ref.Module).Str("release", a.Ref.Namespace+"/"+a.Ref.Name).Msg(did)
	}
	return err
}

var errStopping = errors.New("starling is stopping")
