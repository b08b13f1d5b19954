package sim

import (
	"cmp"
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
	answer, ok, err := w.await(ctx, engine.Requested{Hook: h.ID, Request: r})
	switch {
	case err != nil:
		return builtins.Response{}, err
	case !ok:
		return builtins.Response{}, fmt.Errorf("hook %s has not answered", h.ID)
	}
	return answer.Response, answer.Err
}

// await has the engine answer, and settles without trouble: somebody waits.
func (w *World) await(ctx context.Context, in engine.Requested) (answer engine.Respond, ok bool, err error) {
	w.asked++
	in.ID = w.asked
	w.handle(in)
	err = w.settle(ctx)
	answer, ok = w.answers[in.ID]
	delete(w.answers, in.ID)
	return answer, ok, err
}

// Call has a hook run now, whatever triggers it, and settles; key is the object that it
// is about, with for_each. The run is the next one of that hook in Runs. Its error is
// that of the call, and it is not tried again.
func (w *World) Call(ctx context.Context, hook, key string) error {
	if w.engine == nil {
		return errors.New("no starling runs here")
	}
	switch answer, ok, err := w.await(ctx, engine.Requested{Hook: hook, Key: key}); {
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
	w.asked++
	run, err := w.answering(h, record.Asked|w.asked, r)
	if err != nil {
		return builtins.Response{}, err
	}
	done := w.carryOut(ctx, run).(engine.RunDone)
	if done.Incomplete {
		return builtins.Response{}, incomplete(h)
	}
	if done.Err != nil {
		w.o.Log(h.Module, h.ID, builtins.LevelError, done.Err.Error()+" (the request failed)", nil)
	} else if metrics := done.Effects.Metrics; len(metrics) > 0 {
		w.carryOut(ctx, engine.Publish{Module: h.Module, Hook: h.ID, Metrics: metrics})
	}
	return done.Response, done.Err
}

// answering is the run in which a hook answers a review, as the engine has said last.
func (w *World) answering(h *generation.Hook, id uint64, r *builtins.Request) (engine.RunHook, error) {
	said := w.reviews[h.ID]
	if said == nil {
		return engine.RunHook{}, fmt.Errorf("hook %s: module %s is not running: %w", h.ID, h.Module, engine.ErrNotReady)
	}
	return said.Answer(id, w.now, r)
}

func incomplete(h *generation.Hook) error {
	return fmt.Errorf("hook %s: its snapshots are not complete: %w", h.ID, engine.ErrNotReady)
}

// convert needs nothing of the cluster, and no engine unless the hook sees snapshots.
func (w *World) convert(ctx context.Context, h *generation.Hook, r *builtins.Request) (builtins.Response, error) {
	if w.executor == nil {
		return builtins.Response{}, errors.New("no starling runs here")
	}
	run := engine.RunHook{Hook: h, Module: cmp.Or(w.o.Generation.Modules[h.Module], w.o.Generation.Global), Attempt: 1, Now: w.now, Request: r}
	if len(h.Binding(r.Binding).Convert.Snapshots) > 0 {
		var err error
		if run, err = w.answering(h, 0, r); err != nil {
			return builtins.Response{}, err
		}
	}
	done, _ := w.executor.RunHook(ctx, run)
	if done.Incomplete {
		return builtins.Response{}, incomplete(h)
	}
	return done.Response, done.Err
}

// converted converts an object that somebody reads or writes, once a process has begun to keep its definition. The API
// server asks in the middle of a call, so nothing else happens meanwhile, and nobody hears of a run.
func (w *World) converted(crd string, obj map[string]any, to string) (map[string]any, error) {
	h, binding := w.o.Generation.Converter(crd)
	if h == nil || w.executor == nil {
		return nil, nil
	}
	defer func(was bool) { w.asking = was }(w.asking)
	w.asking = true
	answer, err := w.convert(context.Background(), h, &builtins.Request{Binding: binding, Objects: []map[string]any{obj}, To: to})
	if err != nil {
		return nil, fmt.Errorf("starling: %w", err) // as in the answer of a process
	}
	return answer.Objects[0], nil
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
