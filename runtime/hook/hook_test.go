package hook

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/script"
	"github.com/starling-operator/starling/stdlib"
)

type noLog struct{}

func (noLog) Log(builtins.Level, string, []builtins.Field) {}

// compile returns the module web with this hook file and module.star.
func compile(t *testing.T, hooks, module string) (*generation.Generation, *generation.Module) {
	t.Helper()
	fsys := fstest.MapFS{"web/hooks/a.star": {Data: []byte(hooks)}, "web/module.star": {Data: []byte(module)}}
	read, err := tree.Read(fsys, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g := generation.Load(context.Background(), generation.Options{Tree: read, Std: stdlib.FS, Number: 1,
		Log: func(string) builtins.Logger { return noLog{} }})
	m := g.Modules["web"]
	if m.Err != nil {
		t.Fatal(m.Err)
	}
	return g, m
}

const nodes = `
load("@std//k8s.star", "is_ready")

def discover(ctx):
    ready = [n["name"] for n in ctx.snapshots["nodes"] if n["ready"]]
    values.set("internal.ready", ready)
    values.set("internal.seen", values.get("internal.ready"))
    metrics.set("ready_nodes", len(ready))
    k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"at": str(ctx.attempt)}})
    requeue("1m")

def fails(ctx):
    values.set("a", 1)
    fail("not yet", retry_after = "3s")

def loops(ctx):
    for i in range(10000000):
        for j in range(10000000):
            pass

def waits(ctx):
    k8s.get("v1", "ConfigMap", "x")

hook(discover, on = [
    k8s.watch("v1", "Node", name = "nodes",
              filter = lambda o: {"name": o.metadata.name, "ready": is_ready(o)} if o.metadata.name != "hidden" else None),
])
hook(fails, on = [startup()])
hook(loops, on = [startup()], timeout = "200ms")
hook(waits, on = [startup()], timeout = "50ms")
`

const moduleStar = `
module(enabled = True, values_key = "web", grants = [
    grant("v1", "ConfigMap", verbs = ["apply", "get"]),
])

def enabled():
    if values.get("global.domain") == None:
        return waiting("no domain")
    return values.get("on", True)

def chart_values(v):
    return {"replicas": len(v["web"].get("nodes") or []), "domain": v["global"]["domain"]}
`

func run(t *testing.T, id string, change func(*Request)) Result {
	t.Helper()
	g, m := compile(t, nodes, moduleStar)
	r := Request{
		Host: g.Host, Module: m, Hook: g.Hook("web/hooks/a.star:" + id), Attempt: 1,
		Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Namespace: "web", Log: noLog{},
		Compose: func(own []effect.ValueOp) (map[string]any, error) {
			if len(own) == 0 {
				return map[string]any{}, nil
			}
			return map[string]any{"internal": map[string]any{"ready": own[0].Value}}, nil
		},
	}
	if change != nil {
		change(&r)
	}
	return Run(context.Background(), r)
}

func TestRunReturnsWhatTheHookAskedFor(t *testing.T) {
	result := run(t, "discover", func(r *Request) {
		r.Snapshots = map[string][]starlark.Value{"nodes": {
			object.FromPlain(map[string]any{"name": "a", "ready": true}),
			object.FromPlain(map[string]any{"name": "b", "ready": false}),
		}}
		r.Synced = map[string]bool{"nodes": true}
	})
	if result.Err != nil {
		t.Fatal(result.Err)
	}
	got := result.Effects
	for i := range got.Values {
		got.Values[i].Pos = ""
	}
	got.Writes[0].Pos = ""
	want := effect.Effects{
		Values: []effect.ValueOp{
			{Op: effect.OpSet, Path: []string{"internal", "ready"}, Value: []any{"a"}},
			{Op: effect.OpSet, Path: []string{"internal", "seen"}, Value: []any{"a"}},
		},
		Writes: []effect.Write{{
			Kind: effect.WriteApply, Force: true,
			Ref: effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "web", Name: "x"},
			Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
				"metadata": map[string]any{"name": "x", "namespace": "web"}, "data": map[string]any{"at": "1"}},
		}},
		Metrics: []effect.Metric{{Kind: effect.MetricSet, Name: "ready_nodes", Value: 1}},
		Requeue: time.Minute,
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b map[string]string) bool { return len(a) == len(b) })); diff != "" {
		t.Error(diff)
	}
}

