package apply

import (
	"context"
	"encoding/json"
	"maps"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// replace writes an object as a whole, and leaves what others have written of its metadata, and its status.
func (w Writer) replace(ctx context.Context, to dynamic.ResourceInterface, whole, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return w.patch(ctx, to, live, types.MergePatchType, func(live *unstructured.Unstructured) ([]byte, error) {
		return Replacement(whole, live)
	})
}

// Replacement is the merge patch that makes live the whole object, in the state in which it is; nil: it is that. Labels
// and annotations of others stay, and so does the status.
func Replacement(whole, live *unstructured.Unstructured) ([]byte, error) {
	next := Desired(whole)
	for _, in := range []string{"labels", "annotations"} {
		theirs, _, _ := unstructured.NestedMap(live.Object, "metadata", in)
		own, _, _ := unstructured.NestedMap(next.Object, "metadata", in)
		if theirs == nil {
			theirs = map[string]any{}
		}
		if maps.Copy(theirs, own); len(theirs) > 0 {
			_ = unstructured.SetNestedMap(next.Object, theirs, "metadata", in)
		}
	}
	given, _ := next.Object["metadata"].(map[string]any)
	for key, v := range live.Object["metadata"].(map[string]any) {
		if given[key] == nil {
			given[key] = v
		}
	}
	if next.Object["status"] = live.Object["status"]; next.Object["status"] == nil {
		delete(next.Object, "status")
	}
	before, err := live.MarshalJSON()
	if err != nil {
		return nil, err
	}
	after, err := next.MarshalJSON()
	if err != nil {
		return nil, err
	}
	patch, err := jsonpatch.CreateMergePatch(before, after)
	if err != nil || string(patch) == "{}" {
		return nil, err
	}
	var fields map[string]any
	if err := json.Unmarshal(patch, &fields); err != nil {
		return nil, err
	}
	if err := unstructured.SetNestedField(fields, live.GetResourceVersion(), "metadata", "resourceVersion"); err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}
