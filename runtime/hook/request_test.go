package hook

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/script"
)

const webhooks = `
def check(ctx):
    if ctx.request.object.get("data.loop"):
        for i in range(10000000):
            for j in range(10000000):
                pass
    warn("seen " + ctx.request.name)
    if ctx.request.object.get("data.odd"):
        return 5
    if ctx.request.object.get("data.bad"):
        return deny("no")

def up(o):
    d = dict(o)
    d["spec"] = {"n": o.spec.n + 1}
    return d

def loop(o):
    for i in range(10000000):
        for j in range(10000000):
            pass

def strict(ctx):
    warn("is " + base64.decode(ctx.request.object.data.k))
    return deny("no " + base64.decode(ctx.request.object.data.k))

hook(strict, on = [k8s.validate("v1", "Secret", failure_policy = "fail")])
hook(check, on = [k8s.validate("v1", "ConfigMap", failure_policy = "fail", timeout = "1s")])
hook(on = [k8s.convert("lamps.example.com.x", {("v1", "v2"): up, ("v2", "v1"): loop})], timeout = "100ms")
`

func TestRequestRuns(t *testing.T) {
	g, m := compile(t, webhooks, `module(grants = [grant("apiextensions.k8s.io/v1", "CustomResourceDefinition", verbs = ["convert"])])`)
	call := func(id string, r *builtins.Request) Result {
		t.Helper()
		return Run(t.Context(), Request{Host: g.Host, Module: m, Hook: g.Hook("web/hooks/a.star:" + id), Request: r, Now: time.Now(), Attempt: 1, Log: noLog{}})
	}
	review := func(data map[string]any) *builtins.Request {
		r := builtins.Review{Name: "a", Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": data}}
		return r.Request("validate")
	}
	got := call("check", review(map[string]any{"bad": "yes"}))
	if got.Err != nil || got.Response.Denied == nil || got.Response.Denied.Message != "no" || len(got.Response.Warnings) != 1 {
		t.Errorf("%+v", got)
	}
	if got = call("check", review(nil)); got.Err != nil || got.Response.Denied != nil {
		t.Errorf("%+v", got)
	}
	// The data of a Secret under review is in no answer that people read.
	secret := builtins.Review{Name: "a", Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"k": "aHVudGVyMg=="}}}
	if got = call("strict", secret.Request("validate")); got.Response.Denied == nil || got.Response.Denied.Message != "no ***" || got.Response.Warnings[0] != "is ***" {
		t.Errorf("%+v", got)
	}
	// A returned value has no line: the function's is named.
	if got = call("check", review(map[string]any{"odd": "yes"})); got.Err == nil || !strings.HasPrefix(got.Err.Error(), "web/hooks/a.star:2:1: check: the hook returned int; ") {
		t.Errorf("%v", got.Err)
	}
	// The API server waits a second, so the run, which might take 30, is ended then.
	var limit *script.LimitError
	if got = call("check", review(map[string]any{"loop": "yes"})); !errors.As(got.Err, &limit) || got.Usage.Wall > 10*time.Second {
		t.Errorf("%+v", got)
	}
	if got = call("check", &builtins.Request{Binding: "other"}); got.Err == nil || !strings.Contains(got.Err.Error(), "takes no requests at \"other\"") {
		t.Errorf("%+v", got)
	}

	lamp := func(version string) map[string]any {
		return map[string]any{"apiVersion": "example.com.x/" + version, "kind": "Lamp", "spec": map[string]any{"n": int64(1)}}
	}
	got = call("lamps.example.com.x", &builtins.Request{Binding: "convert", To: "example.com.x/v2", Objects: []map[string]any{lamp("v1"), lamp("v2")}})
	if got.Err != nil || len(got.Response.Objects) != 2 || got.Response.Objects[0]["spec"].(map[string]any)["n"] != int64(2) || got.Usage.Steps == 0 {
		t.Errorf("%+v", got)
	}
	got = call("lamps.example.com.x", &builtins.Request{Binding: "convert", To: "example.com.x/v1", Objects: []map[string]any{lamp("v2")}})
	if !errors.As(got.Err, &limit) || limit.Limit != "time" {
		t.Errorf("%+v", got)
	}
}
