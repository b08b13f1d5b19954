package builtins

import (
	"strings"
	"testing"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/builtins/spec"
)

func TestReply(t *testing.T) {
	b := &Binding{Name: "receive", Receive: &ReceiveBinding{Path: "/x"}}
	respond := func(src string) (*Reply, error) {
		run := newTestRun(new(int))
		v, err := exec(t, &Context{Phase: spec.InReceive, Run: run, Log: &memoryLog{}}, src)
		if err == nil {
			err = run.Respond(b, v)
		}
		return run.Response.Reply, err
	}
	for src, want := range map[string]*Reply{
		"r = None":                           nil,
		"r = reply(204)":                     {Status: 204},
		"r = reply(200, 'ok')":               {Status: 200, Body: []byte("ok"), ContentType: "text/plain; charset=utf-8"},
		"r = reply(400, {'why': ['x', 1]})":  {Status: 400, Body: []byte(`{"why":["x",1]}`), ContentType: "application/json"},
		"values.set('a', 1)\nr = reply(599)": {Status: 599}, // it may do what a run may
	} {
		got, err := respond(src)
		switch {
		case err != nil:
			t.Errorf("%s: %v", src, err)
		case want == nil || got == nil:
			if want != got {
				t.Errorf("%s: got %+v", src, got)
			}
		case got.Status != want.Status || string(got.Body) != string(want.Body) || got.ContentType != want.ContentType:
			t.Errorf("%s: got %+v", src, got)
		}
	}
	for src, want := range map[string]string{
		"r = 200":                         "the hook returned int; a hook of http.receive must return reply(…) or None",
		"r = reply(100)":                  "reply: status: got 100, want 200 to 599",
		"r = reply(204, 'x')":             "body: an answer 204 has none",
		"r = reply(200, 'x' * (2 << 20))": "body: is larger than 1 MiB",
		"r = reply(200, len)":             "reply: body: ",
		"s = k8s.secret('there', 'token')\nr = reply(200, {'a': [s]})": "reply: body: a.0: a secret cannot go here",
		"s = k8s.secret('there', 'token')\nr = reply(200, s)":          "reply: body: ",
	} {
		if _, err := respond(src); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter") {
			t.Errorf("%s: got %v, want %q", src, err, want)
		}
	}
}

func TestReceivedRequest(t *testing.T) {
	ctx := func(body string) starlark.Value {
		r := &Received{Method: "POST", Path: "/x", Query: map[string]string{"a": "1"}, Headers: map[string]string{"x-a": "\xff"}, Body: body}
		return NewCtx(CtxOptions{Request: r.Request("receive")})
	}
	for _, test := range []struct{ body, expr, want string }{
		{`{"a": [1, 2.5]}`, "ctx.request.json", `{"a": [1, 2.5]}`},
		{`{"a": 1}`, "[ctx.request.json['a'], ctx.request.json['a']]", "[1, 1]"},
		{`{"a"`, "ctx.request.json", "None"},
		{"", "[ctx.request.json, ctx.request.body]", `[None, ""]`},
		{strings.Repeat("[", 5000), "ctx.request.json", "None"},
		{"\xff", "ctx.request.body", `"` + "\uFFFD" + `"`},
		{"x", "[ctx.request.method, ctx.request.path, ctx.request.query, ctx.request.headers]", `["POST", "/x", {"a": "1"}, {"x-a": "` + "\uFFFD" + `"}]`},
		{"x", "dir(ctx.request)", `["body", "headers", "json", "method", "path", "query"]`},
	} {
		env := starlark.StringDict{"ctx": ctx(test.body)}
		v, err := starlark.EvalOptions(&syntax.FileOptions{}, &starlark.Thread{}, "x", test.expr, env)
		if err != nil || v.String() != test.want {
			t.Errorf("%.20q: %s: got %v, %v, want %s", test.body, test.expr, v, err, test.want)
		}
	}
	for expr, want := range map[string]string{
		"ctx.request.json.append(1)": "frozen", "ctx.request.josn": "no .josn field",
	} {
		_, err := starlark.EvalOptions(&syntax.FileOptions{}, &starlark.Thread{}, "x", expr, starlark.StringDict{"ctx": ctx("[]")})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", expr, err)
		}
	}
}
