package workloads

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// owner is one that has objects by a selector.
type owner struct {
	metav1.Object
	kind     schema.GroupVersionKind
	selector *metav1.LabelSelector
}

// owned are the objects of a list whose controller is the owner. Those that the selector
// selects and that nobody controls it adopts, and it lets those go that the selector does not
// select any more; may says which names an object may have, nil: any.
func owned[T Object](r *Result, list []T, by owner, may func(name string) bool) (mine []T) {
	selector, err := metav1.LabelSelectorAsSelector(by.selector)
	if err != nil {
		selector = labels.Nothing()
	}
	for _, o := range list {
		if o.GetNamespace() != by.GetNamespace() {
			continue
		}
		selected := selector.Matches(labels.Set(o.GetLabels())) && (may == nil || may(o.GetName()))
		switch ref := metav1.GetControllerOf(o); {
		case ref == nil && selected && o.GetDeletionTimestamp() == nil && by.GetDeletionTimestamp() == nil:
			r.update(ownedBy(o, append(slices.Clone(o.GetOwnerReferences()), *metav1.NewControllerRef(by, by.kind))))
		case ref == nil || ref.UID != by.GetUID():
		case selected || o.GetDeletionTimestamp() != nil || by.GetDeletionTimestamp() != nil:
			mine = append(mine, o)
		default:
			r.update(ownedBy(o, slices.DeleteFunc(slices.Clone(o.GetOwnerReferences()), func(ref metav1.OwnerReference) bool { return ref.UID == by.GetUID() })))
		}
	}
	return mine
}

// ownedBy is a copy of an object with other owners.
func ownedBy(o Object, owners []metav1.OwnerReference) Object {
	changed := o.DeepCopyObject().(Object)
	changed.SetOwnerReferences(owners)
	return changed
}
