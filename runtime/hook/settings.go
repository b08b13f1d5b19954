package hook

import (
	"context"
	"errors"
	"fmt"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/script"
)

// CheckSettings calls def settings_check(old, new) of a module.star, and returns what it has against a section
// of the user's config, or "": the text that it returns, or that of fail(). A section that is nil is empty.
func CheckSettings(ctx context.Context, host *script.Host, m *generation.Module, old, next map[string]any, log builtins.Logger) (against string, err error) {
	v, _, err := host.Call(ctx, m.SettingsCheck, starlark.Tuple{section(old), section(next)}, script.CallOptions{
		Name:    m.Name + "/settings_check",
		Context: &builtins.Context{Phase: spec.InFilter, Log: log},
		Limits:  askedLimits,
	})
	var failed *builtins.FailError
	switch {
	case errors.As(err, &failed):
		return failed.Msg, nil
	case err != nil:
		return "", err
	}
	switch v := v.(type) {
	case starlark.NoneType:
		return "", nil
	case starlark.String:
		return string(v), nil
	}
	return "", fmt.Errorf("settings_check() returned %s; it must return None, or a text that says what is wrong", v.Type())
}

func section(of map[string]any) starlark.Value {
	if of == nil {
		of = map[string]any{}
	}
	return object.FromPlain(of)
}
