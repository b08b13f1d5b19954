package sim

import (
	"context"
	"errors"
	"fmt"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/record"
)

// Ask has a hook answer a request, and settles. A conversion needs no process: it
// depends on its functions alone.
func (w *World) Ask(ctx context.Context, h *generation.Hook, r *builtins.Request) (builtins.Response, error) {
	switch b := h.Binding(r.Binding); {
	case b != nil && b.Convert != nil && len(b.Convert.Snapshots) == 0:
		return w.convert(ctx, h, r)
	case w.engine == nil:
		return builtins.Response{}, errors.New("no starling runs here")
	case b != nil && (b.Admission != nil || b.Convert != nil):
		return w.review(ctx, h, r)
	}
	w.asked++
	id := w.asked
	w.handle(engine.Requested{ID: id, Hook: h.ID, Request: r})
	if err := w.settle(ctx); err != nil { // somebody waits: no trouble now
		return builtins.Response{}, err
	}
	answer, ok := w.answers[id]
	delete(w.answers, id)
	if !ok {
		return builtins.Response{}, fmt.Errorf("hook %s has not answered", h.ID)
	}
	return answer.Response, answer.Err
}

// Call has a hook run now, whatever triggers it, and settles; key is the object that it
// is about, with for_each. The run is the next one of that hook in Runs. Its error is
// that of the call, and it is not tried again.
func (w *World) Call(ctx context.Context, hook, key string) error {
	if w.engine == nil {
		return errors.New("no starling runs here")
	}
	w.asked++
	id := w.asked
	w.handle(engine.Requested{ID: id, Hook: hook, Key: key})
	err := w.settle(ctx)
	answer, ok := w.answers[id]
	delete(w.answers, id)
	switch {
	case ok && answer.Err != nil:
		return answer.Err
	case err != nil:
		return err
	case !ok:
		return fmt.Errorf("hook %s has not run", hook)
	}
	return nil
}

// review has a hook answer a review as the engine has said last.
func (w *World) review(ctx context.Context, h *generation.Hook, r *builtins.Request) (builtins.Response, error) {
	if err := w.settle(ctx); err != nil {
		return builtins.Response{}, err
	}
	said := w.reviews[h.ID]
	if said == nil {
		return builtins.Response{}, fmt.Errorf("hook %s: module %s is not running: %w", h.ID, h.Module, engine.ErrNotReady)
	}
	w.asked++
	run, err := said.Answer(record.Asked|w.asked, w.now, r)
	if err != nil {
		return builtins.Response{}, err
	}
	done := w.carryOut(ctx, run).(engine.RunDone)
	if done.Incomplete {
		return builtins.Response{}, fmt.Errorf("hook %s: its snapshots are not complete: %w", h.ID, engine.ErrNotReady)
	}
	if done.Err != nil {
		w.o.Log(h.Module, h.ID, builtins.LevelError, done.Err.Error()+" (the request failed)", nil)
	} else if metrics := done.Effects.Metrics; len(metrics) > 0 {
		w.carryOut(ctx, engine.Publish{Module: h.Module, Hook: h.ID, Metrics: metrics})
	}
	return done.Response, done.Err
}

func (w *World) convert(ctx context.Context, h *generation.Hook, r *builtins.Request) (builtins.Response, error) {
	if w.executor == nil {
		return builtins.Response{}, errors.New("no starling runs here")
	}
	module := w.o.Generation.Modules[h.Module]
	if module == nil {
		module = w.o.Generation.Global
	}
	done, _ := w.executor.RunHook(ctx, engine.RunHook{Hook: h, Module: module, Attempt: 1, Now: w.now, Request: r})
	return done.Response, done.Err
}

// AllHooks are the hooks of all modules, by their ids.
func (w *World) AllHooks() []*generation.Hook {
	var out []*generation.Hook
	for _, id := range w.Hooks() {
		if h := w.o.Generation.Hook(id); h != nil {
			out = append(out, h)
		}
	}
	return out
}
