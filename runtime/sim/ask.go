package sim

import (
	"context"
	"errors"
	"fmt"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/generation"
)

// Ask has a hook answer a request, and settles. A conversion needs no process: it
// depends on its functions alone.
func (w *World) Ask(ctx context.Context, h *generation.Hook, r *builtins.Request) (builtins.Response, error) {
	if b := h.Binding(r.Binding); b != nil && b.Convert != nil {
		return w.convert(ctx, h, r)
	}
	if w.engine == nil {
		return builtins.Response{}, errors.New("no starling runs here")
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
