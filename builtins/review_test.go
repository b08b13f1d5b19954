package builtins

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/builtins/spec"
)

// load runs the source in spec.InLoad and returns its globals.
func loadSource(t testing.TB, src string) starlark.StringDict {
	t.Helper()
	thread := &starlark.Thread{}
	Attach(thread, &Context{Phase: spec.InLoad, File: &File{Path: "web/hooks/a.star", Role: RoleHooks}, Log: &memoryLog{}})
	globals, err := starlark.ExecFileOptions(&syntax.FileOptions{}, thread, "a.star", src, Predeclared())
	if err != nil {
		t.Fatal(err)
	}
	globals.Freeze()
	return globals
}

// review has the function f of the source answer a request.
func review(t testing.TB, src string, b *AdmissionBinding, r *Review) (Response, error) {
	t.Helper()
	fn := loadSource(t, src)["f"]
	request := r.Request("x")
	run := &Run{Module: "web", Hook: "f", Ctx: context.Background(), Request: request}
	thread := &starlark.Thread{}
	Attach(thread, &Context{Phase: spec.InReview, Run: run, Log: &memoryLog{}})
	v, err := starlark.Call(thread, fn, starlark.Tuple{NewCtx(CtxOptions{Request: request})}, nil)
	if err == nil {
		err = run.Respond(&Binding{Name: "x", Admission: b}, v)
	}
	return run.Response, err
}

func newReview() *Review {
	return &Review{
		UID: "u1", Operation: "UPDATE", Namespace: "web", Name: "a", APIVersion: "v1", Kind: "ConfigMap", Resource: "configmaps",
		Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": "a", "namespace": "web", "uid": "o1"}, "data": map[string]any{"n": int64(1) << 60},
		},
		OldObject: map[string]any{"data": map[string]any{}},
		User:      ReviewUser{Name: "ann", Groups: []string{"dev"}, Extra: map[string][]string{"k": {"v"}}},
	}
}