func TestARunThatFailsAsksForNothing(t *testing.T) {
	result := run(t, "fails", nil)
	var failed *builtins.FailError
	if !errors.As(result.Err, &failed) || failed.RetryAfter != 3*time.Second {
		t.Errorf("got %v", result.Err)
	}
	if !strings.HasPrefix(result.Err.Error(), "web/hooks/a.star:") {
		t.Errorf("no place in %q", result.Err)
	}
	if len(result.Effects.Values) > 0 {
		t.Error("effects of a failed run")
	}
}

func TestARunEndsAtItsTimeout(t *testing.T) {
	var limit *script.LimitError
	if result := run(t, "loops", nil); !errors.As(result.Err, &limit) {
		t.Errorf("got %v", result.Err)
	}
	result := run(t, "waits", func(r *Request) { r.Reader = slowReader{} })
	if result.Err == nil {
		t.Error("a live read outlived the run")
	}
}

// slowReader answers when it is told to stop.
type slowReader struct{}

func (slowReader) Get(ctx context.Context, _ effect.Ref) (map[string]any, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (slowReader) List(ctx context.Context, _, _ string, _ []string, _, _ string) ([]map[string]any, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestFilter(t *testing.T) {
	g, _ := compile(t, nodes, moduleStar)
	watch := g.Hook("web/hooks/a.star:discover").Bindings[0].Watch
	filter := Filter(context.Background(), func() *script.Host { return g.Host }, watch, noLog{})
	node := func(name string) map[string]any {
		return map[string]any{"metadata": map[string]any{"name": name}, "status": map[string]any{
			"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}}
	}
	kept, keep, err := filter(node("a"))
	if err != nil || !keep || kept.String() != `{"name": "a", "ready": True}` {
		t.Errorf("got %v %v %v", kept, keep, err)
	}
	if _, keep, err := filter(node("hidden")); keep || err != nil {
		t.Errorf("None must leave the object out: %v %v", keep, err)
	}
	if _, _, err := filter(map[string]any{"metadata": map[string]any{}}); err == nil || !strings.Contains(err.Error(), "web/hooks/a.star:") {
		t.Errorf("got %v", err)
	}
}

func TestFilterOfFieldsKeepsIdentityAndLabels(t *testing.T) {
	obj := map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "a", "namespace": "n", "uid": "u", "labels": map[string]any{"l": "1"}},
		"spec":     map[string]any{"replicas": int64(2), "paused": true},
	}
	filter := Filter(context.Background(), nil, &builtins.WatchBinding{FilterFields: []string{"spec.replicas", "status.x"}}, noLog{})
	kept, keep, err := filter(obj)
	if err != nil || !keep {
		t.Fatal(keep, err)
	}
	want := map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "a", "namespace": "n", "labels": map[string]any{"l": "1"}},
		"spec":     map[string]any{"replicas": int64(2)},
	}
	if diff := cmp.Diff(want, kept.(*object.Object).Map()); diff != "" {
		t.Error(diff)
	}
	if Filter(context.Background(), nil, &builtins.WatchBinding{}, noLog{}) != nil {
		t.Error("no filter keeps the object")
	}
}

// Fields within fields that are kept whole take nothing from them, and nothing is written
// into the object: others read it at the same time.
func TestFilterOfFieldsLeavesTheObjectAlone(t *testing.T) {
	obj := map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": "a", "labels": map[string]any{"l": "1"}, "uid": "u"},
		"spec":     map[string]any{"containers": []any{map[string]any{"image": "x"}}, "node": map[string]any{"name": "n"}},
	}
	for _, c := range []struct {
		fields []string
		want   map[string]any
	}{
		{[]string{"spec.containers", "spec.containers.0.image"}, map[string]any{"containers": []any{map[string]any{"image": "x"}}}},
		{[]string{"spec.node.name", "spec"}, obj["spec"].(map[string]any)},
		{[]string{"spec", "spec.node.name", "metadata.labels.l"}, obj["spec"].(map[string]any)},
	} {
		filter := Filter(context.Background(), nil, &builtins.WatchBinding{FilterFields: c.fields}, noLog{})
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				kept, _, err := filter(obj)
				if err != nil {
					t.Error(err)
					return
				}
				if diff := cmp.Diff(c.want, kept.(*object.Object).Map()["spec"]); diff != "" {
					t.Errorf("%q: %s", c.fields, diff)
				}
			})
		}
		both.Wait()
	}
	filter := Filter(context.Background(), nil, &builtins.WatchBinding{FilterFields: []string{"metadata.uid", "metadata"}}, noLog{})
	if kept, _, _ := filter(obj); !reflect.DeepEqual(kept.(*object.Object).Map()["metadata"], obj["metadata"]) {
		t.Errorf("the whole metadata: got %s", kept)
	}
}

