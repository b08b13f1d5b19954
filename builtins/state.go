package builtins

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/object"
)

// ctx.state: what a hook remembers from run to run.

// maxState is how many bytes of JSON a hook may remember. All that a module keeps
// lives in Secrets, and is written whole when any of it changes.
const (
	maxState = 64 << 10
	// maxKeyState is the same for one object of a hook with for_each.
	maxKeyState = 4 << 10
)

func stateSpecs() []spec.Spec {
	key := spec.Required("key", spec.String)
	return []spec.Spec{
		declare("ctx.state.get", spec.InRun|spec.InReview, spec.Reads, callStateGet, key,
			spec.Optional("default", spec.Any, "None")),
		declare("ctx.state.set", spec.InRun, spec.Writes, callStateSet, key, spec.Required("value", spec.Any)),
		declare("ctx.state.remove", spec.InRun, spec.Writes, callStateRemove, key),
	}
}

func callStateGet(c *call) (starlark.Value, error) {
	if v, ok := c.run.state()[c.Str("key")]; ok {
		return object.FromPlain(v), nil
	}
	return c.ArgOr("default", starlark.None), nil
}

func callStateSet(c *call) (starlark.Value, error) {
	key := c.Str("key")
	v, err := object.ToPlainAt(c.Arg("value"), []string{key})
	if err != nil {
		return nil, fmt.Errorf("value: %w", err)
	}
	return nil, c.run.remember(func(state map[string]any) { state[key] = v })
}

func callStateRemove(c *call) (starlark.Value, error) {
	key := c.Str("key")
	if _, ok := c.run.state()[key]; !ok {
		return nil, nil
	}
	return nil, c.run.remember(func(state map[string]any) { delete(state, key) })
}

// state is what the run sees: only read.
func (r *Run) state() map[string]any {
	if r.Effects.State != nil {
		return r.Effects.State
	}
	return r.State
}

// remember changes the state. The one that the run began with is not touched: it
// is that of the hook, should the run fail.
func (r *Run) remember(change func(map[string]any)) error {
	next := maps.Clone(r.state())
	if next == nil {
		next = map[string]any{}
	}
	change(next)
	data, err := json.Marshal(next)
	if err != nil {
		return errors.New("value: cannot be written as JSON")
	}
	most, who := maxState, "a hook"
	if r.Key != "" {
		most, who = maxKeyState, "a hook with for_each, for each object,"
	}
	if len(data) > most {
		detail := fmt.Sprintf("%d bytes of JSON, %s may remember %d", len(data), who, most)
		return &spec.LimitError{Limit: "state", Detail: detail}
	}
	r.Effects.State = next
	return nil
}

// PastCtx is the ctx of a run that has ended, for people who look at it: its state is only read. State is what the
// run has left there; ctx is as [NewCtx] or [Question.Ctx] have made it.
func PastCtx(ctx starlark.Value, state map[string]any) starlark.Value {
	was := ctx.(*withFields)
	if was.fields["state"] == nil { // that of a controller
		return ctx
	}
	past := &withFields{Opaque: "ctx", fields: maps.Clone(was.fields)}
	ended := func(t *starlark.Thread, b *starlark.Builtin, _ starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		return nil, spec.Finalf("ctx.state.%s: ctx is that of a run that has ended, so it is only read", b.Name())
	}
	past.fields["state"] = &namespace{name: "ctx.state", members: starlark.StringDict{
		"get": starlark.NewBuiltin("get", func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			key, fallback := "", starlark.Value(starlark.None)
			if err := starlark.UnpackArgs("ctx.state.get", args, kwargs, "key", &key, "default?", &fallback); err != nil {
				return nil, err
			}
			if v, is := state[key]; is {
				return object.FromPlain(v), nil
			}
			return fallback, nil
		}),
		"set": starlark.NewBuiltin("set", ended), "remove": starlark.NewBuiltin("remove", ended),
	}}
	return past
}
