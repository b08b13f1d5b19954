package sim

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/effect"
)

// handling is a world with one module, whose hooks handle errors.
func handling(t *testing.T, hooks string) *World {
	t.Helper()
	read, err := tree.Read(fstest.MapFS{
		"web/module.star": {Data: []byte(`module(
    enabled = True,
    grants = [
        grant("v1", "ConfigMap", verbs = ["*"]),
        grant("v1", "Pod", verbs = ["*"]),
        grant("example.org/v1", "Gadget", verbs = ["get", "list"], namespaces = ["*"]),
    ],
    http = ["api.example.com", "other.example.com"],
)
`)},
		"web/hooks/a.star": {Data: []byte(hooks)},
	}, tree.Options{})
	return world(t, read, err)
}

// A read that the cluster does not let happen is answered by default=, and the run goes on.
func TestReadsHaveDefaults(t *testing.T) {
	w := handling(t, `
def reads(ctx):
    values.set("get", k8s.get("v1", "Pod", "x", default = "unknown"))
    values.set("list", k8s.list("v1", "Pod", ["starling-system"], default = "unknown"))
    values.set("unserved", k8s.get("example.org/v1", "Gadget", "x", default = "unserved"))
    values.set("none", k8s.list("example.org/v1", "Gadget", default = []))

hook(reads, on = [startup])
`)
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "x", nil)
	w.Store().FailNext("get", "Pod", denied, 1)
	w.Store().FailNext("list", "Pod", denied, 1)
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.Runs[0].Failure(); err != nil {
		t.Fatal(err)
	}
	v := w.Values("web")
	if none, _ := v["none"].([]any); v["get"] != "unknown" || v["list"] != "unknown" || v["unserved"] != "unserved" || none == nil || len(none) > 0 {
		t.Errorf("values are %v", v)
	}
	w = handling(t, `
def reads(ctx):
    k8s.get("v1", "Pod", "x")

hook(reads, on = [startup])
`)
	w.Store().FailNext("get", "Pod", denied, 1)
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.Runs[0].Failure(); err == nil || !strings.Contains(err.Error(), "k8s.get: ") {
		t.Errorf("without a default: %v", err)
	}
}

// servers answers POST at api.example.com, and nothing else.
type servers struct{ asked []effect.Request }

func (s *servers) Gather(_ context.Context, requests []effect.Request, _ int) []builtins.Gathered {
	s.asked = append(s.asked, requests...)
	return builtins.InTurn(requests, func(r effect.Request) (builtins.Fetched, error) {
		if r.Method != "POST" {
			return builtins.Fetched{}, &builtins.NoAnswerError{Reason: "connection refused"}
		}
		return builtins.Fetched{Status: 201, Body: []byte("\xff")}, nil
	})
}

// A run goes on whatever servers do.
func TestRequestsThatFailEndNoRun(t *testing.T) {
	w := handling(t, `
def asks(ctx):
    made = http.request("POST", "https://api.example.com/token", json = {"user": "a"})
    down = http.request("DELETE", "https://other.example.com/x?token=hush")
    values.set("made", [made.ok, made.status, made.error, hash.sha256(made.bytes)])
    values.set("down", [down.ok, down.status, down.error])
    got = http.gather(["https://api.example.com/a", {"method": "POST", "url": "https://api.example.com/b"}])
    values.set("all", [r.ok for r in got])

hook(asks, on = [startup])
`)
	web := &servers{}
	w.o.HTTP = web
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.Runs[0].Failure(); err != nil {
		t.Fatal(err)
	}
	v := w.Values("web")
	want := map[string]any{
		"made": []any{true, int64(201), nil, "a8100ae6aa1940d0b663bb31cd466142ebbdbd5187131b92d93818987832eb89"}, // of the byte 0xff
		"down": []any{false, int64(0), "DELETE https://other.example.com/x: connection refused"},
		"all":  []any{false, true},
	}
	for name, one := range want {
		if !reflect.DeepEqual(v[name], one) {
			t.Errorf("%s is %v, want %v", name, v[name], one)
		}
	}
	if len(web.asked) != 4 {
		t.Errorf("asked %d times", len(web.asked))
	}
}

