package hook

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/script"
)

const waits = `
def waits(*args):
    wait()

def nothing(*args):
    return []
`

// A function that does not end leaves one goroutine for each subject, however often it is tried again,
// and the deletion of a parent does not wait for it.
func TestAFunctionThatDoesNotEndIsNotCalledAgain(t *testing.T) {
	lamp := func(name string) map[string]any {
		return map[string]any{"apiVersion": "example.com/v1", "kind": "Lamp", "metadata": map[string]any{"name": name, "uid": name}}
	}
	about := func(h *builtins.HookDecl) func(name string) Request {
		return func(name string) Request {
			return Request{Hook: &generation.Hook{HookDecl: h}, Key: name, Object: object.New(lamp(name)), Family: &Family{
				Children: func(func(map[string]any) bool) {},
			}}
		}
	}
	var fn, nothing starlark.Callable
	for what, of := range map[string]func() func(name string) Request{
		"desired": func() func(string) Request {
			return about(&builtins.HookDecl{Fn: fn, Controller: &builtins.ControllerDecl{}})
		},
		"status": func() func(string) Request {
			return about(&builtins.HookDecl{Fn: nothing, Controller: &builtins.ControllerDecl{Status: fn}})
		},
		"for_each": func() func(string) Request { return about(&builtins.HookDecl{Fn: fn}) },
		"convert": func() func(string) Request {
			h := &builtins.HookDecl{Bindings: []builtins.Binding{{Name: "convert", Convert: &builtins.ConvertBinding{
				CRD: "lamps.example.com", Steps: map[[2]string]starlark.Callable{{"v1", "v2"}: fn},
			}}}}
			return func(name string) Request {
				return Request{Hook: &generation.Hook{HookDecl: h}, Request: &builtins.Request{
					Binding: "convert", To: "example.com/v2", Objects: []map[string]any{lamp(name)},
				}}
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				released := make(chan struct{})
				var goOn atomic.Int32 // calls that go on in goroutines of others
				predeclared := builtins.Predeclared()
				predeclared["wait"] = starlark.NewBuiltin("wait", func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
					goOn.Add(1)
					<-released
					goOn.Add(-1)
					return starlark.None, nil
				})
				host := script.New(script.Options{
					Files: fstest.MapFS{"web/hooks/a.star": {Data: []byte(waits)}}, Predeclared: predeclared,
					Context: func(string) *builtins.Context { return &builtins.Context{Phase: spec.InLoad, Log: noLog{}} },
				})
				globals, err := host.Load(t.Context(), "web/hooks/a.star")
				if err != nil {
					t.Fatal(err)
				}
				fn, nothing = globals["waits"].(starlark.Callable), globals["nothing"].(starlark.Callable)
				request := of()
				try := func(name string, cleanup bool) error {
					r := request(name)
					r.Host, r.Module, r.Attempt, r.Now, r.Log, r.Cleanup = host, &generation.Module{}, 1, time.Now(), noLog{}, cleanup
					r.Hook.Timeout = time.Second
					return Run(t.Context(), r).Err
				}
				for range 3 {
					for _, name := range []string{"a", "b"} {
						err := try(name, false)
						if err == nil || !strings.Contains(err.Error(), "web/hooks/a.star:2:1: ") {
							t.Errorf("%s: %v", name, err)
						}
						var failed *builtins.FailError
						if errors.As(err, &failed) && failed.Permanent {
							t.Errorf("%s: it is not tried again", name)
						}
					}
				}
				if n := goOn.Load(); n != 2 {
					t.Errorf("%d calls go on, want one for each subject", n)
				}
				if what == "desired" {
					if err := try("a", true); err != nil {
						t.Errorf("the deletion waits: %v", err)
					}
				}
				close(released)
				synctest.Wait()
			})
		})
	}
}
