package cluster

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/starling-operator/starling/runtime/apply"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// A field that cannot be changed is another refusal than a value that is wrong.
func TestFixedFields(t *testing.T) {
	at := field.NewPath("spec", "selector")
	for _, test := range []struct {
		err  *field.Error
		want bool
	}{
		{field.Invalid(at, "x", "field is immutable"), true},
		{field.Forbidden(at, "updates to statefulset spec for fields other than 'replicas' are forbidden"), true},
		{field.Invalid(at, "x", "may not change once set"), true},
		{field.Invalid(at, -1, "must be greater than or equal to 0"), false},
		{field.Required(at, "field is immutable"), false},
	} {
		if got := fixed(apierrors.NewInvalid(schema.GroupKind{Kind: "Job"}, "x", field.ErrorList{test.err})); got != test.want {
			t.Errorf("%v: %t", test.err, got)
		}
	}
	if fixed(nil) || fixed(apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("changed"))) {
		t.Error("a conflict is no such refusal")
	}
}

func TestWritten(t *testing.T) {
	entry := func(manager, operation, subresource string) map[string]any {
		e := map[string]any{"manager": manager, "operation": operation, "apiVersion": "v1", "time": "2026-01-01T00:00:00Z", "fieldsV1": map[string]any{
			"f:metadata": map[string]any{"f:annotations": map[string]any{"f:" + reconcile.ParentUIDAnnotation: map[string]any{}}},
		}}
		if subresource != "" {
			e["subresource"] = subresource
		}
		return e
	}
	live := map[string]any{"metadata": map[string]any{"managedFields": []any{
		entry("us", "Apply", ""), entry("kubelet", "Update", "status"), entry("kubectl-edit", "Update", ""),
	}}}
	made := func(manager string) bool { made, _ := Written(nil, live, manager); return made }
	if !made("us") {
		t.Error("an apply is not ours")
	}
	if made("kubectl-edit") {
		t.Error("an update is no apply")
	}
	if by := Taker(live, "us"); by != "kubectl-edit" {
		t.Errorf("by %v", by)
	}
}

// Of an object whose managedFields somebody has cleared the signature tells whose it is, also once others have applied
// it.
func TestWrittenAndCleared(t *testing.T) {
	for name, test := range map[string]struct {
		entries []any
		signed  bool
		want    bool
	}{
		"cleared":                    {nil, true, true},
		"cleared, applied by others": {[]any{map[string]any{"manager": "kubectl", "operation": "Apply"}, map[string]any{"manager": apply.Nobody, "operation": "Update"}}, true, true},
		"cleared, not signed":        {nil, false, false},
		"made by others":             {[]any{map[string]any{"manager": "kubectl-create", "operation": "Update"}}, true, false},
	} {
		seal := effect.NewSeal(time.Now)
		seal.Use([]byte("secret"), time.Time{})
		live := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
			"name": "a", "namespace": "b", "uid": "u", "managedFields": test.entries, "labels": map[string]any{reconcile.ControllerLabel: "c"},
			"annotations": map[string]any{reconcile.ParentUIDAnnotation: "p"},
		}}
		if test.signed {
			live["metadata"].(map[string]any)["annotations"].(map[string]any)[effect.ChildSignature] = seal.Sign(effect.RefOf(live), "u", childClaim(live)...)
		}
		if made, _ := Written(seal, live, "us"); made != test.want {
			t.Errorf("%s: ours: %t", name, made)
		}
	}
}

// The child of another instance, whose controller has the same name, is left alone; one whose label
// somebody has changed is not.
func TestChildrenOfAnotherInstance(t *testing.T) {
	child := func(label string, labelled bool) map[string]any {
		owned := map[string]any{"f:annotations": map[string]any{"f:" + reconcile.ParentUIDAnnotation: map[string]any{}}}
		if labelled {
			owned["f:labels"] = map[string]any{"f:" + reconcile.ControllerLabel: map[string]any{}}
		}
		return map[string]any{"metadata": map[string]any{
			"labels":      map[string]any{reconcile.ControllerLabel: label},
			"annotations": map[string]any{reconcile.ParentUIDAnnotation: "u1", reconcile.DesiredAnnotation: "d"},
			"managedFields": []any{map[string]any{
				"manager": "us", "operation": "Apply", "apiVersion": "v1", "fieldsV1": map[string]any{"f:metadata": owned},
			}},
		}}
	}
	want := child("ours", true)
	for _, test := range []struct {
		live map[string]any
		ours bool
	}{{child("ours", true), true}, {child("theirs", true), false}, {child("theirs", false), true}} {
		if got := NewWriter(WriterOptions{Client: &Client{}}).madeFor(test.live, want, "us"); got != test.ours {
			t.Errorf("%v: %t", test.live, got)
		}
	}
}