func TestReviewShowsTheRequest(t *testing.T) {
	const src = `
def f(ctx):
    r = ctx.request
    if r.object.data.n != 1 << 60 or len(r.old_object.data) != 0:
        fail("objects")
    if (r.operation, r.namespace, r.name, r.api_version, r.kind, r.resource, r.subresource) != ("UPDATE", "web", "a", "v1", "ConfigMap", "configmaps", ""):
        fail("names")
    if (r.user.name, r.user.groups, r.user.extra["k"], r.dry_run, r.options, r.uid) != ("ann", ["dev"], ["v"], False, None, "u1"):
        fail("user")
    warn("first\n  line")
    warn("é" * 200)
    return deny("no: " + r.name, code = 422)
`
	got, err := review(t, src, &AdmissionBinding{}, newReview())
	if err != nil {
		t.Fatal(err)
	}
	want := Response{Denied: &Denial{"no: a", 422}, Warnings: []string{"first line", strings.Repeat("é", 126) + "…"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReviewAnswers(t *testing.T) {
	for _, c := range []struct {
		name, body, err string
		mutate          bool
		want            any // the object's data
	}{
		{name: "pass", body: "return None"},
		{name: "pass without return", body: "pass", mutate: true},
		{name: "deny in a mutation", body: `return deny("x")`, mutate: true},
		{name: "validate returns a bool", body: "return True", err: `the hook returned bool; a validating hook returns None to let the change pass, or deny\(…\)`},
		{name: "validate returns the object", body: "return ctx.request.object", err: "the hook returned object; a validating"},
		{name: "mutate returns a bool", body: "return True", mutate: true, err: "the hook returned bool; a mutating hook returns the changed object"},
		{name: "mutate returns what it was given", body: "return ctx.request.object", mutate: true},
		{name: "mutate", body: `o = dict(ctx.request.object); o["data"]["n"] = 2; return o`, mutate: true, want: map[string]any{"n": int64(2)}},
		{name: "no such data", body: `o = dict(ctx.request.object); o["data"]["n"] = len; return o`, mutate: true, err: `the object that the hook returned: data.n: a builtin_function_or_method cannot be stored as JSON`},
		{name: "another kind", body: `o = dict(ctx.request.object); o["kind"] = "Secret"; return o`, mutate: true, err: `kind has become "Secret"; it was "ConfigMap" and must stay so`},
		{name: "another name", body: `o = dict(ctx.request.object); o["metadata"]["name"] = "b"; return o`, mutate: true, err: `metadata.name has become "b"`},
		{name: "no namespace", body: `o = dict(ctx.request.object); o["metadata"].pop("namespace"); return o`, mutate: true, err: `metadata.namespace is missing; it was "web"`},
		{name: "no metadata", body: `return {"apiVersion": "v1", "kind": "ConfigMap"}`, mutate: true, err: "metadata is missing or no dict"},
		{name: "a write", body: `k8s.apply({})`, err: "k8s.apply is not available in a hook that answers an admission request, which may read but not write"},
		{name: "values", body: `values.set("a", 1)`, err: "values.set is not available in a hook that answers"},
		{name: "an empty denial", body: `deny(" ")`, err: "deny: msg: it is empty"},
		{name: "a good code", body: `deny("x", code = 200)`, err: "deny: code: got 200, want an HTTP status from 400 to 599"},
		{name: "an empty warning", body: `warn("")`, err: "warn: msg: it is empty"},
		{name: "too many warnings", body: `[warn("x") for _ in range(101)]`, err: "effects limit: more than 100 warnings"},
		{name: "an unknown field", body: `ctx.request.objct`, err: `no .objct`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := review(t, "def f(ctx):\n    "+strings.ReplaceAll(c.body, "; ", "\n    ")+"\n", &AdmissionBinding{Mutate: c.mutate}, newReview())
			if c.err != "" || err != nil {
				if err == nil || !regexp.MustCompile(c.err).MatchString(err.Error()) {
					t.Fatalf("error %v, want %s", err, c.err)
				}
				return
			}
			if data := got.Object["data"]; !cmp.Equal(data, c.want) {
				t.Errorf("data %v, want %v", data, c.want)
			}
		})
	}
}

func TestADeletionHasNothingToChange(t *testing.T) {
	r := newReview()
	r.Operation, r.Object = "DELETE", nil
	_, err := review(t, "def f(ctx):\n    return dict(ctx.request.old_object)\n", &AdmissionBinding{Mutate: true}, r)
	if err == nil || !strings.Contains(err.Error(), "there is none that could be changed") {
		t.Error(err)
	}
}

// steps makes a binding whose functions note the way in spec.way.
func steps(t testing.TB, pairs ...string) *ConvertBinding {
	t.Helper()
	src := "def step(way):\n    def f(o):\n        d = dict(o)\n        d['spec']['way'] = d['spec'].get('way', '') + way\n        return d\n    return f\n"
	for i, p := range pairs {
		src += fmt.Sprintf("f%d = step(%q)\n", i, p+" ")
	}
	globals := loadSource(t, src)
	b := &ConvertBinding{CRD: "crontabs.stable.example.com", Steps: map[[2]string]starlark.Callable{}}
	for i, p := range pairs {
		from, to, _ := strings.Cut(p, ">")
		b.Steps[[2]string{from, to}] = globals[fmt.Sprintf("f%d", i)].(starlark.Callable)
	}
	return b
}

func convertAll(b *ConvertBinding, to string, objects ...map[string]any) ([]map[string]any, error) {
	var response Response
	thread := &starlark.Thread{}
	Attach(thread, &Context{Phase: spec.InConvert, Log: &memoryLog{}})
	_, err := starlark.Call(thread, b.Converted(&Request{Objects: objects, To: to}, CtxOptions{}, &response, new(atomic.Int64)), nil, nil)
	return response.Objects, err
}

func cron(version, name string) map[string]any {
	return map[string]any{
		"apiVersion": "stable.example.com/" + version, "kind": "CronTab",
		"metadata": map[string]any{"name": name, "namespace": "web", "uid": "u1", "labels": map[string]any{"a": "b"}},
		"spec":     map[string]any{"n": int64(1) << 60},
	}
}

func TestChains(t *testing.T) {
	b := steps(t, "v1alpha1>v1beta1", "v1beta1>v1", "v1>v2", "v1beta1>v2", "v2>v1")
	for pair, want := range map[string]string{
		"v1alpha1 v1":  "v1alpha1 v1beta1 v1",
		"v1alpha1 v2":  "v1alpha1 v1beta1 v2",
		"v2 v1":        "v2 v1",
		"v1 v1":        "v1",
		"v1 v1alpha1":  "",
		"v3 v1":        "",
		"v1beta1 none": "",
	} {
		from, to, _ := strings.Cut(pair, " ")
		if got := strings.Join(b.Chain(from, to), " "); got != want {
			t.Errorf("%s: %q, want %q", pair, got, want)
		}
	}
	if got := fmt.Sprint(b.Unreachable()); got != "[[v1beta1 v1alpha1] [v1 v1alpha1] [v1 v1beta1] [v2 v1alpha1] [v2 v1beta1]]" {
		t.Errorf("unreachable: %s", got)
	}
}

func TestConversion(t *testing.T) {
	b := steps(t, "v1alpha1>v1beta1", "v1beta1>v1")
	got, err := convertAll(b, "stable.example.com/v1", cron("v1alpha1", "a"), cron("v1beta1", "b"), cron("v1", "c"))
	if err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{cron("v1", "a"), cron("v1", "b"), cron("v1", "c")}
	want[0]["spec"].(map[string]any)["way"] = "v1alpha1>v1beta1 v1beta1>v1 "
	want[1]["spec"].(map[string]any)["way"] = "v1beta1>v1 "
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, c := range []struct {
		to, err string
		obj     map[string]any
	}{
		{"stable.example.com/v2", `no function leads from v1 to v2; add to k8s.convert: ("v1", "v2")`, cron("v1", "a")},
		{"other.example.com/v1", "the API server asks for other.example.com/v1; the functions are for crontabs.stable.example.com", cron("v1", "a")},
		{"stable.example.com/v1", `the request has an object of "apps/v1"`, map[string]any{"apiVersion": "apps/v1"}},
		{"stable.example.com/v1", `the request has an object of ""`, map[string]any{}},
	} {
		if _, err := convertAll(b, c.to, c.obj); err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("error %v, want %s", err, c.err)
		}
	}
}

func TestWhatConversionsReturn(t *testing.T) {
	for _, c := range []struct {
		body, err string
		meta      string // of the result
	}{
		{body: `return o`, meta: `map[labels:map[a:b] name:a namespace:web uid:u1]`},
		{body: `return {"spec": {}}`, meta: `map[labels:map[a:b] name:a namespace:web uid:u1]`},
		{body: `return {"metadata": {"annotations": {"x": "y"}}, "apiVersion": "stable.example.com/v2", "kind": "CronTab"}`, meta: `map[annotations:map[x:y] name:a namespace:web uid:u1]`},
		{body: `return {"metadata": {"creationTimestamp": "now", "name": "a"}}`, meta: `map[name:a namespace:web uid:u1]`},
		{body: `pass`, err: "v1 to v2 of CronTab web/a: the function returned NoneType; it must return the converted object"},
		{body: `return {"kind": "Tab"}`, err: `kind has become "Tab"`},
		{body: `return {"apiVersion": "stable.example.com/v3"}`, err: `apiVersion is "stable.example.com/v3", want "stable.example.com/v2"; it may be left as it was`},
		{body: `return {"apiVersion": 1}`, err: `apiVersion is `},
		{body: `return {"metadata": {"name": "b"}}`, err: `metadata.name has become "b"`},
		{body: `return {"metadata": {"uid": 7}}`, err: `metadata.uid is no text`},
		{body: `return {"metadata": 1}`, err: "metadata is no dict"},
		{body: `return {"metadata": {"labels": []}}`, err: "metadata.labels is no dict"},
		{body: `return {"spec": len}`, err: "spec: a builtin_function_or_method cannot be stored as JSON"},
		{body: `o.spec.x`, err: `no field "x"`},
		{body: `fail("it has no schedule")`, err: "it has no schedule"},
		{body: `k8s.get("v1", "Node", "a")`, err: "k8s.get is not available in a conversion, which may only look at its object"},
	} {
		globals := loadSource(t, "def f(o):\n    "+c.body+"\n")
		b := &ConvertBinding{CRD: "crontabs.stable.example.com", Steps: map[[2]string]starlark.Callable{{"v1", "v2"}: globals["f"].(starlark.Callable)}}
		got, err := convertAll(b, "stable.example.com/v2", cron("v1", "a"))
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: error %v, want %s", c.body, err, c.err)
			}
		case err != nil:
			t.Errorf("%s: %v", c.body, err)
		case got[0]["apiVersion"] != "stable.example.com/v2" || got[0]["kind"] != "CronTab" || fmt.Sprint(got[0]["metadata"]) != c.meta:
			t.Errorf("%s: %v", c.body, got[0])
		}
	}
}

