package hook

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/script"
)

// A desired function that remembers is found where it is asked twice.
func TestDesiredAnswersTheSameTwice(t *testing.T) {
	calls := 0
	desired := starlark.NewBuiltin("desired", func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
		if calls++; calls%2 == 0 {
			return starlark.None, nil
		}
		return starlark.NewList(nil), nil
	})
	h := &builtins.HookDecl{Fn: desired, Controller: &builtins.ControllerDecl{}, Timeout: time.Minute}
	r := Request{
		Host:   script.New(script.Options{Files: fstest.MapFS{}, Context: func(string) *builtins.Context { return nil }}),
		Module: &generation.Module{}, Hook: &generation.Hook{HookDecl: h}, Key: "a", Attempt: 1, Now: time.Now(), Log: noLog{},
		Object: object.New(map[string]any{"apiVersion": "example.org/v1", "kind": "Parent", "metadata": map[string]any{"name": "a", "uid": "1"}}),
		Family: &Family{Children: func(func(map[string]any) bool) {}},
	}
	if err := Run(t.Context(), r).Err; err != nil || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
	calls, r.Twice = 0, true
	if err := Run(t.Context(), r).Err; err == nil || !strings.Contains(err.Error(), "desired is not deterministic: asked twice about the same parent, it answers [], then None.") {
		t.Errorf("%d calls, %v", calls, err)
	}
}
