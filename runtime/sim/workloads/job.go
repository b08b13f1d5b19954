package workloads

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
)

const (
	// A Job makes its next Pod firstBackOff after one has failed, then after twice as long
	// each time, at most lastBackOff.
	firstBackOff = 10 * time.Second
	lastBackOff  = 10 * time.Minute
)

// batch is a Job with its Pods.
type batch struct {
	s      *State
	job    *batchv1.Job
	pods   []*corev1.Pod
	active []*corev1.Pod
	status batchv1.JobStatus
	out    *Result
}

// jobs has each Job go on by one step.
func jobs(s *State) (out Result) {
	for _, job := range s.Jobs {
		b := &batch{s: s, job: job, pods: controlledBy(s.Pods, job), status: *job.Status.DeepCopy(), out: &out}
		b.active = active(b.pods)
		if job.DeletionTimestamp != nil || ptr.Deref(job.Spec.ManagedBy, batchv1.JobControllerName) != batchv1.JobControllerName {
			continue
		}
		if end := ending(job); end != nil {
			b.expire(end.LastTransitionTime.Time)
			continue
		}
		b.step()
	}
	out.letGo(s)
	return out
}

// letGo takes the finalizer off Pods whose Job is gone, or is deleted, or has ended: their
// ends need not be counted any more.
func (r *Result) letGo(s *State) {
	for _, p := range s.Pods {
		if !slices.Contains(p.Finalizers, batchv1.JobTrackingFinalizer) {
			continue
		}
		held := false
		for _, job := range s.Jobs {
			held = held || len(controlledBy([]*corev1.Pod{p}, job)) > 0 && job.DeletionTimestamp == nil && ending(job) == nil
		}
		if !held {
			r.update(uncounted(p))
		}
	}
}

// uncounted is a Pod without the finalizer of Jobs.
func uncounted(p *corev1.Pod) *corev1.Pod {
	p = p.DeepCopy()
	p.Finalizers = slices.DeleteFunc(p.Finalizers, func(f string) bool { return f == batchv1.JobTrackingFinalizer })
	return p
}

func jobCondition(status *batchv1.JobStatus, of batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range status.Conditions {
		if status.Conditions[i].Type == of && status.Conditions[i].Status == corev1.ConditionTrue {
			return &status.Conditions[i]
		}
	}
	return nil
}

// ending is the condition of a Job that has ended, or nil.
func ending(job *batchv1.Job) *batchv1.JobCondition {
	return cmp.Or(jobCondition(&job.Status, batchv1.JobComplete), jobCondition(&job.Status, batchv1.JobFailed))
}

// expire deletes a Job that is to stay for a time only after its end.
func (b *batch) expire(ended time.Time) {
	ttl := b.job.Spec.TTLSecondsAfterFinished
	if ttl == nil {
		return
	}
	at := ended.Add(time.Duration(*ttl) * time.Second)
	if b.s.Now.Before(at) {
		b.out.at(at)
	} else {
		b.out.delete(b.job)
	}
}

// step counts Pods that have ended, then ends the Job or makes the Pods that it lacks.
func (b *batch) step() {
	b.count()
	suspended := ptr.Deref(b.job.Spec.Suspend, false)
	if b.status.StartTime == nil && !suspended {
		b.status.StartTime = new(b.s.time())
	}
	reason, message := b.failure()
	switch {
	case jobCondition(&b.status, batchv1.JobSuccessCriteriaMet) != nil:
		b.complete()
	case jobCondition(&b.status, batchv1.JobFailureTarget) != nil:
		c := jobCondition(&b.status, batchv1.JobFailureTarget)
		b.fail(c.Reason, c.Message)
	case reason != "":
		b.fail(reason, message)
	case b.done():
		b.complete()
	case suspended:
		b.takeAway(b.active)
		b.set(batchv1.JobSuspended, corev1.ConditionTrue, "JobSuspended", "Job suspended")
		b.status.StartTime = nil
	default:
		if jobCondition(&b.status, batchv1.JobSuspended) != nil {
			b.set(batchv1.JobSuspended, corev1.ConditionFalse, "JobResumed", "Job resumed")
		}
		b.keepPods()
	}
	b.writeStatus()
}

