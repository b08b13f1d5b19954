package store

import (
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Certificate requests have a subresource for those who approve or deny them. It writes conditions,
// and nothing else of the spec and the status.
const approval = "approval"

func approvable(k *kind) bool {
	return k.Builtin && k.Group == "certificates.k8s.io" && k.Plural == "certificatesigningrequests"
}

// beyondApproval are the fields that it does not write.
var beyondApproval = fieldpath.NewSet(fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("status", "certificate"))

// approved returns old with the conditions of obj, which get the times that they lack.
func (s *Store) approved(old, obj map[string]any) map[string]any {
	out := runtime.DeepCopyJSON(old)
	out["metadata"] = runtime.DeepCopyJSONValue(obj["metadata"])
	before, _ := nested(old, "status", "conditions").([]any)
	given, _ := nested(obj, "status", "conditions").([]any)
	conditions := make([]any, 0, len(given))
	for _, c := range given {
		condition, ok := runtime.DeepCopyJSONValue(c).(map[string]any)
		if !ok {
			continue
		}
		if condition["lastUpdateTime"] == nil {
			condition["lastUpdateTime"] = s.now()
		}
		if condition["lastTransitionTime"] == nil {
			condition["lastTransitionTime"] = s.lastTransition(before, condition)
		}
		conditions = append(conditions, condition)
	}
	setNested(out, conditions, "status", "conditions")
	return out
}

// lastTransition is when the status of a condition has changed last: now, unless it is that of before.
func (s *Store) lastTransition(before []any, condition map[string]any) any {
	for _, c := range before {
		old, _ := c.(map[string]any)
		if old["type"] == condition["type"] && old["status"] == condition["status"] && old["lastTransitionTime"] != nil {
			return old["lastTransitionTime"]
		}
	}
	return s.now()
}
