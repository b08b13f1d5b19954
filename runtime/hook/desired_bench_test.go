package hook

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/reconcile"
	"github.com/starling-operator/starling/runtime/script"
	"github.com/starling-operator/starling/stdlib"
)

// BenchmarkDesired asks the controller of examples/application about an Application with all fields: its
// function alone, and a whole run about one that has no children yet. Aim: 50 µs for the function.
func BenchmarkDesired(b *testing.B) {
	read, err := tree.Read(os.DirFS("../../examples/application"), tree.Options{})
	if err != nil {
		b.Fatal(err)
	}
	g := generation.Load(b.Context(), generation.Options{
		Tree: read, Std: stdlib.FS, Number: 1, Governor: script.NewGovernor(script.GovernorOptions{}), Log: func(string) builtins.Logger { return noLog{} },
	})
	m := g.Modules["apps"]
	if m == nil || m.Err != nil {
		b.Fatal(m)
	}
	app := object.New(map[string]any{
		"apiVersion": "example.org/v1", "kind": "Application", "metadata": map[string]any{"name": "blog", "namespace": "shop", "uid": "u"},
		"spec": map[string]any{"image": "nginx:1", "host": "blog.example.com", "replicas": int64(2), "port": int64(80)},
	})
	scope := func(string, string) (bool, error) { return true, nil }
	b.Run("function", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var out builtins.Decided
			q := builtins.Question{Key: "shop/blog", Parent: app, Look: func(*builtins.Desired, []reconcile.Child) ([]reconcile.Child, error) { return nil, nil }}
			_, _, err := g.Host.Call(b.Context(), q.Decide(m.Hooks[0].Fn, &out), nil, script.CallOptions{
				Name: "desired", Limits: script.Limits{Wall: time.Minute},
				Context: &builtins.Context{Phase: spec.InDesired, Log: noLog{}, Run: &builtins.Run{Namespace: "shop", Scope: scope, Owns: m.Hooks[0].Controller.Owns}},
			})
			if err != nil || len(out.Parts) == 0 {
				b.Fatal(err, len(out.Parts))
			}
		}
	})
	b.Run("run", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			result := Run(context.Background(), Request{
				Host: g.Host, Module: m, Hook: m.Hooks[0], Attempt: 1, Now: time.Now(), Namespace: "shop", Key: "shop/blog", Object: app, Log: noLog{}, Scope: scope,
				Family: &Family{
					Controller: "c", Children: func(func(map[string]any) bool) {},
					StatusOf: func(map[string]any) (map[string]any, time.Time) { return nil, time.Time{} },
				},
			})
			if result.Err != nil || len(result.Effects.Writes) != 1 {
				b.Fatal(result.Err)
			}
		}
	})
}