// count adds what has ended since the last step, and lets those Pods go.
func (b *batch) count() {
	for _, p := range b.pods {
		ended := finished(p) || p.DeletionTimestamp != nil && !b.replacesFailed()
		if !ended || !slices.Contains(p.Finalizers, batchv1.JobTrackingFinalizer) {
			continue
		}
		if p.Status.Phase != corev1.PodSucceeded {
			b.status.Failed++
		} else if !b.indexed() {
			b.status.Succeeded++
		}
		b.out.update(uncounted(p))
	}
	if b.indexed() {
		done := b.indexes(corev1.PodSucceeded)
		b.status.CompletedIndexes, b.status.Succeeded = intervals(done), int32(len(done))
	}
	c := b.out.count(b.active, 0, b.s.Now)
	b.status.Active, b.status.Ready, b.status.Terminating = c.all, &c.ready, new(terminating(b.pods))
	b.status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
}

// replacesFailed says whether new Pods come only when others have failed for good, and not
// while they still stop.
func (b *batch) replacesFailed() bool {
	return ptr.Deref(b.job.Spec.PodReplacementPolicy, batchv1.TerminatingOrFailed) == batchv1.Failed
}

// restarted is how often containers were restarted in place of new Pods.
func (b *batch) restarted() (n int32) {
	if b.job.Spec.Template.Spec.RestartPolicy != corev1.RestartPolicyOnFailure {
		return 0
	}
	for _, p := range b.pods {
		if finished(p) {
			continue
		}
		for _, c := range p.Status.ContainerStatuses {
			n += c.RestartCount
		}
	}
	return n
}

// failure says why the Job fails now; "" for one that does not.
func (b *batch) failure() (reason, message string) {
	limit := ptr.Deref(b.job.Spec.BackoffLimit, 6)
	if b.status.Failed > limit || b.restarted() >= max(1, limit) {
		return batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit"
	}
	if limit := b.job.Spec.ActiveDeadlineSeconds; limit != nil && b.status.StartTime != nil && !ptr.Deref(b.job.Spec.Suspend, false) {
		at := b.status.StartTime.Add(time.Duration(*limit) * time.Second)
		if !b.s.Now.Before(at) {
			return batchv1.JobReasonDeadlineExceeded, "Job was active longer than specified deadline"
		}
		b.out.at(at)
	}
	return "", ""
}

// done says whether enough Pods have succeeded.
func (b *batch) done() bool {
	if b.job.Spec.Completions != nil {
		return b.status.Succeeded >= *b.job.Spec.Completions
	}
	return b.status.Succeeded > 0 && len(b.active) == 0
}

// complete ends the Job when no Pod of it is left.
func (b *batch) complete() {
	if len(b.active) > 0 {
		b.takeAway(b.active)
		return
	}
	message := "Reached expected number of succeeded pods"
	b.set(batchv1.JobSuccessCriteriaMet, corev1.ConditionTrue, batchv1.JobReasonCompletionsReached, message)
	if *b.status.Terminating == 0 {
		b.set(batchv1.JobComplete, corev1.ConditionTrue, batchv1.JobReasonCompletionsReached, message)
		b.status.CompletionTime = new(b.s.time())
	}
}

// fail ends the Job when no Pod of it is left.
func (b *batch) fail(reason, message string) {
	b.set(batchv1.JobFailureTarget, corev1.ConditionTrue, reason, message)
	for _, p := range b.active {
		b.out.delete(p) // it counts as failed
	}
	if len(b.active) == 0 && *b.status.Terminating == 0 {
		b.set(batchv1.JobFailed, corev1.ConditionTrue, reason, message)
	}
}

