package reconcile

import (
	"reflect"
	"testing"

	"github.com/starling-operator/starling/runtime/effect"
)

func TestMarks(t *testing.T) {
	obj := map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{
		"name": "a", "namespace": "shop", "labels": map[string]any{"app": "a"},
		"annotations": map[string]any{"note": "x", OrderAnnotation: "7", RetainAnnotation: "true"},
	}}
	owner := map[string]any{"uid": "u1"}
	parent := Parent{Key: "shop/blog", UID: "u1", Controller: "c0ffee", Owner: owner}
	part := wants("a", retained)
	part.ID = ID{Ref: effect.RefOf(obj)}
	marked := Mark(obj, &part, 2, parent)
	want := map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{
		"name": "a", "namespace": "shop", "labels": map[string]any{"app": "a", ControllerLabel: "c0ffee"}, "ownerReferences": []any{owner},
		"annotations": map[string]any{
			"note": "x", DesiredAnnotation: "a 2", OrderAnnotation: "2", RetainAnnotation: "true", ParentAnnotation: "shop/blog", ParentUIDAnnotation: "u1",
			ChildAnnotation: "shop/a",
		},
	}}
	if !reflect.DeepEqual(marked, want) {
		t.Errorf("got %v", marked)
	}
	if key, uid := ParentOf(marked); key != "shop/blog" || uid != "u1" {
		t.Errorf("the parent is %q, %q", key, uid)
	}
	c := ChildOf(marked)
	if c.ID != part.ID || c.Digest != "a 2" || c.Layer != 2 || !c.Retain || c.Foreign != "" || !c.Ready {
		t.Errorf("got %+v", c)
	}

	// Marks that an author writes count for nothing, and nobody is the parent in a test.
	part.Retain = false
	c = ChildOf(Mark(obj, &part, 0, Parent{}))
	if key, uid := ParentOf(obj); c.Layer != 0 || c.Retain || key != "" || uid != "" {
		t.Errorf("got %+v, a child of %q", c, key)
	}
	if c := ChildOf(obj); c.Foreign == "" {
		t.Error("an object without a digest is a child")
	}
}

func TestChildrenWithBrokenMarks(t *testing.T) {
	for order, want := range map[string]int{"x": 0, "-3": 0, "99999999": MaxParts, "3": 3} {
		c := ChildOf(map[string]any{"metadata": map[string]any{"annotations": map[string]any{DesiredAnnotation: "d", OrderAnnotation: order}}})
		if c.Layer != want {
			t.Errorf("%q: layer %d", order, c.Layer)
		}
	}
	if c := ChildOf(map[string]any{"metadata": "x"}); c.Foreign == "" {
		t.Errorf("got %+v", c)
	}
}

// A copy in another namespace, with all metadata, is no child.
func TestACopyIsNoChild(t *testing.T) {
	part := wants("a")
	obj := Mark(map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "a", "namespace": "shop"}}, &part, 0, Parent{Key: "shop/blog", UID: "u1"})
	if c := ChildOf(obj); c.Foreign != "" {
		t.Errorf("the child is of %s", c.Foreign)
	}
	obj["metadata"].(map[string]any)["namespace"] = "staging"
	if c := ChildOf(obj); c.Foreign == "" {
		t.Error("the copy is a child")
	}
}

func TestKeeper(t *testing.T) {
	meta := func(key string, v any) map[string]any { return map[string]any{"metadata": map[string]any{key: v}} }
	owner := func(uid string, controller bool) []any {
		return []any{map[string]any{"kind": "Deployment", "name": "web", "uid": uid, "controller": controller}}
	}
	child := func(parent, controller, retain string) map[string]any {
		return map[string]any{"metadata": map[string]any{
			"labels":      map[string]any{ControllerLabel: controller},
			"annotations": map[string]any{ParentAnnotation: parent, ParentUIDAnnotation: "v", RetainAnnotation: retain},
		}}
	}
	for want, objects := range map[string][]map[string]any{
		"":                                {{}, meta("managedFields", []any{map[string]any{"manager": "starling/web/hooks/a.star:f", "operation": "Apply"}, map[string]any{"manager": "starling", "operation": "Apply"}}), meta("ownerReferences", owner("u", true)), meta("ownerReferences", owner("v", false)), meta("annotations", map[string]any{ParentUIDAnnotation: "u"}), child("shop/blog", "c", "true")},
		"it belongs to Deployment web":    {meta("ownerReferences", owner("v", true))},
		"it is a child of shop/wiki":      {meta("annotations", map[string]any{ParentAnnotation: "shop/wiki", ParentUIDAnnotation: "v"}), child("shop/wiki", "c", "true")},
		"it is a child of shop/blog":      {child("shop/blog", "c", "false"), child("shop/blog", "d", "true")},
		"it is of the Helm release web":   {meta("annotations", map[string]any{"meta.helm.sh/release-name": "web"})},
		"it is made by a hook":            {meta("annotations", map[string]any{effect.MadeByAnnotation: "x"})},
		"it is being deleted":             {meta("deletionTimestamp", "2026-01-01T00:00:00Z")},
		"a hook of module db has made it": {meta("managedFields", []any{map[string]any{"manager": "starling/db/hooks/a.star:f", "operation": "Apply"}})},
	} {
		for i, obj := range objects {
			if got := Keeper(obj, Parent{Key: "shop/blog", UID: "u", Controller: "c", Module: "web"}); got != want {
				t.Errorf("%d: %q, want %q", i, got, want)
			}
		}
	}
}