// Writes go on after one that has failed, and the run fails with all errors.
func TestWritesGoOn(t *testing.T) {
	w := handling(t, `
def cm(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}

def writes(ctx):
    k8s.patch("v1", "ConfigMap", "missing", merge = {"data": {"a": "b"}}, on_error = "continue")
    k8s.patch("v1", "ConfigMap", "ignored", merge = {"data": {"a": "b"}}, ignore_missing = True)
    k8s.apply(cm("after"))
    name = k8s.create(cm("x") | {"metadata": {}}, generate_name = "made-") if ctx.attempt == 1 else ""
    k8s.apply(cm("names", made = name))
    values.set("written", True)

hook(writes, on = [startup], allow_failure = True)
`)
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.Runs[0].Failure(); err == nil || !strings.Contains(err.Error(), "missing") || !strings.Contains(err.Error(), "(4 of 5 written)") {
		t.Errorf("the run came to %v", err)
	}
	get := func(name string) map[string]any {
		obj, err := w.Get(effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "starling-system", Name: name})
		if err != nil {
			t.Fatal(err)
		}
		return obj
	}
	if get("after") == nil || get("names") == nil {
		t.Fatal("what comes after the failed write is not written")
	}
	name, _ := get("names")["data"].(map[string]any)["made"].(string)
	if !strings.HasPrefix(name, "made-") || get(name) == nil {
		t.Errorf("there is no object %q", name)
	}
	if w.Values("web")["written"] != nil {
		t.Error("the values of a run that has failed count")
	}
}

// A write that waits for the end of an object comes before those after it.
func TestADeleteIsWaitedFor(t *testing.T) {
	w := handling(t, `
def deletes(ctx):
    k8s.delete("v1", "ConfigMap", "old", propagation = "foreground", wait = "10s")
    k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}})

hook(deletes, on = [startup], allow_failure = True)
`)
	cm := func(name string, metadata map[string]any) map[string]any {
		metadata["name"], metadata["namespace"] = name, "starling-system"
		return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
	}
	there := func(name string) bool {
		obj, err := w.Get(effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "starling-system", Name: name})
		if err != nil {
			t.Fatal(err)
		}
		return obj != nil
	}
	if err := w.Apply(cm("old", map[string]any{"finalizers": []any{"example.com/x"}})); err != nil {
		t.Fatal(err)
	}
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.Runs[0].Failure(); err == nil || !strings.Contains(err.Error(), "still there after 10s, held by the finalizer") || there("new") {
		t.Errorf("what is held: %v", err)
	}
	w = handling(t, `
def deletes(ctx):
    k8s.delete("v1", "ConfigMap", "old", propagation = "foreground", wait = "10s")
    k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}})

hook(deletes, on = [startup])
`)
	if err := w.Apply(cm("old", map[string]any{})); err != nil {
		t.Fatal(err)
	}
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.Runs[0].Failure(); err != nil || there("old") || !there("new") {
		t.Errorf("what is free: %v; old is there: %v, new: %v", err, there("old"), there("new"))
	}
}

// A run that fails may say so in the cluster, and is repeated.
func TestAFailedRunMayKeepItsEffects(t *testing.T) {
	w := handling(t, `
def asks(ctx):
    answer = http.get("https://api.example.com/", default = None)
    status = "reachable" if answer else "unreachable"
    k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "status"}, "data": {"status": status}})
    values.set("status", status)
    metrics.set("up", 1 if answer else 0)
    if not answer:
        fail("the API is " + status, keep = True)

hook(asks, on = [startup])
`)
	web := &servers{}
	w.o.HTTP = web
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	obj, err := w.Get(effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "starling-system", Name: "status"})
	if err != nil || obj == nil || w.Values("web")["status"] != "unreachable" {
		t.Errorf("the ConfigMap is %v (%v), values %v", obj, err, w.Values("web"))
	}
	if failing := w.Failures(); len(failing) == 0 || !strings.Contains(failing[0].Reason, "the API is unreachable") {
		t.Errorf("failures are %v", failing)
	}
	n := len(w.Runs)
	if err := w.Advance(t.Context(), 2*time.Second); err != nil {
		t.Fatal(err)
	}
	if len(w.Runs) <= n {
		t.Error("it is not repeated")
	}
}
