package workloads

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
)

// writeStatus writes the status when it differs; created is the ReplicaSet that this step
// makes, or "".
func (r *rollout) writeStatus(created string) {
	status := r.status()
	r.setPaused(&status)
	r.setAvailable(&status)
	r.setProgress(&status, created)
	if !equality.Semantic.DeepEqual(status, r.d.Status) {
		d := r.d.DeepCopy()
		d.Status = status
		r.out.updateStatus(d)
	}
}

// status counts Pods; the conditions are as they were.
func (r *rollout) status() appsv1.DeploymentStatus {
	status := *r.d.Status.DeepCopy()
	status.ObservedGeneration = r.d.Generation
	status.Replicas, status.ReadyReplicas, status.AvailableReplicas, status.UpdatedReplicas = 0, 0, 0, 0
	gone := int32(0)
	for _, rs := range r.all() {
		status.Replicas += rs.Status.Replicas
		status.ReadyReplicas += rs.Status.ReadyReplicas
		status.AvailableReplicas += rs.Status.AvailableReplicas
		gone += ptr.Deref(rs.Status.TerminatingReplicas, 0)
	}
	status.TerminatingReplicas = &gone
	if r.new != nil {
		status.UpdatedReplicas = r.new.Status.Replicas
	}
	status.UnavailableReplicas = max(0, sizes(r.all())-status.AvailableReplicas)
	return status
}

// Reasons of the condition Progressing.
const (
	reasonCreated   = "NewReplicaSetCreated"
	reasonFound     = "FoundNewReplicaSet"
	reasonUpdated   = "ReplicaSetUpdated"
	reasonAvailable = "NewReplicaSetAvailable"
	reasonTimedOut  = "ProgressDeadlineExceeded"
	reasonPaused    = "DeploymentPaused"
	reasonResumed   = "DeploymentResumed"
)

func (r *rollout) setAvailable(status *appsv1.DeploymentStatus) {
	if status.AvailableReplicas >= r.replicas()-r.maxUnavailable() {
		r.set(status, appsv1.DeploymentAvailable, corev1.ConditionTrue, "MinimumReplicasAvailable", "Deployment has minimum availability.")
	} else {
		r.set(status, appsv1.DeploymentAvailable, corev1.ConditionFalse, "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
	}
}

// setPaused says that the rollout is paused, or is not any more.
func (r *rollout) setPaused(status *appsv1.DeploymentStatus) {
	was := progress(status)
	switch {
	case r.d.Spec.ProgressDeadlineSeconds == nil:
	case r.d.Spec.Paused && (was == nil || was.Reason != reasonTimedOut):
		r.set(status, appsv1.DeploymentProgressing, corev1.ConditionUnknown, reasonPaused, "Deployment is paused")
	case !r.d.Spec.Paused && was != nil && was.Reason == reasonPaused:
		r.set(status, appsv1.DeploymentProgressing, corev1.ConditionUnknown, reasonResumed, "Deployment is resumed")
	}
}

// complete says whether the rollout has reached its end.
func (r *rollout) complete(status *appsv1.DeploymentStatus) bool {
	return status.UpdatedReplicas == r.replicas() && status.Replicas == r.replicas() && status.AvailableReplicas == r.replicas() && status.ObservedGeneration >= r.d.Generation
}

// setProgress says how far the rollout is, and when it has taken too long.
func (r *rollout) setProgress(status *appsv1.DeploymentStatus, created string) {
	was, deadline := progress(&r.d.Status), r.d.Spec.ProgressDeadlineSeconds
	if deadline == nil {
		unset(status, appsv1.DeploymentProgressing)
		return
	}
	progressing := func(is corev1.ConditionStatus, reason, format string, a ...any) {
		r.set(status, appsv1.DeploymentProgressing, is, reason, fmt.Sprintf(format, a...))
	}
	name := created
	if r.new != nil {
		name = r.new.Name
	}
	switch {
	case r.d.Spec.Paused:
	case created != "":
		progressing(corev1.ConditionTrue, reasonCreated, "Created new replica set %q", name)
	case r.new == nil:
	case was == nil:
		progressing(corev1.ConditionTrue, reasonFound, "Found new replica set %q", name)
	case status.Replicas == status.UpdatedReplicas && was.Reason == reasonAvailable:
	case r.complete(status):
		progressing(corev1.ConditionTrue, reasonAvailable, "ReplicaSet %q has successfully progressed.", name)
	case r.moved(status):
		progressing(corev1.ConditionTrue, reasonUpdated, "ReplicaSet %q is progressing.", name)
		progress(status).LastUpdateTime = r.s.time()
	case was.Reason != reasonTimedOut && was.Reason != reasonAvailable:
		at := was.LastUpdateTime.Add(time.Duration(*deadline) * time.Second)
		if r.s.Now.Before(at) {
			r.out.at(at)
		} else {
			progressing(corev1.ConditionFalse, reasonTimedOut, "ReplicaSet %q has timed out progressing.", name)
		}
	}
}

// moved says whether the rollout is further than the status says that was written last.
func (r *rollout) moved(status *appsv1.DeploymentStatus) bool {
	old := r.d.Status
	return status.UpdatedReplicas > old.UpdatedReplicas || status.Replicas-status.UpdatedReplicas < old.Replicas-old.UpdatedReplicas ||
		status.ReadyReplicas > old.ReadyReplicas || status.AvailableReplicas > old.AvailableReplicas
}

func progress(status *appsv1.DeploymentStatus) *appsv1.DeploymentCondition {
	for i := range status.Conditions {
		if status.Conditions[i].Type == appsv1.DeploymentProgressing {
			return &status.Conditions[i]
		}
	}
	return nil
}

// set writes a condition. One that changes comes last; its time of transition is that of its
// status.
func (r *rollout) set(status *appsv1.DeploymentStatus, of appsv1.DeploymentConditionType, is corev1.ConditionStatus, reason, message string) {
	now := r.s.time()
	next := appsv1.DeploymentCondition{Type: of, Status: is, Reason: reason, Message: message, LastUpdateTime: now, LastTransitionTime: now}
	for _, c := range status.Conditions {
		if c.Type != of {
			continue
		}
		if c.Status == is && c.Reason == reason {
			return
		}
		if c.Status == is {
			next.LastTransitionTime = c.LastTransitionTime
		}
	}
	unset(status, of)
	status.Conditions = append(status.Conditions, next)
}

// unset takes a condition away.
func unset(status *appsv1.DeploymentStatus, of appsv1.DeploymentConditionType) {
	status.Conditions = slices.DeleteFunc(status.Conditions, func(c appsv1.DeploymentCondition) bool { return c.Type == of })
}
