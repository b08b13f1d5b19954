package record

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/hook"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/stdlib"
)

type noLog struct{}

func (noLog) Log(builtins.Level, string, []builtins.Field) {}

// module is a module whose only hook is called f, with a snapshot called nodes.
type module struct {
	g    *generation.Generation
	runs uint64
}

const header = "module(enabled = True, grants = [grant(\"v1\", k, verbs = [\"*\"], namespaces = [\"*\"]) for k in [\"Secret\", \"ConfigMap\", \"Pod\"]] + [grant(\"v1\", \"Pod\", verbs = [\"exec\", \"logs\"]), grant(\"v1\", \"ServiceAccount\", verbs = [\"token\"]), grant(\"authorization.k8s.io/v1\", \"SubjectAccessReview\", verbs = [\"create\"])], http = [\"api.example.com\"])\n"

func newModule(t testing.TB, body string) *module {
	t.Helper()
	return &module{g: load(t, map[string]string{"m/module.star": header, "m/hooks/a.star": "load(\"//lib/x.star\", \"helper\"); text = module.file(\"a.txt\")\n" +
		"def f(ctx):\n    " + strings.ReplaceAll(body, "\n", "\n    ") + "\n\nhook(f, on = [k8s.watch(\"v1\", \"Node\", name = \"nodes\")])\n",
		"m/a.txt": "of the module", "lib/x.star": "def helper(x):\n    return x\n"})}
}

func load(t testing.TB, files map[string]string) *generation.Generation {
	t.Helper()
	fsys := fstest.MapFS{}
	for path, text := range files {
		fsys[path] = &fstest.MapFile{Data: []byte(text)}
	}
	read, err := tree.Read(fsys, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g := generation.Load(context.Background(), generation.Options{Tree: read, Std: stdlib.FS, Number: 1,
		Log: func(string) builtins.Logger { return noLog{} }})
	for _, m := range g.Modules {
		if m.Err != nil {
			t.Fatal(m.Err)
		}
	}
	return g
}

// secretText is the content of every Secret in the world of run.
const secretText = "hush-hush-1234"

// forbidden is the error of a read that RBAC does not allow.
type forbidden struct{}

func (forbidden) Error() string    { return "not allowed to get configmaps" }
func (forbidden) Unreadable() bool { return true }

// live answers live reads.
type live struct{}

func (live) Get(_ context.Context, ref effect.Ref) (map[string]any, error) {
	switch {
	case ref.Kind == "Secret":
		return map[string]any{"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"k": "aHVzaC1odXNoLTEyMzQ="}}, nil
	case ref.Name == "forbidden":
		return nil, forbidden{}
	case ref.Name == "missing":
		return nil, nil
	}
	return nil, errors.New("the API server is tired")
}

func (live) List(context.Context, string, string, []string, string, string) ([]map[string]any, error) {
	return []map[string]any{{"metadata": map[string]any{"name": "a"}, "n": int64(1), "x": 1.0}}, nil
}

func (l live) Gather(_ context.Context, requests []effect.Request, _ int) []builtins.Gathered {
	return builtins.InTurn(requests, l.fetch)
}

func (live) fetch(r effect.Request) (builtins.Fetched, error) {
	if strings.Contains(r.URL, "/down") {
		return builtins.Fetched{}, &builtins.NoAnswerError{Reason: "connection refused"}
	}
	return builtins.Fetched{Status: 200, Headers: map[string]string{"a": "b"}, Body: []byte("\xff{}")}, nil
}

// nodes are objects with these names.
func nodes(names ...string) []starlark.Value {
	out := make([]starlark.Value, len(names))
	for i, name := range names {
		out[i] = object.New(map[string]any{"metadata": map[string]any{"name": name, "labels": map[string]any{"x": strings.Repeat(name, 50)}}})
	}
	return out
}

// run runs the hook and returns its trace.
func (m *module) run(t testing.TB, snapshot []starlark.Value, change ...func(*hook.Request)) *Trace {
	t.Helper()
	mod := m.g.Modules["m"]
	section := values.Section{Static: []values.Layer{{Name: "chart", Data: map[string]any{"a": map[string]any{"b": int64(1)}}}}}
	r := hook.Request{
		Host: m.g.Host, Module: mod, Hook: mod.Hooks[0], Namespace: "ns", Attempt: 1,
		Events:    []builtins.Event{{Type: "modified", Binding: "nodes", Name: "a", Result: object.New(map[string]any{"n": int64(1)}), Old: object.New(map[string]any{"n": int64(0)})}},
		Snapshots: map[string][]starlark.Value{"nodes": snapshot}, Synced: map[string]bool{"nodes": true},
		Now:     time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("CET", 3600)),
		Compose: func(own []effect.ValueOp) (map[string]any, error) { return section.ComposeFor("f", own) },
		Config:  map[string]any{"c": "d"}, State: map[string]any{"s": int64(7)},
		Reader: live{}, HTTP: live{}, Random: endless{},
		Env:   func(name string) (string, error) { return "the " + name, nil },
		Scope: func(string, string) (bool, error) { return true, nil }, Log: noLog{},
	}
	for _, f := range change {
		f(&r)
	}
	var got *Trace
	take := func(t *Trace) { got = t }
	m.runs++
	trace := Start(take, m.runs, 1, &r)
	trace.End(take, hook.Run(t.Context(), r), time.Millisecond)
	return got
}

// endless are random bytes that are the same each time.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(i)
	}
	return len(p), nil
}

var _ io.Reader = endless{}

func newStore(t testing.TB, o StoreOptions) *Store {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	if o.Key == nil {
		var err error
		if o.Key, err = NewKey(); err != nil {
			t.Fatal(err)
		}
	}
	o.Process, o.Version = "test", "v1"
	s, err := OpenStore(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func put(t testing.TB, s *Store, traces ...*Trace) {
	t.Helper()
	for _, tr := range traces {
		if err := s.Put(tr); err != nil {
			t.Fatal(err)
		}
	}
}

// opened is the run of this number.
func opened(t testing.TB, s *Store, run uint64) *Record {
	t.Helper()
	r, err := Load(s.o.Dir, ID("test", run), s.key)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func replayed(t testing.TB, r *Record, o ReplayOptions) *Replayed {
	t.Helper()
	out, err := Replay(t.Context(), r, o)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func base64Of(data []byte) string { return base64.StdEncoding.EncodeToString(data) }
