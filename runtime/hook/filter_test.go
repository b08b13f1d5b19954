package hook

import (
	"context"
	"strings"
	"testing"

	"github.com/starling-operator/starling/runtime/script"
)

func TestFilterAsJQ(t *testing.T) {
	g, _ := compile(t, `
def f(ctx):
    pass

hook(f, on = [
    k8s.watch("v1", "Node", name = "a", filter = "{name: .metadata.name, cpus: [.spec.cpus[]?]}, 1"),
    k8s.watch("v1", "Node", name = "b", filter = "select(.spec.cpus).metadata.name"),
    k8s.watch("v1", "Node", name = "c", filter = ".metadata.name.x"),
    k8s.watch("v1", "Node", name = "d", filter = "last(repeat(1))"),
])
`, moduleStar)
	obj := map[string]any{"metadata": map[string]any{"name": "n"}, "spec": map[string]any{"cpus": []any{int64(1) << 60}}}
	bare := map[string]any{"metadata": map[string]any{"name": "n"}, "spec": map[string]any{}}
	for i, c := range []struct {
		obj       map[string]any
		want, err string
	}{
		{obj, `{"cpus": [1152921504606846976], "name": "n"}`, ""},
		{obj, `"n"`, ""},
		{obj, "", "web/hooks/a.star:8: filter: expected an object but got: string"},
		{obj, "", " limit"}, // of steps or, on a busy machine, of time
		{bare, `{"cpus": [], "name": "n"}`, ""},
		{bare, "", ""},
	} {
		filter := Filter(context.Background(), func() *script.Host { return g.Host }, g.Hook("web/hooks/a.star:f").Bindings[i%4].Watch, noLog{})
		kept, keep, err := filter(c.obj)
		if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%d: got error %v, want %q", i, err, c.err)
			continue
		}
		if keep != (c.want != "") || keep && kept.String() != c.want {
			t.Errorf("%d: got %v %v, want %s", i, kept, keep, c.want)
		}
	}
}
