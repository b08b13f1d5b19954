package hook

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/reconcile"
)

const tellsSecrets = `
def config(name):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}

def read(ctx):
    return base64.decode(ctx.reads.secrets.get("shop/s").data.k)

def answer(ctx, o):
    mode = o.spec.mode
    if mode == "waiting":
        return waiting("one for " + read(ctx))
    if mode == "encoded":
        return waiting("one for " + ctx.reads.secrets.get("shop/s").data.k)
    if mode == "stalled":
        return stalled("none for " + read(ctx))
    if mode == "fails":
        fail("not with " + read(ctx))
    if mode == "pause":
        return [rolling([part(config("x"))], pause = lambda ctx: "not with " + read(ctx))]
    if mode == "ready":
        return [part(config("x"), name = "x", ready = lambda child: fail("not with " + read(ctx))), part(config("y"), name = "y", after = ["x"])]
    return []

def tell(ctx, o):
    if o.spec.mode == "status":
        fail("not with " + read(ctx))
    for _ in range(20000 if o.spec.mode == "steps" else 0):
        pass
    return {}

controller(
    "c",
    k8s.watch("example.org/v1", "Widget"),
    answer,
    owns = [owns("v1", "ConfigMap")],
    reads = {"secrets": k8s.watch("v1", "Secret")},
    cleanup = answer,
    status = tell,
)
`

// about is a run about a Widget of shop that has one child, x.
func about(t *testing.T, mode string, children ...map[string]any) Request {
	t.Helper()
	g, m := compile(t, tellsSecrets, `module(grants = [grant("v1", "Secret", verbs = ["list", "watch"], namespaces = ["*"]), grant("example.org/v1", "Widget", verbs = ["finalize"])])`)
	if g.Hook("web/c") == nil {
		t.Fatal(m.Err)
	}
	widget := map[string]any{
		"apiVersion": "example.org/v1", "kind": "Widget", "metadata": map[string]any{"name": "w", "namespace": "shop", "uid": "u"},
		"spec": map[string]any{"mode": mode},
	}
	secret := map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s", "namespace": "shop"}, "data": map[string]any{"k": "aHVudGVyMg=="},
	}
	no := func(_, _ map[string]any) bool { return false }
	return Request{
		Host: g.Host, Module: m, Hook: g.Hook("web/c"), Attempt: 1, Now: time.Now(), Namespace: "shop", Key: "shop/w", Object: object.New(widget),
		Log: noLog{}, Scope: func(string, string) (bool, error) { return true, nil },
		Rows: func(effect.Lookup) ([]starlark.Value, error) { return []starlark.Value{object.New(secret)}, nil },
		Family: &Family{
			Controller: "c", Children: slices.Values(children), Same: no, Owns: no, StatusSame: no,
			Writer:   func(map[string]any) Written { return Written{Ours: true} },
			StatusOf: func(map[string]any) (map[string]any, time.Time) { return nil, time.Time{} },
		},
	}
}

// childOf is a ConfigMap that says that it is a child of the Widget.
func childOf(controller, name string) map[string]any {
	obj := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "shop", "uid": name}}
	p := reconcile.Part{ID: reconcile.ID{Ref: effect.RefOf(obj)}, Digest: "d"}
	return reconcile.Mark(obj, &p, 0, reconcile.Parent{Key: "shop/w", UID: "u", Controller: controller})
}

// The steps of status= are steps of the run.
func TestStepsOfStatusCount(t *testing.T) {
	long, short := Run(t.Context(), about(t, "steps")), Run(t.Context(), about(t, "none"))
	if long.Err != nil || long.Usage.Steps < short.Usage.Steps+20000 {
		t.Errorf("%d steps, and %d without those of status=, %v", long.Usage.Steps, short.Usage.Steps, long.Err)
	}
}

// The value of a Secret that an author puts into a reason is in no condition, no action and no error.
func TestReasonsTellNoSecrets(t *testing.T) {
	for mode, want := range map[string]string{
		"waiting": "one for ", "encoded": "one for ", "stalled": "none for ", "fails": "not with ", "pause": "not with ", "ready": "not with ",
		"status": "not with ",
	} {
		for _, cleanup := range []bool{false, true} {
			if cleanup && (mode == "stalled" || mode == "status" || mode == "pause") { // a cleanup cannot say that, or is not asked
				continue
			}
			r := about(t, mode, childOf("c", "x"))
			r.Cleanup = cleanup
			result := Run(context.Background(), r)
			text := fmt.Sprint(result.Waits, "\n", result.Err, "\n", result.Actions, "\n")
			for _, w := range result.Effects.Writes {
				for _, c := range w.Children {
					if c.Kind == effect.WriteStatus {
						status, err := json.Marshal(c.Object["status"])
						if err != nil {
							t.Fatal(err)
						}
						text += string(status)
					}
				}
			}
			if strings.Contains(text, "hunter2") || strings.Contains(text, "aHVudGVyMg") || !strings.Contains(text, want) || !strings.Contains(text, `"conditions":`) {
				t.Errorf("%s of a cleanup (%t): %s", mode, cleanup, text)
			}
		}
	}
}

// A child of another controller is none of this one, also when it names the same parent: a Widget may have two.
func TestChildrenOfAnotherController(t *testing.T) {
	result := Run(context.Background(), about(t, "", childOf("c", "ours"), childOf("d", "theirs")))
	if result.Err != nil {
		t.Fatal(result.Err)
	}
	var deleted []string
	for _, w := range result.Effects.Writes {
		for _, c := range w.Children {
			if c.Kind == effect.WriteDelete {
				deleted = append(deleted, c.Ref.Name)
			}
		}
	}
	if !slices.Equal(deleted, []string{"ours"}) || len(result.Actions) != 1 {
		t.Errorf("deletes %v, by %v", deleted, result.Actions)
	}
}
