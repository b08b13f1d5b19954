package sim

import (
	"context"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/sim/store"
	"github.com/starling-operator/starling/stdlib"
)

type noLog struct{}

func (noLog) Log(builtins.Level, string, []builtins.Field) {}

func world(t *testing.T, folder string) *World {
	t.Helper()
	read, err := tree.ReadDir(folder, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g := generation.Load(context.Background(), generation.Options{Tree: read, Std: stdlib.FS, Number: 1,
		Log: func(string) builtins.Logger { return noLog{} }})
	w, err := New(Options{Generation: g, Builtins: store.NewBuiltins(),
		Log: func(module, hook string, _ builtins.Level, msg string, _ []builtins.Field) { t.Log(module, hook, msg) }})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestQuickstart(t *testing.T) {
	w := world(t, "../../examples/quickstart")
	node := func(name string) {
		if err := w.Apply(map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": name},
			"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}}); err != nil {
			t.Fatal(err)
		}
	}
	node("a")
	began := time.Now()
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("start took %s", time.Since(began))
	for _, m := range w.Status().Modules {
		if m.State != status.ModuleReady {
			t.Errorf("%+v", m)
		}
	}
	for _, r := range w.Runs {
		t.Logf("%s %+v %v", r.Hook, r.Effects, r.Err)
	}
	obj, err := w.Client().Get(t.Context(), effect.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "hello", Name: "hello"})
	t.Logf("%v %v", obj["spec"], err)
}
