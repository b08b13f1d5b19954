package release

import (
	"reflect"
	"strings"

	"helm.sh/helm/v3/pkg/kube"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// threeWay is the patch that gives live the values of want and leaves what others have added, as
// Helm computes it: objects of built-in kinds are merged by the rules of their fields, lists of
// others are replaced. "{}" is nothing to do.
func threeWay(s stored, want, live *unstructured.Unstructured) ([]byte, types.PatchType, error) {
	wanted, err := want.MarshalJSON()
	if err != nil {
		return nil, "", err
	}
	there, err := live.MarshalJSON()
	if err != nil {
		return nil, "", err
	}
	info := s.info()
	info.Object = &unstructured.Unstructured{} // of which the type is wanted alone
	info.Object.GetObjectKind().SetGroupVersionKind(s.mapping.GroupVersionKind)
	versioned := kube.AsVersioned(info)
	if _, custom := versioned.(runtime.Unstructured); custom {
		patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(wanted, wanted, there)
		return patch, types.MergePatchType, err
	}
	fields, err := strategicpatch.NewPatchMetaFromStruct(versioned)
	if err != nil {
		return nil, "", err
	}
	patch, err := strategicpatch.CreateThreeWayMergePatch(wanted, wanted, there, fields, true)
	if err == nil {
		patch, err = withoutOrder(patch)
	}
	return patch, types.StrategicMergePatchType, err
}

// of has a patch change the object that was read, and no other one that has taken its name since.
func of(live *unstructured.Unstructured, patch []byte) ([]byte, error) {
	var fields map[string]any
	if err := json.Unmarshal(patch, &fields); err != nil || live.GetUID() == "" {
		return patch, err
	}
	if err := unstructured.SetNestedField(fields, string(live.GetUID()), "metadata", "uid"); err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}

// within says whether all that a patch changes is in another one, with the same values.
func within(other, patch []byte) bool {
	var all, some map[string]any
	return json.Unmarshal(other, &all) == nil && json.Unmarshal(patch, &some) == nil && holds(all, some)
}

func holds(all, some map[string]any) bool {
	for key, v := range some {
		in, is := all[key]
		inner, deep := v.(map[string]any)
		outer, _ := in.(map[string]any)
		if !is || deep && !holds(outer, inner) || !deep && !reflect.DeepEqual(in, v) {
			return false
		}
	}
	return true
}

// withoutOrder leaves the order of list elements out of a strategic merge patch that does not
// change those lists. Somebody has added an element to such a list, and the API server would put
// it before or after the others by chance: Pods would be made anew for nothing.
func withoutOrder(patch []byte) ([]byte, error) {
	var fields map[string]any
	if err := json.Unmarshal(patch, &fields); err != nil {
		return nil, err
	}
	dropOrder(fields)
	return json.Marshal(fields)
}

// dropOrder says whether it has taken anything away.
func dropOrder(fields map[string]any) (dropped bool) {
	for key, v := range fields {
		switch v := v.(type) {
		case map[string]any:
			if dropOrder(v) && len(v) == 0 {
				delete(fields, key)
				dropped = true
			}
		case []any:
			if kept := dropOrders(v); len(kept) < len(v) {
				fields[key], dropped = kept, true
				if len(kept) == 0 {
					delete(fields, key)
				}
			}
		}
	}
	for key := range fields {
		if list, is := strings.CutPrefix(key, "$setElementOrder/"); is && fields[list] == nil && fields["$deleteFromPrimitiveList/"+list] == nil {
			delete(fields, key)
			dropped = true
		}
	}
	return dropped
}

// dropOrders leaves out elements of which nothing but their key is left.
func dropOrders(list []any) []any {
	kept := make([]any, 0, len(list))
	for _, e := range list {
		m, is := e.(map[string]any)
		if !is || !dropOrder(m) || len(m) > 1 {
			kept = append(kept, e)
		}
	}
	return kept
}