func TestEnabled(t *testing.T) {
	g, m := compile(t, nodes, moduleStar)
	for _, c := range []struct {
		view map[string]any
		want builtins.Answer
	}{
		{map[string]any{}, builtins.AnswerWaiting},
		{map[string]any{"global": map[string]any{"domain": "x"}}, builtins.AnswerOn},
		{map[string]any{"on": false, "global": map[string]any{"domain": "x"}}, builtins.AnswerDisabled},
	} {
		got, err := Enabled(context.Background(), g.Host, Asked{Module: m, Values: c.view, Log: noLog{}})
		if err != nil || got.Answer != c.want {
			t.Errorf("%v: got %v %v, want %v", c.view, got, err, c.want)
		}
	}
}

func TestReadiness(t *testing.T) {
	g, m := compile(t, nodes, moduleStar+`
def readiness():
    up = values.get("up")
    if up == "no":
        return disabled("no")
    return True if up else False if up == False else waiting("not up: %s" % values.get("password"))
`)
	for _, c := range []struct {
		view map[string]any
		want string
	}{
		{map[string]any{"up": true}, " <nil>"},
		{map[string]any{"password": "hunter2hunter2"}, "not up: *** <nil>"},
		{map[string]any{"up": false}, ` readiness() returned False; say why with waiting("…")`},
		{map[string]any{"up": "no"}, ` readiness() returned disabled; it must return True or waiting("…")`},
	} {
		got, err := Readiness(context.Background(), g.Host, Asked{Module: m, Values: c.view, Secrets: func() []string { return []string{"hunter2hunter2"} }, Log: noLog{}})
		if text := fmt.Sprint(got, " ", err); text != c.want {
			t.Errorf("%v: got %q, want %q", c.view, text, c.want)
		}
	}
}

func TestChartValues(t *testing.T) {
	g, m := compile(t, nodes, moduleStar)
	view := map[string]any{"nodes": []any{"a", "b"}, "global": map[string]any{"domain": "x"}}
	got, err := ChartValues(context.Background(), g.Host, m, view, nil, time.Time{}, noLog{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"replicas": int64(2), "domain": "x"}, got); diff != "" {
		t.Error(diff)
	}
	plain := *m
	plain.ChartValues, plain.Decl.ValuesKey = nil, ""
	if got, err := ChartValues(context.Background(), g.Host, &plain, view, nil, time.Time{}, noLog{}); err != nil || !cmp.Equal(got, view) {
		t.Errorf("got %v %v", got, err)
	}
	// The chart alone sees what stands beside the section in the module's own file.
	keyed, folder := plain, *m.Tree
	folder.Values = map[string]any{"web": map[string]any{"nodes": "z"}, "webEnabled": true, "other": int64(1), "global": map[string]any{"domain": "y", "port": int64(1)}}
	keyed.Decl.ValuesKey, keyed.Tree = "web", &folder
	got, err = ChartValues(context.Background(), g.Host, &keyed, view, nil, time.Time{}, noLog{})
	want := map[string]any{"web": map[string]any{"nodes": []any{"a", "b"}}, "other": int64(1), "global": map[string]any{"domain": "x", "port": int64(1)}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// Objects that hooks make have the labels of their module.
func TestLabelsOfAModule(t *testing.T) {
	result := run(t, "discover", func(r *Request) {
		m := *r.Module
		m.Decl.Labels = map[string]string{"heritage": "us"}
		r.Module, r.Snapshots, r.Synced = &m, map[string][]starlark.Value{"nodes": nil}, map[string]bool{"nodes": true}
	})
	if result.Err != nil || len(result.Effects.Writes) != 1 {
		t.Fatalf("%v, %v", result.Err, result.Effects.Writes)
	}
	got, _ := object.Get(result.Effects.Writes[0].Object, []string{"metadata", "labels"})
	if diff := cmp.Diff(map[string]any{"heritage": "us"}, got); diff != "" {
		t.Error(diff)
	}
}
