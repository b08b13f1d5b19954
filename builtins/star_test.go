package builtins

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// Every testdata/*.star is run statement by statement. A line that is to fail
// says so with ### "regexp"; the statement after it goes on. Lines of the form
// "# phase: run" set up what the file runs in, once for the file; see starFile.

// starFile is one data file with its world.
type starFile struct {
	t       *testing.T
	path    string
	want    map[int]*regexp.Regexp
	context *Context
	log     *memoryLog
	// composed counts the calls of Run.Compose.
	composed int
}

func TestStar(t *testing.T) {
	files, err := filepath.Glob("testdata/*.star")
	if err != nil || len(files) == 0 {
		t.Fatalf("no data files: %v", err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".star"), func(t *testing.T) {
			t.Parallel()
			runStar(t, path)
		})
	}
}

func runStar(t *testing.T, path string) {
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f := &starFile{t: t, path: path, want: map[int]*regexp.Regexp{}, log: &memoryLog{}}
	f.readComments(string(src))
	opts := &syntax.FileOptions{Set: true, GlobalReassign: true}
	parsed, err := opts.Parse(path, src, 0)
	if err != nil {
		t.Fatal(err)
	}
	thread := &starlark.Thread{Name: path}
	Attach(thread, f.context)
	globals := starlark.StringDict{}
	maps.Copy(globals, starlark.Universe)
	maps.Copy(globals, Predeclared())
	maps.Copy(globals, f.helpers())
	for _, stmt := range parsed.Stmts {
		one := &syntax.File{Path: path, Options: opts, Stmts: []syntax.Stmt{stmt}}
		f.check(starlark.ExecREPLChunk(one, thread, globals), stmt)
	}
	for line, re := range f.want {
		t.Errorf("%s:%d: no error, want %q", path, line, re)
	}
}

// check holds the error of one statement against what its lines expect.
func (f *starFile) check(err error, stmt syntax.Stmt) {
	if err == nil {
		return
	}
	start, _ := stmt.Span()
	line := int(start.Line)
	var eval *starlark.EvalError
	if errors.As(err, &eval) {
		for _, frame := range slices.Backward([]starlark.CallFrame(eval.CallStack)) {
			if frame.Pos.Filename() == f.path {
				line = int(frame.Pos.Line)
				break
			}
		}
	}
	re, ok := f.want[line]
	if !ok {
		f.t.Errorf("%s:%d: unexpected error: %v", f.path, line, err)
		return
	}
	delete(f.want, line)
	if !re.MatchString(err.Error()) {
		f.t.Errorf("%s:%d: error %q, want %q", f.path, line, err, re)
	}
	if strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "*starlark") {
		f.t.Errorf("%s:%d: error is not fit for people: %q", f.path, line, err)
	}
}

func (f *starFile) readComments(src string) {
	phases := map[string]spec.Phase{"load": spec.InLoad, "filter": spec.InFilter, "run": spec.InRun, "enabled": spec.InEnabled, "desired": spec.InDesired}
	roles := map[string]Role{"lib": RoleLib, "module": RoleModule, "hooks": RoleHooks}
	f.context = &Context{Phase: spec.InRun, Log: f.log}
	file, run := &File{Path: "web/hooks/a.star", Role: RoleHooks}, newTestRun(&f.composed)
	for i, line := range strings.Split(src, "\n") {
		if _, quoted, ok := strings.Cut(line, "### "); ok {
			pattern, err := strconv.Unquote(strings.TrimSpace(quoted))
			if err != nil {
				f.t.Fatalf("%s:%d: %s is not quoted", f.path, i+1, quoted)
			}
			f.want[i+1] = regexp.MustCompile(pattern)
		}
		key, value, _ := strings.Cut(strings.TrimPrefix(line, "# "), ": ")
		switch {
		case !strings.HasPrefix(line, "# "):
		case key == "phase":
			f.context.Phase = phases[value]
		case key == "key":
			run.Key = value
		case key == "cleanup":
			run.Cleanup = true
		case key == "role":
			file.Role = roles[value]
		case key == "file":
			file.Path = value
		case key == "global":
			run.Global, run.Module, run.Namespace = true, "global", "starling"
		case key == "limit":
			n, err := strconv.Atoi(value)
			if err != nil {
				f.t.Fatal(err)
			}
			run.Limits = Limits{MaxWrites: n, MaxBytes: 1000, LogBytes: 100}
		}
	}
	run.Enabled = []string{"webEnabled", "certManagerEnabled"}
	switch f.context.Phase {
	case spec.InLoad:
		f.context.File, f.context.Files = file, testFiles{}
	case spec.InRun, spec.InEnabled, spec.InDesired:
		f.context.Run = run
	}
}

