package hook

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/script"
)

const wakes = `
def f(ctx):
    pass

def named(o):
    kind = o.data.kind
    if kind == "none":
        return None
    if kind == "one":
        return o.metadata.namespace + "/" + o.data.key
    if kind == "list":
        return [o.data.key, "b", o.data.key]
    if kind == "dict":
        return {"a": 1}
    if kind == "mixed":
        return ["a", 1]
    if kind == "many":
        return [str(i) for i in range(1001)]
    if kind == "long":
        return ["a", "k" * 508]
    if kind == "prints":
        fail("cannot say " + o.data.key)
    return len(kind)

hook(f, for_each = "widget", on = [
    k8s.watch("example.org/v1", "Widget"),
    k8s.watch("v1", "ConfigMap", wakes = named),
    k8s.watch("v1", "Secret", wakes = named),
    k8s.watch("apps/v1", "Deployment"),
    k8s.watch("v1", "Pod", wakes = "all"),
])

hook(f, name = "all", on = [k8s.watch("v1", "Node")])
`

func TestWakes(t *testing.T) {
	g, _ := compile(t, wakes, `module(grants = [grant("v1", "Secret", verbs = ["get", "list", "watch"], namespaces = ["*"])])`)
	h := g.Hook("web/hooks/a.star:f")
	of := func(h *generation.Hook, binding string) (func(map[string]any) string, string) {
		call, id := Wakes(context.Background(), func() *script.Host { return g.Host }, h, h.Binding(binding).Watch, noLog{})
		if call == nil {
			return nil, id
		}
		return func(obj map[string]any) string {
			whom, err := call(obj)
			switch {
			case err != nil:
				return err.Error()
			case whom == nil:
				return "all"
			}
			return strings.Join(whom.Keys, " ")
		}, id
	}
	for _, c := range []struct {
		hook    *generation.Hook
		binding string
	}{{h, "widget"}, {h, "pod"}, {g.Hook("web/all"), "node"}} {
		if call, id := of(c.hook, c.binding); call != nil || id != "" {
			t.Errorf("%s: it says who is concerned", c.binding)
		}
	}

	configMaps, one := of(h, "configmap")
	secrets, two := of(h, "secret")
	if one == "" || one != two {
		t.Errorf("the ids are %q and %q", one, two)
	}
	for kind, want := range map[string]string{
		"none": "", "one": "ns/k3y", "list": "b k3y",
		"dict":   "wakes: web/hooks/a.star:27: got dict, want a key as in ctx.key, a list of keys, or None",
		"mixed":  "wakes: web/hooks/a.star:27: got int, want a key",
		"number": "wakes: web/hooks/a.star:27: got int, want a key",
		"prints": "wakes: web/hooks/a.star:22:13: cannot say k3y",
		"long":   "wakes: web/hooks/a.star:27: got a key of 508 bytes, longer than any of an object",
		"many":   "wakes: web/hooks/a.star:27: got a list of 1001, want 1000 at most; wakes = \"all\" wakes all objects",
	} {
		obj := map[string]any{"metadata": map[string]any{"namespace": "ns"}, "data": map[string]any{"kind": kind, "key": "k3y"}}
		if got := configMaps(obj); got != want && (want == "" || !strings.HasPrefix(got, want)) {
			t.Errorf("%s: got %q, want %q", kind, got, want)
		}
	}
	secret := map[string]any{"data": map[string]any{"kind": "prints", "key": "s3cret-text"}}
	if got := secrets(secret); !strings.HasPrefix(got, "wakes: ") || strings.Contains(got, "s3cret-text") {
		t.Errorf("got %q", got)
	}
}

