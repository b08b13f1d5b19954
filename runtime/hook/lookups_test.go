package hook

import (
	"context"
	"strings"
	"testing"

	"github.com/starling-operator/starling/runtime/script"
)

const indexes = `
def by(o):
    kind = o.get("data.kind", "none")
    if kind == "prints":
        fail("cannot say " + o.data.key)
    return {"none": None, "one": "a", "list": ["b", "a", "b"], "empty": [], "number": 1, "mixed": ["a", 1], "many": ["x"] * 1001}[kind]

controller(
    "c",
    k8s.watch("example.org/v1", "Widget"),
    lambda ctx, o: [],
    owns = [owns("v1", "ConfigMap")],
    reads = {
        "maps": k8s.watch("v1", "ConfigMap", index = {"fn": by, "path": "data.app.kubernetes.io/name", "tags": "tags"}),
        "again": k8s.watch("v1", "ConfigMap", index = {"fn": by, "path": "data.app.kubernetes.io/name", "tags": "tags"}),
        "plain": k8s.watch("v1", "ConfigMap"),
        "secrets": k8s.watch("v1", "Secret", index = {"fn": by}),
    },
)
`

// Objects may hold what their author likes: where a path has no text, nothing is found. A function that
// fails is an error, as in a filter.
func TestIndexed(t *testing.T) {
	g, _ := compile(t, indexes, `module(grants = [grant("v1", "Secret", verbs = ["get", "list", "watch"], namespaces = ["*"])])`)
	h := g.Hook("web/c")
	if h == nil {
		t.Fatal(g.Modules["web"].Err)
	}
	of := func(binding string) (func(obj map[string]any) string, string) {
		call, id := Wakes(context.Background(), func() *script.Host { return g.Host }, h, h.Binding(binding).Watch, noLog{})
		return func(obj map[string]any) string {
			whom, err := call(obj)
			if err != nil {
				return err.Error()
			}
			return strings.Join(whom.Keys, " ")
		}, id
	}
	maps, id := of("reads-maps")
	data := func(kind string) map[string]any {
		return map[string]any{"data": map[string]any{"kind": kind, "key": "s3cret"}}
	}
	many := make([]any, 2000)
	for i := range many {
		many[i] = strings.Repeat("x", i%7)
	}
	for name, c := range map[string]struct {
		obj  map[string]any
		want string
	}{
		"nothing":     {map[string]any{}, ""},
		"one":         {data("one"), "fn=a"},
		"a list":      {data("list"), "fn=a fn=b"},
		"empty":       {data("empty"), ""},
		"a number":    {data("number"), "index fn: web/hooks/a.star:14: got int, want a text, a list of texts, or None"},
		"mixed":       {data("mixed"), "index fn: web/hooks/a.star:14: got int, want a text, a list of texts, or None"},
		"many":        {data("many"), "index fn: web/hooks/a.star:14: got a list of 1001, want 1000 at most"},
		"paths":       {map[string]any{"data": map[string]any{"app.kubernetes.io/name": "web"}, "tags": []any{"x", int64(1), "", nil}}, "path=web tags= tags=x"},
		"not texts":   {map[string]any{"data": "text", "tags": map[string]any{"a": "b"}}, ""},
		"many values": {map[string]any{"tags": many}, "tags= tags=x tags=xx tags=xxx tags=xxxx tags=xxxxx tags=xxxxxx"},
	} {
		if got := maps(c.obj); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if _, other := of("reads-again"); other != id {
		t.Errorf("the same indexes have the ids %q and %q", id, other)
	}
	plain, other := of("reads-plain")
	if got := plain(data("one")); got != "" || other == id {
		t.Errorf("without indexes: %q, with the id %q", got, other)
	}
	secrets, _ := of("reads-secrets")
	if got := secrets(data("prints")); strings.Contains(got, "s3cret") || !strings.Contains(got, "cannot say") {
		t.Errorf("an error about a Secret is %q", got)
	}
}
