package reconcile

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// A mark says whose it is; what somebody has made of one is none.
func TestMarksOfFields(t *testing.T) {
	p := Holder{Key: "shop/blog", Controller: "c1"}
	status, other := p, p
	status.Subresource, other.Controller = "status", "c2"
	annotations := map[string]any{"note": "theirs", FieldsPrefix + "0123": "c1 d . shop/blog", FieldsPrefix + "4567": 1}
	managers := map[string]bool{}
	for _, h := range []Holder{p, status, other} {
		name, value := h.Mark("d")
		annotations[name] = value
		manager := h.Manager("apps/hooks/" + strings.Repeat("a", 100) + ".star:x")
		if managers[manager] || len(manager) > 128 {
			t.Errorf("manager %q", manager)
		}
		managers[manager] = true
	}
	obj := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x", "uid": "u", "annotations": annotations}, "data": map[string]any{"k": "v"}}
	held := HeldIn(obj)
	if len(held) != 3 || !slices.ContainsFunc(held, func(h Held) bool { return h.Holder == status && h.Digest == "d" }) {
		t.Errorf("held %+v", held)
	}
	if got := FieldsOf(obj); got["data"] == nil {
		t.Errorf("kept %v", got)
	}
	if first, _ := p.Mark("d"); !strings.Contains(p.Manager("apps/x"), " of shop/blog") || !strings.HasPrefix(first, FieldsPrefix) {
		t.Error("a person cannot tell whose they are")
	}
	maps.DeleteFunc(annotations, func(name string, _ any) bool { return HeldIn(obj) != nil && name != "note" })
	if got := FieldsOf(obj); got["data"] != nil || len(HeldIn(obj)) != 0 {
		t.Errorf("kept %v", got)
	}
}
