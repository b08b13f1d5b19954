package sim

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
)

// A call runs a hook once more, about what is there, and a failure is nobody's but the
// caller's.
func TestCallRunsAHookOnce(t *testing.T) {
	w := hooks(t, `
def all(ctx):
    values.set("seen", ["%s %s" % (e.type, e.binding) for e in ctx.events])

def one(ctx):
    values.set(["one", ctx.key], ctx.attempt)

def fails(ctx):
    if not ctx.events or ctx.events[0].type != "startup":
        values.set("x", 1)
    fail("no")

hook(all, on = [k8s.watch("v1", "Node", name = "nodes"), schedule("0 * * * *", name = "hourly")])
hook(one, on = [k8s.watch("v1", "Node", name = "nodes")], for_each = "nodes")
hook(fails, on = [schedule("0 0 1 1 *")])
`)
	for _, name := range []string{"a", "b"} {
		if err := w.Apply(node(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ hook, key, err string }{
		{"web/hooks/a.star:all", "", ""},
		{"web/hooks/a.star:one", "b", ""},
		{"web/hooks/a.star:one", "", "hook web/hooks/a.star:one runs for each object of nodes: say for which; there are a, b"},
		{"web/hooks/a.star:one", "c", "say for which"},
		{"web/hooks/a.star:all", "a", "hook web/hooks/a.star:all has no for_each, so there is no run of it for a"},
		{"web/hooks/a.star:fails", "", "no"},
		{"web/hooks/a.star:none", "", "there is no hook web/hooks/a.star:none"},
	} {
		n := len(w.Runs)
		err := w.Call(t.Context(), tt.hook, tt.key)
		if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("%s %s: %v, want %q", tt.hook, tt.key, err, tt.err)
		}
		if err == nil && (len(w.Runs) != n+1 || w.Runs[n].Hook != tt.hook || w.Runs[n].Key != tt.key) {
			t.Errorf("%s %s: the runs are %v", tt.hook, tt.key, w.Runs[n:])
		}
	}
	if seen := w.Values("web")["seen"]; len(seen.([]any)) != 2 || seen.([]any)[0] != "sync nodes" || seen.([]any)[1] != "schedule hourly" {
		t.Errorf("the events of a call are %v", seen)
	}
	n := len(w.Runs)
	if err := w.Advance(t.Context(), 10*time.Minute); err != nil {
		t.Fatal(err)
	}
	if len(w.Runs) != n {
		t.Errorf("what a call has left is tried again: %v", w.Runs[n:])
	}
}

// A session's hook answers whatever has become of its module, and keeps what it sets.
func TestASessionsHookNeedsNoModuleThatRuns(t *testing.T) {
	w := hooks(t, "")
	w.o.Generation.Modules["web"].Err = errors.New("broken")
	path := "a"
	fn := starlark.NewBuiltin("session", func(th *starlark.Thread, _ *starlark.Builtin, _ starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		set, err := builtins.Predeclared()["values"].(starlark.HasAttrs).Attr("set")
		if err != nil {
			return nil, err
		}
		return starlark.Call(th, set, starlark.Tuple{starlark.String(path), starlark.True}, nil)
	})
	w.Use(w.o.Generation.WithSession("web", &builtins.HookDecl{ID: "session", Fn: fn, KeepValues: true, Timeout: time.Second}, true))
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, path = range []string{"a", "b"} {
		if err := w.Call(t.Context(), "web/session", ""); err != nil {
			t.Fatal(err)
		}
	}
	w.Stop()
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v := w.Values("web"); v["a"] != true || v["b"] != true {
		t.Errorf("values are %v", v)
	}
}
