package workloads

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

// replicaSets has each ReplicaSet have as many Pods as it says.
func replicaSets(s *State) (out Result) {
	for _, rs := range s.ReplicaSets {
		before := len(out.Writes)
		all := owned(&out, s.Pods, owner{rs, kindReplicaSet, rs.Spec.Selector}, nil)
		if len(out.Writes) > before {
			continue // they are looked at as they are then
		}
		pods := active(all)
		if rs.DeletionTimestamp == nil {
			out.keepReplicas(rs, pods)
		}
		status := s.replicaSetStatus(rs, all, pods, &out)
		if !equality.Semantic.DeepEqual(status, rs.Status) {
			changed := rs.DeepCopy()
			changed.Status = status
			out.updateStatus(changed)
		}
	}
	return out
}

// keepReplicas makes the Pods that are missing, and deletes those that are too many.
func (r *Result) keepReplicas(rs *appsv1.ReplicaSet, pods []*corev1.Pod) {
	want := int(ptr.Deref(rs.Spec.Replicas, 1))
	for range want - len(pods) {
		r.create(newPod(&rs.Spec.Template, rs, kindReplicaSet))
	}
	if len(pods) > want {
		byLoss(pods)
		for _, p := range pods[:len(pods)-want] {
			r.delete(p)
		}
	}
}

func (s *State) replicaSetStatus(rs *appsv1.ReplicaSet, all, pods []*corev1.Pod, out *Result) appsv1.ReplicaSetStatus {
	c := out.count(pods, rs.Spec.MinReadySeconds, s.Now)
	status := *rs.Status.DeepCopy()
	status.Replicas, status.ReadyReplicas, status.AvailableReplicas = c.all, c.ready, c.available
	status.FullyLabeledReplicas = 0
	template := labels.SelectorFromSet(rs.Spec.Template.Labels)
	for _, p := range pods {
		if template.Matches(labels.Set(p.Labels)) {
			status.FullyLabeledReplicas++
		}
	}
	status.TerminatingReplicas = new(terminating(all))
	status.ObservedGeneration = rs.Generation
	return status
}

// terminating counts the Pods that are deleted, and held by finalizers.
func terminating(pods []*corev1.Pod) (n int32) {
	for _, p := range pods {
		if p.DeletionTimestamp != nil && !finished(p) {
			n++
		}
	}
	return n
}