// testFiles are those of module.file.
type testFiles struct{}

func (testFiles) Read(path string) ([]byte, error) {
	switch path {
	case "none":
		return nil, errors.New("there is no none")
	case "raw":
		return []byte("\xff\x00"), nil
	}
	return []byte("text of " + path), nil
}

func (testFiles) Match(string) (map[string][]byte, error) {
	return map[string][]byte{"b.txt": []byte("b"), "a.txt": []byte("a")}, nil
}

// helpers are the functions of the data files: eq, declared, effects, logs.
func (f *starFile) helpers() starlark.StringDict {
	fn := func(name string, fn func(args starlark.Tuple) (starlark.Value, error)) *starlark.Builtin {
		return starlark.NewBuiltin(name, func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
			return fn(args)
		})
	}
	return starlark.StringDict{
		"eq": fn("eq", func(args starlark.Tuple) (starlark.Value, error) {
			same, err := object.Equal(args[0], args[1])
			if err == nil && !same {
				err = fmt.Errorf("not equal: %s and %s", args[0], args[1])
			}
			return starlark.None, err
		}),
		// hooks() is what was declared, as data; functions as their names.
		"hooks": fn("hooks", func(starlark.Tuple) (starlark.Value, error) {
			return asData(f.context.File.Hooks), nil
		}),
		"module_decl": fn("module_decl", func(starlark.Tuple) (starlark.Value, error) {
			return asData(f.context.File.Module), nil
		}),
		// kinds() are the definitions of crd(), by name.
		"kinds": fn("kinds", func(starlark.Tuple) (starlark.Value, error) {
			out := map[string]json.RawMessage{}
			for _, d := range f.context.File.CRDs {
				out[d.Name] = d.Data
			}
			return asData(out), nil
		}),
		"effects": fn("effects", func(starlark.Tuple) (starlark.Value, error) {
			return asData(f.context.Run.Effects), nil
		}),
		"positions": fn("positions", func(starlark.Tuple) (starlark.Value, error) {
			var out []any
			for _, op := range f.context.Run.Effects.Values {
				out = append(out, op.Pos)
			}
			return object.FromPlain(out), nil
		}),
		// desired(v) is the answer of a desired function, as data.
		"desired": fn("desired", func(args starlark.Tuple) (starlark.Value, error) {
			d, err := DesiredOf(args[0])
			return asData(d), err
		}),
		"logs": fn("logs", func(starlark.Tuple) (starlark.Value, error) {
			lines := f.log.lines
			f.log.lines = nil
			return object.FromPlain(lines), nil
		}),
		"composed": fn("composed", func(starlark.Tuple) (starlark.Value, error) {
			_, err := f.context.Run.values()
			return starlark.MakeInt(f.composed), err
		}),
		"obj": fn("obj", func(args starlark.Tuple) (starlark.Value, error) {
			m, err := object.ToPlain(args[0])
			if err != nil {
				return nil, err
			}
			return object.New(m.(map[string]any)), nil
		}),
		"ctx": NewCtx(CtxOptions{
			Events: []Event{
				{Type: "startup", Binding: "startup"},
				{Type: "added", Binding: "nodes", Name: "a", Result: object.FromPlain(map[string]any{"ready": true})},
				{Type: "modified", Binding: "nodes", Name: "b", Object: object.New(map[string]any{"kind": "Node"})},
			},
			Snapshots: map[string][]starlark.Value{
				"nodes": {object.FromPlain(map[string]any{"ready": true})}, "secrets": {},
			},
			Synced:  map[string]bool{"nodes": true, "secrets": false},
			Module:  ModuleInfo{Name: "web", Namespace: "web", Release: "web"},
			Now:     testNow,
			Attempt: 1,
			Key:     f.key(), Object: object.FromPlain(map[string]any{"ready": true}),
		}),
	}
}

