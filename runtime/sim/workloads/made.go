package workloads

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Made says whether a controller has made an object, under a name that depends on the way
// there and not on the state: Pods of ReplicaSets, Jobs of CronJobs and the like.
func Made(obj map[string]any) bool {
	o := unstructured.Unstructured{Object: obj}
	switch o.GroupVersionKind() {
	case kindVolume:
		return strings.HasPrefix(o.GetName(), "pvc-")
	case kindReplicaSet, kindRevision, kindJob, kindPod, kindSlice:
		return slices.ContainsFunc(o.GetOwnerReferences(), ours)
	}
	return false
}

// ours says whether an owner is a controller of this package.
func ours(ref metav1.OwnerReference) bool {
	if ref.Controller == nil || !*ref.Controller {
		return false
	}
	for _, k := range Kinds {
		if k.Kind == ref.Kind && k.GroupVersion().String() == ref.APIVersion {
			return true
		}
	}
	return false
}
