package workloads

import (
	"crypto/sha256"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// A container that fails is restarted after firstRestart, then after twice as long each
	// time, at most lastRestart.
	firstRestart = 10 * time.Second
	lastRestart  = 5 * time.Minute
)

// kubelets run the Pods that have a place, and end those that are deleted though a finalizer
// holds them: they write their statuses.
func kubelets(s *State) (out Result) {
	for _, p := range s.Pods {
		var status *corev1.PodStatus
		switch {
		case finished(p):
			continue
		case p.DeletionTimestamp != nil:
			status = s.killed(p)
		case s.runs(p):
			var next time.Time
			status, next = s.podStatus(p)
			out.at(next)
		default:
			continue
		}
		if !equality.Semantic.DeepEqual(*status, p.Status) {
			changed := p.DeepCopy()
			changed.Status = *status
			out.updateStatus(changed)
		}
	}
	return out
}

// runs says whether a Pod has been scheduled, and its Node is there and ready. Pods of the time
// before there were Nodes run on without one.
func (s *State) runs(p *corev1.Pod) bool {
	if c := conditionOf(p, corev1.PodScheduled); c == nil || c.Status != corev1.ConditionTrue {
		return false
	}
	n := find(s.Nodes, "", p.Spec.NodeName)
	return s.Nodeless || p.Spec.NodeName == "" || n != nil && nodeReady(n)
}

// podStatus is the status that a Pod has now, and when it changes by time alone.
func (s *State) podStatus(p *corev1.Pod) (*corev1.PodStatus, time.Time) {
	status := p.Status.DeepCopy()
	if status.StartTime == nil {
		now := s.time()
		status.StartTime = &now
	}
	address := podIP(p)
	status.PodIP, status.PodIPs = address, []corev1.PodIP{{IP: address}}
	if n := find(s.Nodes, "", p.Spec.NodeName); n != nil {
		if host := nodeIP(n); host != "" {
			status.HostIP, status.HostIPs = host, []corev1.HostIP{{IP: host}}
		}
	}
	restarts, restartAt := restart(status)
	if s.Now.Before(restartAt) {
		return status, restartAt // whatever will become of it
	}
	since := startedAt(status, s.time())
	if !restartAt.IsZero() {
		restarts++
	}
	code, failing := s.Failing[p.UID]
	forever := p.Spec.RestartPolicy == corev1.RestartPolicyAlways || p.Spec.RestartPolicy == ""
	readyAt, endsAt := since.Add(s.Options.ReadyAfter), since.Add(s.Options.CompletesAfter)
	switch {
	case forever && failing:
		return s.crash(p, status, since, code, restarts)
	case forever, s.Now.Before(endsAt):
	case failing && p.Spec.RestartPolicy == corev1.RestartPolicyOnFailure:
		return s.crash(p, status, since, code, restarts)
	case failing:
		s.end(p, status, corev1.PodFailed, terminated(since, s.time(), code), restarts)
		return status, time.Time{}
	default:
		s.end(p, status, corev1.PodSucceeded, terminated(since, s.time(), 0), restarts)
		return status, time.Time{}
	}
	s.containers(p, status, running(since), restarts)
	status.Phase = corev1.PodRunning
	is, next := !s.Now.Before(readyAt), time.Time{}
	if !is {
		next = readyAt
	}
	if !forever {
		next = Earlier(next, endsAt)
	}
	s.setReadiness(status, is)
	return status, next
}

// killed is the status of a Pod whose containers were stopped.
func (s *State) killed(p *corev1.Pod) *corev1.PodStatus {
	status := p.Status.DeepCopy()
	restarts, _ := restart(status)
	s.end(p, status, corev1.PodFailed, terminated(startedAt(status, s.time()), s.time(), 137), restarts)
	return status
}

