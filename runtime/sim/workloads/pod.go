package workloads

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// newPod makes a Pod of a template; its controller is the owner. The API server gives the
// name unless the caller sets one.
func newPod(template *corev1.PodTemplateSpec, owner metav1.Object, of schema.GroupVersionKind) *corev1.Pod {
	t := template.DeepCopy()
	return &corev1.Pod{
		TypeMeta: typeMeta(kindPod),
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: owner.GetName() + "-", Namespace: owner.GetNamespace(),
			Labels: t.Labels, Annotations: t.Annotations, Finalizers: t.Finalizers,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, of)},
		},
		Spec: t.Spec,
	}
}

func typeMeta(gvk schema.GroupVersionKind) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind}
}

// with returns a copy of labels with one more.
func with(labels map[string]string, key, value string) map[string]string {
	out := maps.Clone(labels)
	if out == nil {
		out = map[string]string{}
	}
	out[key] = value
	return out
}

func finished(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// active are the Pods that neither have finished nor are deleted.
func active(pods []*corev1.Pod) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return finished(p) || p.DeletionTimestamp != nil })
}

func conditionOf(p *corev1.Pod, of corev1.PodConditionType) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == of {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

func ready(p *corev1.Pod) bool {
	c := conditionOf(p, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

// available says whether a Pod has been ready for long enough; next is when it will have
// been, zero for one that is not ready.
func available(p *corev1.Pod, minReadySeconds int32, now time.Time) (is bool, next time.Time) {
	if !ready(p) {
		return false, time.Time{}
	}
	since := conditionOf(p, corev1.PodReady).LastTransitionTime.Add(time.Duration(minReadySeconds) * time.Second)
	if since.After(now) {
		return false, since
	}
	return true, time.Time{}
}

// counts are those of statuses.
type counts struct{ all, ready, available int32 }

// count counts Pods; the result is looked at again when one becomes available by time alone.
func (r *Result) count(pods []*corev1.Pod, minReadySeconds int32, now time.Time) (c counts) {
	for _, p := range pods {
		c.all++
		if ready(p) {
			c.ready++
		}
		is, next := available(p, minReadySeconds, now)
		if is {
			c.available++
		}
		r.at(next)
	}
	return c
}

// byLoss sorts Pods: those come first that are missed least.
func byLoss(pods []*corev1.Pod) {
	phases := map[corev1.PodPhase]int{corev1.PodPending: 0, corev1.PodUnknown: 1, corev1.PodRunning: 2}
	on := map[string]int{}
	for _, p := range pods {
		if ready(p) {
			on[p.Spec.NodeName]++
		}
	}
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(
			trueFirst(a.Spec.NodeName == "", b.Spec.NodeName == ""),
			cmp.Compare(phases[a.Status.Phase], phases[b.Status.Phase]),
			trueFirst(!ready(a), !ready(b)),
			cmp.Compare(deletionCost(a), deletionCost(b)),
			cmp.Compare(on[b.Spec.NodeName], on[a.Spec.NodeName]),
			readySince(b).Compare(readySince(a)),
			cmp.Compare(restartsOf(b), restartsOf(a)),
			b.CreationTimestamp.Compare(a.CreationTimestamp.Time),
		)
	})
}

// readySince is when a Pod became ready, zero for one that is not.
func readySince(p *corev1.Pod) time.Time {
	if !ready(p) {
		return time.Time{}
	}
	return conditionOf(p, corev1.PodReady).LastTransitionTime.Time
}

func restartsOf(p *corev1.Pod) (n int32) {
	for _, c := range p.Status.ContainerStatuses {
		n = max(n, c.RestartCount)
	}
	return n
}

// trueFirst sorts those first of which something is true.
func trueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

func deletionCost(p *corev1.Pod) int {
	n, _ := strconv.Atoi(p.Annotations[corev1.PodDeletionCost]) // 0 without one
	return n
}