func TestErrorsOfConversionsKeepTheirCause(t *testing.T) {
	globals := loadSource(t, "def f(o):\n    fail('broken')\n")
	b := &ConvertBinding{CRD: "a.b.c", Steps: map[[2]string]starlark.Callable{{"v1", "v2"}: globals["f"].(starlark.Callable)}}
	_, err := convertAll(b, "b.c/v2", map[string]any{"apiVersion": "b.c/v1"})
	var fail *FailError
	if !errors.As(err, &fail) {
		t.Errorf("%v", err)
	}
}

// Parts that most hooks do not read are decoded when a hook reads them, once.
func TestPartsOfReviewsAreDecodedLate(t *testing.T) {
	asked := 0
	late := func(name string) (map[string]any, error) {
		asked++
		if name == "options" {
			return nil, errors.New("it is no object")
		}
		return map[string]any{"n": int64(1)}, nil
	}
	r := newReview()
	r.OldObject, r.Late = nil, late
	if _, err := review(t, "def f(ctx):\n    ctx.request.object.data\n", &AdmissionBinding{}, r); err != nil || asked != 0 {
		t.Errorf("%v, asked %d times", err, asked)
	}
	if _, err := review(t, "def f(ctx):\n    return deny(str(ctx.request.old_object.n + ctx.request.old_object.n))\n", &AdmissionBinding{}, r); err != nil || asked != 1 {
		t.Errorf("%v, asked %d times", err, asked)
	}
	for body, want := range map[string]string{
		"ctx.request.options":   "request.options: it is no object",
		"ctx.request.old_objct": "request has no .old_objct field or method (did you mean .old_object?)",
	} {
		if _, err := review(t, "def f(ctx):\n    "+body+"\n", &AdmissionBinding{}, r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", body, err)
		}
	}
}
