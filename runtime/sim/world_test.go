package sim

import (
	"context"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/sim/store"
	"github.com/starling-operator/starling/stdlib"
)

type noLog struct{}

func (noLog) Log(builtins.Level, string, []builtins.Field) {}

func world(t *testing.T, read *tree.Tree, err error) *World {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	g := generation.Load(t.Context(), generation.Options{Tree: read, Std: stdlib.FS, Number: 1,
		Log: func(string) builtins.Logger { return noLog{} }})
	for _, m := range g.Modules {
		if m.Err != nil {
			t.Fatal(m.Err)
		}
	}
	w, err := New(Options{Generation: g, Builtins: store.NewBuiltins()})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func hooks(t *testing.T, text string) *World {
	t.Helper()
	read, err := tree.Read(fstest.MapFS{
		"web/module.star":  {Data: []byte("module(enabled = True, grants = [grant(\"v1\", \"ConfigMap\", verbs = [\"apply\"])])\n")},
		"web/hooks/a.star": {Data: []byte(text)},
	}, tree.Options{})
	return world(t, read, err)
}

func node(name string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": name},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}}
}

// Hooks, values, Helm: a Node that comes reaches the Deployment, as in a real cluster.
func TestAnExampleFromANodeToItsRelease(t *testing.T) {
	read, err := tree.ReadDir("../../examples/quickstart", tree.Options{})
	w := world(t, read, err)
	if err := w.Apply(node("a")); err != nil {
		t.Fatal(err)
	}
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	replicas := func() any {
		obj, err := w.Get(effect.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "hello", Name: "hello"})
		if err != nil || obj == nil {
			t.Fatalf("no Deployment: %v", err)
		}
		return obj["spec"].(map[string]any)["replicas"]
	}
	if s := w.Status().Modules[0]; s.State != status.ModuleReady || replicas() != int64(1) {
		t.Errorf("%+v, %v replicas", s, replicas())
	}
	if err := w.Apply(node("b")); err != nil {
		t.Fatal(err)
	}
	if err := w.Settle(t.Context()); err != nil || replicas() != int64(2) {
		t.Errorf("%v replicas, %v", replicas(), err)
	}
	release, err := w.Release(t.Context(), "hello")
	if err != nil || release["revision"] != int64(2) {
		t.Errorf("release %v, %v", release["revision"], err)
	}
	before := w.State()
	w.Stop()
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := w.State(); !reflect.DeepEqual(after, before) {
		t.Error("a restart changes the cluster")
	}
}

func TestTheClockFiresSchedulesInOrder(t *testing.T) {
	w := hooks(t, `
def a(ctx):
    log.info("at", now = str(ctx.now))

hook(a, on = [schedule("*/20 * * * *")])
`)
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.Advance(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	if len(w.Runs) != 3 || w.Now() != Begin.Add(time.Hour) {
		t.Errorf("%d runs at %s", len(w.Runs), w.Now())
	}
}

// Work without end is an error that names the hook: here by way of the
// module's chart, whose objects Helm writes.
func TestWhatNeverSettlesIsSaid(t *testing.T) {
	read, err := tree.Read(fstest.MapFS{
		"web/module.star":      {Data: []byte("module(enabled = True)\n")},
		"web/hooks/a.star":     {Data: []byte("def spin(ctx):\n    values.set(\"x\", len(ctx.snapshots[\"mine\"]) and ctx.snapshots[\"mine\"][0] + 1)\n\nhook(spin, on = [k8s.watch(\"v1\", \"ConfigMap\", name = \"mine\", object_names = [\"x\"], filter = lambda o: int(o.data.x))])\n")},
		"web/templates/a.yaml": {Data: []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {x: {{ .Values.x | quote }}}}\n")},
		"web/values.yaml":      {Data: []byte("x: 0\n")},
	}, tree.Options{})
	w := world(t, read, err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if err := w.Start(ctx); err == nil || !strings.Contains(err.Error(), "it does not settle") || !strings.Contains(err.Error(), "web/hooks/a.star:sp") {
		t.Errorf("got %v", err)
	}
}

// Two that wake each other are slowed down, and named.
func TestHooksThatWakeEachOtherAreSaid(t *testing.T) {
	w := hooks(t, `
def spin(ctx):
    n = ctx.state.get("n", 0) + 1
    ctx.state.set("n", n)
    k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n", "labels": {"a": "b"}}, "data": {"n": str(n)}})

def spun(ctx):
    n = ctx.state.get("n", 0) + 1
    ctx.state.set("n", n)
    k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "labels": {"c": "d"}}, "data": {"n": str(n)}})

hook(spin, on = [k8s.watch("v1", "ConfigMap", labels = {"c": "d"})])
hook(spun, on = [k8s.watch("v1", "ConfigMap", labels = {"a": "b"})])
`)
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.Advance(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	failures := w.engine.Failures()
	const line = `^wakes itself by way of web/hooks/a\.star:sp[iu]n: web/hooks/a\.star:(5|10) writes ConfigMap starling-system/[nm], which the k8s\.watch of web/hooks/a\.star:1[23] sees, and each of the two writes something else each time, `
	if len(w.Runs) > 120 || len(failures) == 0 || !regexp.MustCompile(line).MatchString(failures[0].Reason) {
		t.Errorf("%d runs, failures %+v", len(w.Runs), failures)
	}
}

// One that wakes itself is slowed down, and named.
func TestAHookThatWakesItselfIsSaid(t *testing.T) {
	w := hooks(t, `
def spin(ctx):
    n = int(ctx.snapshots["mine"][0]["n"]) if ctx.snapshots["mine"] else 0
    k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n", "labels": {"a": "b"}}, "data": {"n": str(n + 1)}})

hook(spin, on = [k8s.watch("v1", "ConfigMap", name = "mine", labels = {"a": "b"}, filter = "{n: .data.n}")])
`)
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.Advance(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	const want = `wakes itself: web/hooks/a.star:4 writes ConfigMap starling-system/n, which the k8s.watch of web/hooks/a.star:6 sees, and it writes something else each time, so it is slowed down; ` +
		`write there only what follows from the snapshots, and only when it differs, or let the filter of that watch leave it out, or add events = [] to the watch, which then fills its snapshot and wakes nobody`
	failures := w.engine.Failures()
	if len(w.Runs) > 60 || len(failures) != 1 || failures[0].Reason != want {
		t.Errorf("%d runs, failures %+v", len(w.Runs), failures)
	}
}

// The objects of a list in a chart are the release's, as Helm takes them out.
func TestAChartWithLists(t *testing.T) {
	read, err := tree.Read(fstest.MapFS{
		"web/module.star":      {Data: []byte("module(enabled = True, namespace = \"web\")\n")},
		"web/templates/a.yaml": {Data: []byte("apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: {{ .Values.x | quote }}}}\n")},
		"web/templates/b.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMapList\nitems:\n- {metadata: {name: b}}\n")},
		"web/values.yaml":      {Data: []byte("x: one\n")},
	}, tree.Options{})
	w := world(t, read, err)
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		if obj, err := w.Get(effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "web", Name: name}); err != nil || obj == nil {
			t.Errorf("%s: %v, %v; %+v", name, obj, err, w.Status().Modules)
		}
	}
}