// key is the object that runs are about, or "".
func (f *starFile) key() string {
	if f.context.Run == nil {
		return ""
	}
	return f.context.Run.Key
}

// asData shows Go data to Starlark by way of JSON.
func asData(v any) starlark.Value {
	text, err := json.Marshal(v)
	if err != nil {
		return starlark.String(err.Error())
	}
	dec := json.NewDecoder(strings.NewReader(string(text)))
	var out any
	if err := dec.Decode(&out); err != nil {
		return starlark.String(err.Error())
	}
	return object.FromPlain(out)
}

// memoryLog keeps log lines as data.
type memoryLog struct{ lines []any }

func (l *memoryLog) Log(level Level, msg string, fields []Field) {
	line := []any{level.String(), msg}
	for _, f := range fields {
		line = append(line, f.Key, f.Value)
	}
	l.lines = append(l.lines, line)
}

var testNow = time.Date(2026, time.March, 1, 10, 30, 0, 0, time.UTC)

func newTestRun(composed *int) *Run {
	run := &Run{
		Env: func(name string) (string, error) {
			if name != "REGION" {
				return "", errors.New("hooks may not read " + name)
			}
			return "north", nil
		},
		Module: "web", Hook: "hooks/a.star:f", Namespace: "web", Instance: effect.Instance{Namespace: "ops", Name: "starling"}, Now: testNow,
		Config: map[string]any{"replicas": int64(3), "none": nil}, MayConfigure: []string{"password", "tls", "hosts"},
		Grants: []Grant{
			{APIVersion: "v1", Kind: "ConfigMap", Verbs: []string{"get", "list", "apply", "delete"}},
			{APIVersion: "v1", Kind: "ConfigMap", Verbs: []string{"get"}, Namespaces: []string{"kube-system"}, Names: []string{"shared"}},
			{APIVersion: "v1", Kind: "Secret", Verbs: []string{"*"}, Namespaces: []string{"*"}},
			{APIVersion: "v1", Kind: "ConfigMap", Verbs: []string{"*"}, Namespaces: []string{"ops"}},
			{APIVersion: "v1", Kind: "Namespace", Verbs: []string{"*"}},
			{APIVersion: "v1", Kind: "Node", Verbs: []string{"create", "patch"}, Namespaces: []string{"ignored"}},
			{APIVersion: "v1", Kind: "Service", Verbs: []string{"write"}},
			{APIVersion: "apps/v1", Kind: "Deployment", Verbs: []string{"list"}, Names: []string{"one"}},
			{APIVersion: "v1", Kind: "Pod", Verbs: []string{"write"}},
			{APIVersion: "v1", Kind: "Event", Verbs: []string{"create"}},
			{APIVersion: "v1", Kind: "ServiceAccount", Verbs: []string{"create"}},
			{APIVersion: "batch/v1", Kind: "Job", Verbs: []string{"*"}, Labels: "app=web"},
			{APIVersion: "batch/v1", Kind: "CronJob", Verbs: []string{"get", "write"}, Owned: true},
			{APIVersion: "batch/v1", Kind: "CronJob", Verbs: []string{"apply"}, Names: []string{"shared"}},
			{APIVersion: "example.org/v1", Kind: "Gadget", Verbs: []string{"get", "list"}},
		},
		Fields: []reconcile.Kind{{APIVersion: "v1", Kind: "ConfigMap"}, {APIVersion: "apps/v1", Kind: "Deployment"}},
		Owns: []reconcile.Kind{{APIVersion: "v1", Kind: "ConfigMap"}, {APIVersion: "v1", Kind: "Secret"}, {APIVersion: "v1", Kind: "Namespace"},
			{APIVersion: "apps/v1", Kind: "Deployment"}, {APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}},
		Reader: fakeReader{}, HTTP: fakeFetcher{}, Hosts: testHosts(),
		Scope: func(_, kind string) (bool, error) {
			switch kind {
			case "Widget":
				return false, errors.New("kind Widget is not served")
			case "Gadget", "Unserved":
				return false, unreadable{"kind " + kind + " is not served"}
			}
			return kind != "Node" && kind != "Namespace", nil
		},
	}
	base := map[string]any{
		"replicas": int64(1), "hosts": []any{"a", map[string]any{"name": "b"}}, "none": nil,
		"labels": map[string]any{"app.kubernetes.io/name": "web"},
		"global": map[string]any{"domain": "example.org", "exports": map[string]any{"certManager": map[string]any{"issuer": map[string]any{"name": "main"}}}},
	}
	run.Compose = func(own []effect.ValueOp) (map[string]any, error) {
		*composed++
		root := base
		for _, op := range own {
			switch op.Op {
			case effect.OpSet, effect.OpDefault, effect.OpMerge:
				root = withValue(root, op.Path, op.Value)
			case effect.OpRemove:
				root = withValue(root, op.Path, nil)
			}
		}
		return root, nil
	}
	return run
}

