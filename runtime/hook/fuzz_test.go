package hook

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/script"
	"github.com/starling-operator/starling/stdlib"
)

// Whatever a filter is and whatever the object: the filter gives plain, frozen data or
// an error, leaves the object as it was, and gives the same again. A filter is a text
// here: a path, a jq program, and what comes after lambda o:.
func FuzzFilter(f *testing.F) {
	const pod = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {"a.b/c": "d"}}, "spec": {"list": [{"n": 1}, null, 1.5]}, "status": null}`
	for _, filter := range []string{"spec.list", "metadata.labels.a.b/c", "status.x", "", ".", "..", ".spec.list[]", "{a: .spec, b: [.metadata.name]}", "error(\"x\")", "def f: f; f",
		"[limit(9; repeat(.))]", "o.spec.list", "{\"n\": o.metadata.name, \"o\": o}", "o.get(\"metadata.labels\")", "[o] * 9", "o", "None", "fail(\"x\")", "[x for x in o]", "dict(o)", "o[\"spec\"][\"list\"][1]", "(o, o.kind)", "lambda: o",
		"now", "$ENV", "[nan, infinite]", "error(\"a\\nb\")", "k8s", "range(3)", "1 << 70", "float(\"inf\")", "{(1, 2): 1}", "o) and startup()])#", "random.string(3)", "jq(o, \"now\")", "o.spec.list.append(1)"} {
		f.Add(filter, pod)
	}
	f.Add("metadata", `{"metadata": 7}`)
	f.Add("a.b", `{"a": {"b": {}}, "metadata": {"name": ["x"]}}`)
	f.Fuzz(func(t *testing.T, filter, text string) {
		var obj map[string]any
		if json.Unmarshal([]byte(text), &obj) != nil || obj == nil || strings.ContainsAny(filter, "\n\r") {
			return
		}
		quoted := starlark.String(filter).String()
		for _, written := range []string{"[" + quoted + "]", quoted, "lambda o: " + filter} {
			filterOne(t, written, obj)
		}
	})
}

func filterOne(t *testing.T, written string, obj map[string]any) {
	read, err := tree.Read(fstest.MapFS{"web/hooks/a.star": {Data: []byte(
		"def f(ctx):\n  pass\nhook(f, on = [k8s.watch(\"v1\", \"Pod\", filter = " + written + ")])\n")}}, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g := generation.Load(t.Context(), generation.Options{Tree: read, Std: stdlib.FS, Number: 1, Log: func(string) builtins.Logger { return noLog{} }})
	h := g.Hook("web/hooks/a.star:f")
	if h == nil || h.Bindings[0].Watch == nil {
		return // it is no filter
	}
	ctx, stop := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer stop()
	filter := Filter(ctx, func() *script.Host { return g.Host }, h.Bindings[0].Watch, noLog{})
	before, err := json.Marshal(obj)
	if err != nil || filter == nil {
		return
	}
	once, kept, err := filter(obj)
	var panicked *script.PanicError
	if errors.As(err, &panicked) {
		t.Fatalf("%v\n%s", err, panicked.Stack)
	}
	if after, _ := json.Marshal(obj); string(after) != string(before) {
		t.Fatalf("%s changed the object from %s to %s", written, before, after)
	}
	if err != nil || !kept {
		return
	}
	plain, err := object.ToPlain(once)
	if err != nil {
		t.Fatalf("%s: what it keeps is not plain: %v", written, err)
	}
	if list, ok := once.(*starlark.List); ok && list.Append(starlark.None) == nil {
		t.Errorf("%s: what it keeps can be changed", written)
	}
	again, _, err := filter(obj)
	if err != nil {
		return // time is up
	}
	if other, err := object.ToPlain(again); err != nil || !reflect.DeepEqual(plain, other) && !strings.Contains(once.String(), "nan") {
		t.Errorf("%s: %v at first, then %v (%v)", written, plain, other, err)
	}
}
