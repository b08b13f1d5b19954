package sim

import (
	"context"
	"slices"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/release"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/hook"
)

// carryOut does what the engine wants done, and returns the answer; nil when there is
// none.
func (w *World) carryOut(ctx context.Context, a engine.Action) engine.Input {
	w.count(a)
	w.store.As(actor(a))
	defer w.store.As("")
	switch a := a.(type) {
	case engine.StartWatch:
		// The watch outlives the call that had it started.
		w.watches[a.ID] = newFollower(w.executor.WatchSpec(context.WithoutCancel(ctx), a), a.Each)
	case engine.RunHook:
		return w.run(ctx, a)
	case engine.Commit:
		if len(a.Writes) > 0 {
			w.Writes++
		}
		done := w.executor.Commit(ctx, a)
		w.noteCommit(a, done)
		return done
	case engine.Save:
		return engine.Saved{Op: a.Op, Err: w.executor.Save(ctx, a)}
	case engine.Evaluate:
		return w.executor.Evaluate(ctx, a)
	case engine.CheckSettings:
		return w.executor.CheckSettings(ctx, a)
	case engine.ApplyCRDs:
		return engine.CRDsApplied{Op: a.Op, Err: w.executor.ApplyCRDs(ctx, a)}
	case engine.Release:
		return w.fly(ctx, a, func(ctx context.Context) engine.Input {
			done, result := w.executor.Release(ctx, a)
			if result.Action != "" && result.Action != release.ActionUnchanged {
				w.Writes++
			}
			return done
		})
	case engine.Overtake:
		w.overtake(a.Op)
	case engine.Repair:
		done := w.executor.Repair(ctx, a)
		if len(done.Written) > 0 {
			w.Writes++
		}
		return done
	case engine.Uninstall:
		return w.fly(ctx, a, func(ctx context.Context) engine.Input {
			_, err := w.executor.Uninstall(ctx, a)
			return engine.Uninstalled{Op: a.Op, Err: err}
		})
	case engine.Unhold:
		unwatched, err := w.executor.Unhold(ctx, a)
		return engine.Unheld{Op: a.Op, Unwatched: unwatched, Err: err}
	case engine.Publish:
		for _, err := range w.Metrics.Publish(a.Module, a.Hook, a.Key, a.Metrics) {
			w.o.Log(a.Module, a.Hook, builtins.LevelError, err.Error(), nil)
		}
	case engine.Unpublish:
		w.Metrics.Unpublish(a.Module, a.Hook, a.Key)
	case engine.Gone:
		if err := w.executor.ForgetCRDs(ctx, a.Module); err != nil {
			w.o.Log(a.Module, "", builtins.LevelWarn, err.Error(), nil)
		}
	case removeSets:
		return engine.SetsRemoved{Op: a.Op, Err: w.executor.RemoveSets(ctx, a.RemoveSets, a.mark)}
	case engine.Send:
		w.Sent = append(w.Sent, a)
		return engine.Sent{Module: a.Module, Sums: a.Kept()}
	case engine.Note:
		w.o.Log(a.Module, a.Hook, a.Level, a.Message, nil)
	}
	return nil
}

// removeSets is asked for before whatever is applied later, in whichever order things are
// carried out.
type removeSets struct {
	engine.RemoveSets
	mark uint64
}

// actor says on whose behalf an action changes the cluster.
func actor(a engine.Action) string {
	switch a := a.(type) {
	case engine.Commit:
		return "hook " + a.Hook.ID
	case engine.ApplyCRDs:
		return "crds of " + a.Module.Name
	case engine.Release:
		return "release " + a.Ref.Name
	case engine.Repair:
		return "release " + a.Ref.Name
	case engine.Uninstall:
		return "release " + a.Ref.Name
	}
	return "starling"
}

// run calls a hook and remembers what came of it.
func (w *World) run(ctx context.Context, a engine.RunHook) engine.Input {
	if a.Hook.Decides() && a.Request == nil {
		w.families[a.Hook.ID+" "+a.Key] = a
	}
	i := len(w.Runs)
	w.Runs = append(w.Runs, Run{Hook: a.Hook.ID, Key: a.Key, Cleanup: a.Cleanup, Asked: a.Request != nil})
	done, result := w.executor.RunHook(ctx, a)
	w.fills(result.Wanted)
	done.Took = 0 // of the machine, not of the world
	if done.Gone || done.Incomplete {
		w.Runs = slices.Delete(w.Runs, i, i+1)
		return done
	}
	w.Runs[i].RunDone = done
	if w.ran != nil && result.Ctx != nil {
		state := a.State
		if done.Effects.State != nil && done.Err == nil {
			state = done.Effects.State
		}
		w.ran(a.Hook.ID, a.Key, builtins.PastCtx(result.Ctx(), state))
	}
	return done
}

// quietly calls a hook, and nobody hears of it: it is no run.
func (w *World) quietly(ctx context.Context, a engine.RunHook) (engine.RunDone, hook.Result) {
	defer func(was bool) { w.asking = was }(w.asking)
	w.asking = true
	return w.executor.RunHook(ctx, a)
}

func (w *World) noteCommit(a engine.Commit, done engine.Committed) {
	for i := len(w.Runs) - 1; i >= 0; i-- {
		if r := &w.Runs[i]; r.Run == a.Run && r.Hook == a.Hook.ID {
			if r.Committed = done.Err; w.chaos != nil && a.Hook.Decides() {
				w.chaos.noteChildren(w.families[a.Hook.ID+" "+r.Key].Past.Failures, r, done)
			}
			return
		}
	}
}

// logger keeps the lines of the run under way, and hands them on.
func (w *World) logger(module, hook string) builtins.Logger { return &logger{w, module, hook} }

type logger struct {
	w            *World
	module, hook string
}

func (l *logger) Log(level builtins.Level, msg string, fields []builtins.Field) {
	if l.w.asking {
		return
	}
	if n := len(l.w.Runs); n > 0 && l.hook != "" && l.w.Runs[n-1].Hook == l.hook {
		l.w.Runs[n-1].Logs = append(l.w.Runs[n-1].Logs, Line{level, msg, fields})
	}
	l.w.o.Log(l.module, l.hook, level, msg, fields)
}

// sealOf signs marks with a key that everybody knows. Over an origin all marks are believed: nobody here has the key
// of what is there.
func sealOf(o Options, now func() time.Time) *effect.Seal {
	if o.Origin != nil {
		return nil
	}
	seal := effect.NewSeal(now)
	seal.Use([]byte("the key of the simulated cluster"), time.Time{})
	return seal
}