// takeAway deletes Pods that are not needed now; they do not count.
func (b *batch) takeAway(pods []*corev1.Pod) {
	for _, p := range pods {
		b.out.update(uncounted(p))
		b.out.delete(p)
	}
}

func (b *batch) set(of batchv1.JobConditionType, is corev1.ConditionStatus, reason, message string) {
	now := b.s.time()
	for i := range b.status.Conditions {
		c := &b.status.Conditions[i]
		if c.Type != of {
			continue
		}
		if c.Status != is {
			c.Status, c.LastTransitionTime, c.LastProbeTime = is, now, now
		}
		c.Reason, c.Message = reason, message
		return
	}
	b.status.Conditions = append(b.status.Conditions, batchv1.JobCondition{Type: of, Status: is, Reason: reason, Message: message, LastProbeTime: now, LastTransitionTime: now})
}

func (b *batch) writeStatus() {
	if !equality.Semantic.DeepEqual(b.status, b.job.Status) {
		changed := b.job.DeepCopy()
		changed.Status = b.status
		b.out.updateStatus(changed)
	}
}

// keepPods makes the Pods that are missing, and deletes those beyond the parallelism.
func (b *batch) keepPods() {
	want := int(ptr.Deref(b.job.Spec.Parallelism, 1))
	if b.job.Spec.Completions != nil {
		want = max(0, min(want, int(*b.job.Spec.Completions-b.status.Succeeded)))
	} else if b.status.Succeeded > 0 {
		want = min(want, len(b.active)) // a success of one is enough: no new ones
	}
	if len(b.active) > want {
		byLoss(b.active)
		b.takeAway(b.active[:len(b.active)-want])
		return
	}
	if b.replacesFailed() {
		want -= int(*b.status.Terminating)
	}
	if len(b.active) >= want {
		return
	}
	if at := b.backOff(); b.s.Now.Before(at) {
		b.out.at(at)
		return
	}
	for _, index := range b.missing(want - len(b.active)) {
		b.out.create(b.pod(index))
	}
}

// backOff is when the next Pod may come: later after each failure since the last success.
func (b *batch) backOff() time.Time {
	var succeeded, failed time.Time
	for _, p := range b.pods {
		if at := endedAt(p); p.Status.Phase == corev1.PodSucceeded && at.After(succeeded) {
			succeeded = at
		}
	}
	wait := time.Duration(0)
	for _, p := range b.pods {
		at := endedAt(p)
		if p.Status.Phase != corev1.PodFailed || !at.After(succeeded) {
			continue
		}
		wait = min(max(2*wait, firstBackOff), lastBackOff)
		if at.After(failed) {
			failed = at
		}
	}
	if failed.IsZero() {
		return failed
	}
	return failed.Add(wait)
}

// endedAt is when the containers of a Pod ended; zero while they run.
func endedAt(p *corev1.Pod) (at time.Time) {
	for _, c := range p.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil && t.FinishedAt.After(at) {
			at = t.FinishedAt.Time
		}
	}
	return at
}

// pod is the next one; its index is -1 unless the Job is indexed.
func (b *batch) pod(index int) *corev1.Pod {
	p := newPod(&b.job.Spec.Template, b.job, kindJob)
	p.Finalizers = append(p.Finalizers, batchv1.JobTrackingFinalizer)
	if index < 0 {
		return p
	}
	text := strconv.Itoa(index)
	p.GenerateName = b.job.Name + "-" + text + "-"
	p.Labels = with(p.Labels, batchv1.JobCompletionIndexAnnotation, text)
	p.Annotations = with(p.Annotations, batchv1.JobCompletionIndexAnnotation, text)
	p.Spec.Hostname = b.job.Name + "-" + text
	for i := range p.Spec.Containers {
		p.Spec.Containers[i].Env = append(p.Spec.Containers[i].Env, corev1.EnvVar{Name: "JOB_COMPLETION_INDEX", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['" + batchv1.JobCompletionIndexAnnotation + "']"},
		}})
	}
	return p
}
