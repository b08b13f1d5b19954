package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

// podSeen does what a kubelet would in the end: a new pod runs, one that is being
// deleted goes.
func (f *fakeNodes) podSeen(ctx context.Context, pod *corev1.Pod) {
	pods := f.client.CoreV1().Pods(pod.Namespace)
	var err error
	switch {
	case pod.DeletionTimestamp != nil:
		err = pods.Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: ptr.To(int64(0)),
			Preconditions:      &metav1.Preconditions{UID: &pod.UID},
		})
	case pod.Status.Phase == corev1.PodPending:
		pod = pod.DeepCopy()
		start(pod, metav1.Now())
		_, err = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	}
	// After a conflict the newer pod comes as an event.
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && ctx.Err() == nil {
		klog.ErrorS(err, "play a fake pod", "pod", klog.KObj(pod))
	}
}

// start fills in the status of a pod that runs from now on, or, when it is not
// to be restarted for ever (Jobs, Helm hooks), has already succeeded.
func start(pod *corev1.Pod, now metav1.Time) {
	host, ip := nodeIP(pod.Spec.NodeName), podIP(pod.UID)
	if pod.Spec.HostNetwork {
		ip = host
	}
	s := &pod.Status
	s.HostIP, s.HostIPs = host, []corev1.HostIP{{IP: host}}
	s.PodIP, s.PodIPs = ip, []corev1.PodIP{{IP: ip}}
	s.StartTime = &now

	done := pod.Spec.RestartPolicy != corev1.RestartPolicyAlways
	s.InitContainerStatuses, s.ContainerStatuses = nil, nil
	for _, c := range pod.Spec.InitContainers {
		sidecar := c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		s.InitContainerStatuses = append(s.InitContainerStatuses, containerStatus(pod, c, done || !sidecar, now))
	}
	for _, c := range pod.Spec.Containers {
		s.ContainerStatuses = append(s.ContainerStatuses, containerStatus(pod, c, done, now))
	}
	s.Phase = corev1.PodRunning
	running := corev1.ConditionTrue
	if done {
		s.Phase, running = corev1.PodSucceeded, corev1.ConditionFalse
	}
	for _, c := range []corev1.PodCondition{
		{Type: corev1.PodReadyToStartContainers, Status: running},
		{Type: corev1.PodInitialized, Status: corev1.ConditionTrue},
		{Type: corev1.ContainersReady, Status: running},
		{Type: corev1.PodReady, Status: running},
	} {
		c.LastTransitionTime = now
		s.Conditions = append(s.Conditions, c)
	}
}

func containerStatus(pod *corev1.Pod, c corev1.Container, done bool, now metav1.Time) corev1.ContainerStatus {
	s := corev1.ContainerStatus{
		Name: c.Name, Image: c.Image, ImageID: "fake://" + c.Image,
		ContainerID: "fake://" + string(pod.UID) + "/" + c.Name,
		Ready:       true, Started: ptr.To(!done),
	}
	if done {
		s.State.Terminated = &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: now, FinishedAt: now}
	} else {
		s.State.Running = &corev1.ContainerStateRunning{StartedAt: now}
	}
	return s
}
