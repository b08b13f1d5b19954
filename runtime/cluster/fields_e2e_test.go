//go:build e2e

package cluster

import (
	"testing"

	"github.com/starling-operator/starling/runtime/apply"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// On the wire, fields of an object and of its status are taken and given back; others keep theirs, and no object
// is made.
func TestFieldsOfOthers(t *testing.T) {
	t.Parallel()
	w := newRealWorld(t)
	ref := w.ref("v1", "Service", "x")
	object := func(text string) map[string]any {
		obj := parse(t, "apiVersion: v1\nkind: Service\n"+text)
		meta, _ := obj["metadata"].(map[string]any)
		if meta == nil {
			meta = map[string]any{}
			obj["metadata"] = meta
		}
		meta["name"], meta["namespace"] = ref.Name, ref.Namespace
		return obj
	}
	w.write(effect.Write{Kind: effect.WriteApply, Ref: ref, Object: object("metadata: {labels: {app: x}}\nspec: {ports: [{port: 80}], selector: {app: x}}\n")})
	live := func() map[string]any {
		obj, err := w.client.Get(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		return obj
	}
	uid := uidOf(live())
	step := func(kind effect.WriteKind, obj map[string]any) effect.Write {
		return effect.Write{Kind: kind, Ref: ref, Object: obj, Unchanged: &effect.Unchanged{UID: uid}}
	}
	write := func(manager string, steps ...effect.Write) effect.Write {
		return effect.Write{Kind: effect.WriteChildren, Children: []effect.Write{{Kind: effect.WriteFields, Ref: ref, Manager: manager, Children: steps}}}
	}
	nothing := object("")
	status := reconcile.Holder{Key: "a/p", Controller: "0123456789abcdef", Subresource: "status"}
	mark, value := status.Mark("d")
	marked := object("metadata: {annotations: {" + mark + ": " + value + "}}\n")
	conditions := object(`status: {conditions: [{type: Seen, status: "True", reason: P, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}]}`)
	ours := status.Manager("web/hooks/a.star:x")

	w.write(write(ours, step(effect.WriteApply, marked), step(effect.WriteStatus, conditions)))
	if is := apply.FieldsOf(live(), ours, "").Owns("annotations", mark); !is || !Same(conditions, live(), ours, "status") || !Owns(conditions, live(), ours, "status") {
		t.Errorf("held %t: %v", is, live())
	}
	if held := reconcile.HeldIn(live()); len(held) != 1 || held[0].Holder != status || held[0].Digest != "d" {
		t.Errorf("held %+v", held)
	}
	w.refused(write("starling/web/b", step(effect.WriteApply, object("metadata: {labels: {app: z}}\n"))),
		"cannot set fields of Service "+w.ns+"/x: others set them to another value (.metadata.labels.app: starling/web/f): leave these fields out")
	w.write(write(ours, step(effect.WriteStatus, nothing), step(effect.WriteApply, nothing)))
	left := live()
	of, _ := left["status"].(map[string]any)
	if len(reconcile.HeldIn(left)) != 0 || of["conditions"] != nil || Taker(left, "") == ours {
		t.Errorf("left %v", left)
	}
	w.write(effect.Write{Kind: effect.WriteDelete, Ref: ref})
	for _, obj := range []map[string]any{marked, nothing} {
		w.refused(write(ours, step(effect.WriteApply, obj)), "cannot apply Service "+w.ns+"/x: ")
	}
	if obj, err := w.client.Get(t.Context(), ref); err != nil || obj != nil {
		t.Errorf("there is %v, %v", obj, err)
	}
}
