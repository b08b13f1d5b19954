package apply

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Fields of managers that have written for this one become its own, whether they were applied or not; those of others
// stay.
func TestClaims(t *testing.T) {
	entry := func(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const update, apply = metav1.ManagedFieldsOperationUpdate, metav1.ManagedFieldsOperationApply
	w := Writer{Manager: "us", Before: []string{"helm"}, Wrote: func(e metav1.ManagedFieldsEntry) bool { return e.Manager == "program" }}
	for _, test := range []struct {
		name    string
		entries []metav1.ManagedFieldsEntry
		want    string // managers and their fields; "": nothing is written
	}{
		{"nobody", nil, ""},
		{"ours", []metav1.ManagedFieldsEntry{entry("us", apply, `{"f:data":{"f:a":{}}}`)}, ""},
		{"others", []metav1.ManagedFieldsEntry{entry("them", update, `{"f:data":{"f:a":{}}}`), entry("they", apply, `{"f:data":{"f:b":{}}}`)}, ""},
		{"ours without apply", []metav1.ManagedFieldsEntry{entry("us", update, `{"f:data":{"f:a":{}}}`)}, `us Apply {"f:data":{"f:a":{}}}`},
		{"written by Helm", []metav1.ManagedFieldsEntry{entry("helm", update, `{"f:data":{"f:a":{}}}`)}, `us Apply {"f:data":{"f:a":{}}}`},
		{"applied by Helm", []metav1.ManagedFieldsEntry{entry("helm", apply, `{"f:data":{"f:a":{}}}`)}, `us Apply {"f:data":{"f:a":{}}}`},
		{"applied by Helm, beside ours and others", []metav1.ManagedFieldsEntry{
			entry("us", apply, `{"f:data":{"f:b":{}}}`), entry("helm", apply, `{"f:data":{"f:a":{}}}`), entry("them", update, `{"f:data":{"f:c":{}}}`),
		}, `us Apply {"f:data":{"f:a":{},"f:b":{}}}; them Update {"f:data":{"f:c":{}}}`},
		{"by a program with Helm in it", []metav1.ManagedFieldsEntry{entry("program", update, `{"f:data":{"f:a":{}}}`)}, `us Apply {"f:data":{"f:a":{}}}`},
	} {
		live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}}
		live.SetManagedFields(test.entries)
		var patch []struct {
			Path  string
			Value json.RawMessage
		}
		var got []string
		if text, _ := w.claims(live); text != nil {
			var entries []metav1.ManagedFieldsEntry
			if err := json.Unmarshal(text, &patch); err != nil || json.Unmarshal(patch[0].Value, &entries) != nil {
				t.Fatalf("%s: %v: %s", test.name, err, text)
			}
			for _, e := range entries {
				got = append(got, e.Manager+" "+string(e.Operation)+" "+e.FieldsV1.GetRawString())
			}
		}
		if strings.Join(got, "; ") != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}
