package stdlib

import (
	"testing"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/script"
)

type noLog struct{}

func (noLog) Log(builtins.Level, string, []builtins.Field) {}

func withConditions(conditions ...any) map[string]any {
	return map[string]any{"kind": "Node", "status": map[string]any{"conditions": conditions}}
}

func cond(kind, status string) map[string]any {
	return map[string]any{"type": kind, "status": status, "reason": "r"}
}

func TestK8s(t *testing.T) {
	context := &builtins.Context{Phase: builtins.PhaseLoad, Log: noLog{}}
	host := script.New(script.Options{Std: FS, Context: func(string) *builtins.Context { return context }})
	globals, err := host.Load(t.Context(), "@std//k8s.star")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		obj   map[string]any
		ready bool
	}{
		{"ready", withConditions(cond("MemoryPressure", "False"), cond("Ready", "True")), true},
		{"available", withConditions(cond("Available", "True")), true},
		{"not ready", withConditions(cond("Ready", "False")), false},
		{"unknown", withConditions(cond("Ready", "Unknown")), false},
		{"other condition", withConditions(cond("Progressing", "True")), false},
		{"no condition", withConditions(), false},
		{"no conditions", map[string]any{"status": map[string]any{}}, false},
		{"null conditions", map[string]any{"status": map[string]any{"conditions": nil}}, false},
		{"null status", map[string]any{"status": nil}, false},
		{"no status", map[string]any{}, false},
	}
	for _, tt := range tests {
		for form, v := range map[string]starlark.Value{"object": object.New(tt.obj), "dict": object.FromPlain(tt.obj)} {
			t.Run(tt.name+"/"+form, func(t *testing.T) {
				got, _, err := host.Call(t.Context(), globals["is_ready"].(starlark.Callable), starlark.Tuple{v},
					script.CallOptions{Context: &builtins.Context{Phase: builtins.PhaseFilter, Log: noLog{}}})
				if err != nil {
					t.Fatal(err)
				}
				if got != starlark.Bool(tt.ready) {
					t.Errorf("got %s", got)
				}
			})
		}
	}
}