// An object that is owned by one of the hook's kind is for that alone, in its namespace or in none;
// any other one is for all.
func TestWakesByOwner(t *testing.T) {
	g, _ := compile(t, wakes, `module(grants = [grant("v1", "Secret", verbs = ["get", "list", "watch"], namespaces = ["*"])])`)
	h := g.Hook("web/hooks/a.star:f")
	call, id := Wakes(context.Background(), func() *script.Host { return g.Host }, h, h.Binding("deployment").Watch, noLog{})
	if id != "owners example.org/Widget" {
		t.Errorf("the id is %q", id)
	}
	ref := func(apiVersion, kind, name string) any {
		return map[string]any{"apiVersion": apiVersion, "kind": kind, "name": name, "uid": "1"}
	}
	for name, c := range map[string]struct {
		namespace string
		refs      []any
		want      string
	}{
		"no owner":            {"ns", nil, "<nil>"},
		"an owner":            {"ns", []any{ref("example.org/v1", "Widget", "a")}, "&{[a ns/a]}"},
		"of another version":  {"ns", []any{ref("example.org/v1beta1", "Widget", "a")}, "&{[a ns/a]}"},
		"without a namespace": {"", []any{ref("example.org/v1", "Widget", "a")}, "&{[a]}"},
		"two owners":          {"ns", []any{ref("example.org/v1", "Widget", "a"), ref("v1", "Node", "n"), ref("example.org/v1", "Widget", "b")}, "&{[a b ns/a ns/b]}"},
		"of another group":    {"ns", []any{ref("example.com/v1", "Widget", "a")}, "<nil>"},
		"of another kind":     {"ns", []any{ref("example.org/v1", "Gadget", "a")}, "<nil>"},
		"broken":              {"ns", []any{"a", map[string]any{"kind": 1}, ref("example.org/v1", "Widget", "")}, "<nil>"},
	} {
		whom, err := call(map[string]any{"metadata": map[string]any{"namespace": c.namespace, "name": "x", "ownerReferences": c.refs}})
		if got := fmt.Sprint(whom); got != c.want || err != nil {
			t.Errorf("%s: got %s, %v, want %s", name, got, err, c.want)
		}
	}
}

// A child is for the parent that it names, and for its owner if that is another one. One that names none is for its owner of the parent's kind, and for
// nobody without one.
func TestWakesOfChildren(t *testing.T) {
	g, _ := compile(t, `
controller("web", k8s.watch("example.org/v1", "Widget"), lambda ctx, o: [], owns = [owns("v1", "ConfigMap")])
`, `module()`)
	h := g.Hook("web/web")
	owned := slices.IndexFunc(h.Bindings, func(b builtins.Binding) bool { return b.Watch != nil && b.Watch.Kind == "ConfigMap" })
	call, id := Wakes(context.Background(), func() *script.Host { return g.Host }, h, h.Bindings[owned].Watch, noLog{})
	if id != "parent, owners example.org/Widget" {
		t.Errorf("the id is %q", id)
	}
	owner := []any{map[string]any{"apiVersion": "example.org/v1", "kind": "Widget", "name": "p", "uid": "1", "controller": true}}
	for name, c := range map[string]struct {
		annotations map[string]any
		refs        []any
		want        string
	}{
		"all is there":      {map[string]any{"starling.dev/parent": "ns/p", "starling.dev/parent-uid": "1"}, owner, "&{[1 ns/p]}"},
		"the name is gone":  {map[string]any{"starling.dev/parent-uid": "1"}, owner, "&{[1 ns/p p]}"},
		"the owner is gone": {map[string]any{"starling.dev/parent": "ns/p", "starling.dev/parent-uid": "1"}, nil, "&{[1 ns/p]}"},
		"both are gone":     {map[string]any{"starling.dev/parent-uid": "1"}, nil, "&{[1]}"},
		"another name":      {map[string]any{"starling.dev/parent": "ns/q", "starling.dev/parent-uid": "1"}, owner, "&{[1 ns/p ns/q p]}"},
	} {
		whom, err := call(map[string]any{"metadata": map[string]any{"namespace": "ns", "name": "x", "annotations": c.annotations, "ownerReferences": c.refs}})
		if got := fmt.Sprint(whom); got != c.want || err != nil {
			t.Errorf("%s: got %s, %v, want %s", name, got, err, c.want)
		}
	}
}
