package workloads

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// claims binds each claim to a volume, which it makes unless the claim names one, and
// deletes the volumes it has made when their claims are gone.
func claims(s *State) (out Result) {
	for _, claim := range s.Claims {
		if claim.DeletionTimestamp == nil {
			out.bind(s, claim)
		}
	}
	for _, v := range s.Volumes {
		ref := v.Spec.ClaimRef
		if ref == nil || v.DeletionTimestamp != nil {
			continue
		}
		if claim := find(s.Claims, ref.Namespace, ref.Name); ref.UID == "" || claim != nil && refersTo(ref, claim) {
			continue
		}
		switch {
		case v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete:
			out.delete(v)
		case v.Status.Phase == corev1.VolumeBound:
			changed := v.DeepCopy()
			changed.Status.Phase = corev1.VolumeReleased
			out.updateStatus(changed)
		}
	}
	return out
}

// bind takes the next step: a volume, its name in the claim, their statuses.
func (r *Result) bind(s *State, claim *corev1.PersistentVolumeClaim) {
	name := claim.Spec.VolumeName
	if name == "" {
		name = "pvc-" + string(claim.UID)
	}
	v := find(s.Volumes, "", name)
	switch {
	case v == nil && claim.Spec.VolumeName == "":
		r.create(volumeFor(claim, name))
		return
	case v == nil:
		return // as long as the volume that it names is not there
	case v.Spec.ClaimRef != nil && !refersTo(v.Spec.ClaimRef, claim):
		return // it is somebody else's
	case v.Spec.ClaimRef == nil || v.Spec.ClaimRef.UID == "":
		changed := v.DeepCopy()
		changed.Spec.ClaimRef = claimRef(claim)
		r.update(changed)
		return
	case claim.Annotations["pv.kubernetes.io/bind-completed"] == "":
		changed := claim.DeepCopy()
		changed.Annotations = with(changed.Annotations, "pv.kubernetes.io/bind-completed", "yes")
		if claim.Spec.VolumeName == "" {
			changed.Spec.VolumeName = name
			changed.Annotations["pv.kubernetes.io/bound-by-controller"] = "yes"
		}
		r.update(changed)
		return
	}
	if v.Status.Phase != corev1.VolumeBound {
		changed := v.DeepCopy()
		changed.Status.Phase = corev1.VolumeBound
		r.updateStatus(changed)
	}
	status := *claim.Status.DeepCopy()
	status.Phase, status.AccessModes, status.Capacity = corev1.ClaimBound, v.Spec.AccessModes, v.Spec.Capacity
	if !equality.Semantic.DeepEqual(status, claim.Status) {
		changed := claim.DeepCopy()
		changed.Status = status
		r.updateStatus(changed)
	}
}

func volumeFor(claim *corev1.PersistentVolumeClaim, name string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		TypeMeta:   typeMeta(kindVolume),
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": "simulated"}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: claim.Spec.Resources.Requests.DeepCopy(), AccessModes: claim.Spec.AccessModes, VolumeMode: claim.Spec.VolumeMode,
			StorageClassName: ptr.Deref(claim.Spec.StorageClassName, ""), PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			ClaimRef:               claimRef(claim),
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "simulated", VolumeHandle: name}},
		},
	}
}

func claimRef(claim *corev1.PersistentVolumeClaim) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
}

// refersTo says whether a volume is for a claim: by its uid, or by its name alone as long as it
// has none.
func refersTo(ref *corev1.ObjectReference, claim *corev1.PersistentVolumeClaim) bool {
	return ref.Namespace == claim.Namespace && ref.Name == claim.Name && (ref.UID == "" || ref.UID == claim.UID)
}
