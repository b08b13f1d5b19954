package workloads

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// claimName is the name of the claim that a Pod has by a template.
func claimName(template *corev1.PersistentVolumeClaim, p *corev1.Pod) string {
	return template.Name + "-" + p.Name
}

// mountClaims has a new Pod mount its claims, in place of volumes of the same names.
func (o *ordered) mountClaims(p *corev1.Pod) {
	var volumes []corev1.Volume
	for i := range o.set.Spec.VolumeClaimTemplates {
		template := &o.set.Spec.VolumeClaimTemplates[i]
		p.Spec.Volumes = slices.DeleteFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == template.Name })
		volumes = append(volumes, corev1.Volume{Name: template.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimName(template, p)},
		}})
	}
	p.Spec.Volumes = append(volumes, p.Spec.Volumes...)
}

// claimVolumes makes the claims that a Pod mounts, where they are missing.
func (o *ordered) claimVolumes(p *corev1.Pod) {
	for i := range o.set.Spec.VolumeClaimTemplates {
		template := &o.set.Spec.VolumeClaimTemplates[i]
		if find(o.s.Claims, o.set.Namespace, claimName(template, p)) != nil {
			continue
		}
		claim := template.DeepCopy()
		claim.TypeMeta = typeMeta(kindClaim)
		claim.Name, claim.Namespace, claim.Status = claimName(template, p), o.set.Namespace, corev1.PersistentVolumeClaimStatus{}
		labels := map[string]string{}
		maps.Copy(labels, template.Labels)
		maps.Copy(labels, o.set.Spec.Selector.MatchLabels)
		claim.Labels, claim.OwnerReferences = labels, o.owners(claim, nil)
		o.out.create(claim)
	}
}

// giveClaims says who owns the claims, by the policy of the set: nobody, so that they stay;
// the set, so that they go with it; or the Pod that is about to go, so that they go with that.
func (o *ordered) giveClaims() {
	for i := range o.set.Spec.VolumeClaimTemplates {
		for _, p := range o.replicas {
			o.giveClaim(&o.set.Spec.VolumeClaimTemplates[i], p, nil)
		}
		for _, p := range o.condemned {
			o.giveClaim(&o.set.Spec.VolumeClaimTemplates[i], p, p)
		}
	}
}

// giveClaim does so for the claim of a Pod; condemned is the Pod if it is about to go.
func (o *ordered) giveClaim(template *corev1.PersistentVolumeClaim, p, condemned *corev1.Pod) {
	if p == nil {
		return
	}
	claim := find(o.s.Claims, p.Namespace, claimName(template, p))
	if claim == nil {
		return
	}
	if owners := o.owners(claim, condemned); !equality.Semantic.DeepEqual(owners, claim.OwnerReferences) {
		changed := claim.DeepCopy()
		changed.OwnerReferences = owners
		o.out.update(changed)
	}
}

// owners are those that a claim has beside those that others have given it.
func (o *ordered) owners(claim *corev1.PersistentVolumeClaim, condemned *corev1.Pod) []metav1.OwnerReference {
	out := slices.DeleteFunc(slices.Clone(claim.OwnerReferences), func(ref metav1.OwnerReference) bool {
		return ref.UID == o.set.UID || ref.Kind == kindPod.Kind && ref.APIVersion == "v1"
	})
	policy := ptr.Deref(o.set.Spec.PersistentVolumeClaimRetentionPolicy, appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{})
	const goes = appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	switch {
	case condemned != nil && policy.WhenScaled == goes:
		out = append(out, *metav1.NewControllerRef(condemned, kindPod))
	case policy.WhenDeleted == goes:
		out = append(out, *metav1.NewControllerRef(o.set, kindStatefulSet))
	}
	return out
}