// crash has the containers end with a code, and wait for their next restart.
func (s *State) crash(p *corev1.Pod, status *corev1.PodStatus, since metav1.Time, code, restarts int32) (*corev1.PodStatus, time.Time) {
	ended := terminated(since, s.time(), code)
	status.Phase = corev1.PodRunning
	s.containers(p, status, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off restarting failed container"}}, restarts)
	for i := range status.ContainerStatuses {
		status.ContainerStatuses[i].LastTerminationState = *ended.DeepCopy()
	}
	s.setReadiness(status, false)
	_, next := restart(status)
	return status, next
}

// end has all containers of a Pod end for good.
func (s *State) end(p *corev1.Pod, status *corev1.PodStatus, phase corev1.PodPhase, state corev1.ContainerState, restarts int32) {
	s.containers(p, status, state, restarts)
	status.Phase = phase
	s.setReadiness(status, false)
	for i := range status.Conditions {
		if c := &status.Conditions[i]; phase == corev1.PodSucceeded && c.Type != corev1.PodScheduled {
			c.Reason = "PodCompleted"
		}
	}
}

// containers gives all containers of a Pod the same state.
func (s *State) containers(p *corev1.Pod, status *corev1.PodStatus, state corev1.ContainerState, restarts int32) {
	old := status.ContainerStatuses
	status.ContainerStatuses = nil
	for i, c := range p.Spec.Containers {
		one := corev1.ContainerStatus{Name: c.Name, Image: c.Image, ImageID: "simulated://" + c.Image, State: *state.DeepCopy(), RestartCount: restarts, Started: new(state.Running != nil)}
		if i < len(old) {
			one.LastTerminationState = old[i].LastTerminationState
		}
		status.ContainerStatuses = append(status.ContainerStatuses, one)
	}
}

// setReadiness writes the conditions, and whether containers are ready.
func (s *State) setReadiness(status *corev1.PodStatus, is bool) {
	for i := range status.ContainerStatuses {
		status.ContainerStatuses[i].Ready = is
	}
	text, reason := corev1.ConditionFalse, "ContainersNotReady"
	if is {
		text, reason = corev1.ConditionTrue, ""
	}
	s.setPodCondition(status, corev1.PodInitialized, corev1.ConditionTrue, "")
	s.setPodCondition(status, corev1.ContainersReady, text, reason)
	s.setPodCondition(status, corev1.PodReady, text, reason)
}

func (s *State) setPodCondition(status *corev1.PodStatus, of corev1.PodConditionType, is corev1.ConditionStatus, reason string) {
	for i := range status.Conditions {
		c := &status.Conditions[i]
		if c.Type != of {
			continue
		}
		if c.Status != is {
			c.Status, c.LastTransitionTime = is, s.time()
		}
		c.Reason = reason
		return
	}
	status.Conditions = append(status.Conditions, corev1.PodCondition{Type: of, Status: is, Reason: reason, LastTransitionTime: s.time()})
}

func running(since metav1.Time) corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: since}}
}

func terminated(from, to metav1.Time, code int32) corev1.ContainerState {
	reason := "Completed"
	if code != 0 {
		reason = "Error"
	}
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: reason, ExitCode: code, StartedAt: from, FinishedAt: to}}
}

// startedAt is when the containers of a Pod began to run, or a time instead.
func startedAt(status *corev1.PodStatus, instead metav1.Time) metav1.Time {
	for _, c := range status.ContainerStatuses {
		if c.State.Running != nil {
			return c.State.Running.StartedAt
		}
	}
	return instead
}

// backOff is when containers that wait for a restart have ended; zero: they do not wait.
func backOff(status *corev1.PodStatus) time.Time {
	for _, c := range status.ContainerStatuses {
		if last := c.LastTerminationState.Terminated; c.State.Waiting != nil && last != nil {
			return last.FinishedAt.Time
		}
	}
	return time.Time{}
}

// restart is how often containers were restarted, and when they are the next time; zero
// for those that do not wait for it. After it they count once more.
func restart(status *corev1.PodStatus) (count int32, at time.Time) {
	if len(status.ContainerStatuses) > 0 {
		count = status.ContainerStatuses[0].RestartCount
	}
	ended := backOff(status)
	if ended.IsZero() {
		return count, time.Time{}
	}
	wait := firstRestart
	for range min(count, 8) {
		wait = min(2*wait, lastRestart)
	}
	return count, ended.Add(wait)
}

// podIP makes an address up, of the Pod's uid; nothing is sent to it.
func podIP(p *corev1.Pod) string {
	sum := sha256.Sum256([]byte(p.UID))
	return fmt.Sprintf("10.%d.%d.%d", 128|sum[0]&0x7f, sum[1], sum[2])
}