// unreadable is the error of a cluster that does not let a kind be read.
type unreadable struct{ text string }

func (e unreadable) Error() string    { return e.text }
func (e unreadable) Unreadable() bool { return true }

// fakeReader holds the ConfigMaps web/there and kube-system/shared.
type fakeReader struct{}

func (fakeReader) Get(_ context.Context, ref effect.Ref) (map[string]any, error) {
	if ref.Name == "broken" {
		return nil, errors.New("the API server is down")
	}
	if ref.Name == "forbidden" {
		return nil, unreadable{"not allowed to read it"}
	}
	if ref.Name == "labelled" {
		return map[string]any{"metadata": map[string]any{"name": ref.Name, "labels": map[string]any{effect.InstanceLabel: "ops.other"}}}, nil
	}
	if ref.Name != "there" && ref.Name != "shared" {
		return nil, nil
	}
	if ref.Kind == "Secret" {
		return map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": ref.Name, "namespace": ref.Namespace},
			"data": map[string]any{"token": "aHVudGVyMg==", "bytes": "/w==", "broken": "%"},
		}, nil
	}
	return map[string]any{
		"apiVersion": ref.APIVersion, "kind": ref.Kind,
		"metadata": map[string]any{"name": ref.Name, "namespace": ref.Namespace, "managedFields": []any{}, "resourceVersion": "7"},
		"data":     map[string]any{"k": "v"},
	}, nil
}

func (r fakeReader) List(ctx context.Context, apiVersion, kind string, namespaces []string, labels, fields string) ([]map[string]any, error) {
	if slices.Equal(namespaces, []string{"forbidden"}) {
		return nil, unreadable{"not allowed to read it"}
	}
	if slices.Equal(namespaces, []string{"owned"}) {
		labelled, _ := r.Get(ctx, effect.Ref{Name: "labelled"})
		return []map[string]any{labelled, {"metadata": map[string]any{"name": "free"}}, {"metadata": map[string]any{"name": "sh.helm.release.v1.x.v1"}}}, nil
	}
	one, err := r.Get(ctx, effect.Ref{APIVersion: apiVersion, Kind: kind, Name: "there", Namespace: strings.Join(namespaces, "+")})
	one["asked"] = labels + ";" + fields
	return []map[string]any{one}, err
}
