package executor

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/reconcile"
	"github.com/starling-operator/starling/runtime/watch"
)

// config is a child as the API server shows it.
func config(i int, version, note string) map[string]any {
	name, uid := fmt.Sprintf("an-application-%d", i), fmt.Sprintf("0f2a4c6e-1b3d-5f70-8192-%012d", i)
	digest := strings.ReplaceAll(uid, "-", "")
	ref := effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: name}
	obj := reconcile.Mark(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"stamp": "1"},
		"metadata": map[string]any{"name": name, "namespace": "shop", "uid": "c" + uid[1:], "resourceVersion": version, "labels": map[string]any{"app": name}},
	}, &reconcile.Part{ID: reconcile.ID{Ref: ref}, Digest: digest}, 0, reconcile.Parent{Key: "shop/" + name, UID: uid, Controller: "c" + digest[1:],
		Owner: map[string]any{"apiVersion": "example.org/v1", "kind": "Application", "name": name, "uid": uid, "controller": true, "blockOwnerDeletion": false}})
	metadata := obj["metadata"].(map[string]any)
	owned := map[string]any{"f:data": map[string]any{".": map[string]any{}, "f:stamp": map[string]any{}}, "f:metadata": map[string]any{
		"f:annotations":     map[string]any{"f:" + reconcile.ParentAnnotation: map[string]any{}, "f:" + reconcile.ParentUIDAnnotation: map[string]any{}, "f:" + reconcile.DesiredAnnotation: map[string]any{}},
		"f:labels":          map[string]any{"f:app": map[string]any{}, "f:" + reconcile.ControllerLabel: map[string]any{}},
		"f:ownerReferences": map[string]any{fmt.Sprintf("k:{\"uid\":%q}", uid): map[string]any{}},
	}}
	metadata["managedFields"] = []any{map[string]any{
		"manager": effect.Manager("web/c"), "operation": "Apply", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": owned,
	}}
	metadata["annotations"].(map[string]any)["example.com/note"] = note
	return obj
}

// keeping is the watch of a controller on its ConfigMaps.
func keeping() *watch.Local {
	spec := watch.Spec{ID: "configs", APIVersion: "v1", Kind: "ConfigMap"}
	spec.Filter, spec.FilterID = keepChildren(engine.StartWatch{Hook: &generation.Hook{HookDecl: &builtins.HookDecl{}, ID: "web/c"}})
	spec.Asked = isUID
	spec.Wakes = func(obj map[string]any) (*effect.Wakes, error) { return effect.WakesKeys(reconcile.ParentOf(obj)), nil }
	return watch.NewLocal(spec)
}

func TestChildrenTakeLittleMemory(t *testing.T) {
	const many, most = 10_000, 800 // aim: 10 MiB, with the garbage of half as much
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	local := keeping()
	fill := func(version string) {
		objects := make([]map[string]any, many)
		for i := range objects {
			objects[i] = config(i, version, "")
		}
		local.Replace(objects, time.Time{})
		local.About("0f2a4c6e-1b3d-5f70-8192-000000000000") // with their index
	}
	for _, version := range []string{"7", "8"} { // what has not changed is kept as it was
		fill(version)
		per := (heap() - before) / many
		t.Logf("%d bytes a child at version %s", per, version)
		if per > most {
			t.Errorf("a child takes %d bytes at version %s, more than %d", per, version, most)
		}
	}
	if n := len(local.Entries()); n != many {
		t.Errorf("%d objects", n)
	}
}

// A change that no run looks at is no event; any other is.
func TestChangesThatNoRunLooksAt(t *testing.T) {
	local := keeping()
	local.Replace([]map[string]any{config(1, "7", "")}, time.Time{})
	if events := local.Replace([]map[string]any{config(1, "8", "somebody's")}, time.Time{}); len(events) > 0 {
		t.Errorf("the annotation of somebody else: %v", events)
	}
	edited := config(1, "9", "somebody's")
	edited["data"] = map[string]any{"stamp": "2"}
	if events := local.Replace([]map[string]any{edited}, time.Time{}); len(events) != 1 || events[0].Type != watch.Modified {
		t.Errorf("a field that the controller owns: %v", events)
	}
	if found := local.About("shop/an-application-1"); len(found) > 0 {
		t.Errorf("children are found by the name of their parent, for which nobody asks: %v", found)
	}
	rows := unpacked(&generation.Generation{}, func(_, _ string) bool { return false }, local.About("0f2a4c6e-1b3d-5f70-8192-000000000001"))
	if len(rows) != 1 {
		t.Fatalf("%d children", len(rows))
	}
	if diff := cmp.Diff(edited["data"], rows[0].(*object.Object).Map()["data"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func BenchmarkChild(b *testing.B) {
	obj := config(1, "7", "")
	filter, _ := keepChildren(engine.StartWatch{Hook: &generation.Hook{HookDecl: &builtins.HookDecl{}, ID: "web/c"}})
	b.Run("keep", func(b *testing.B) {
		for b.Loop() {
			_, _, _ = filter(obj)
		}
	})
	row, _, _ := filter(obj)
	b.Run("see", func(b *testing.B) {
		for b.Loop() {
			unpacked(&generation.Generation{}, func(_, _ string) bool { return false }, []starlark.Value{row})
		}
	})
}
