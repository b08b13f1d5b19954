package workloads

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/starling-operator/starling/runtime/schedule"
)

// cronJobs makes the Jobs that fall due, and deletes those beyond the histories.
func cronJobs(s *State) (out Result) {
	for _, cj := range s.CronJobs {
		if cj.DeletionTimestamp != nil {
			continue
		}
		c := &cron{s: s, cj: cj, jobs: controlledBy(s.Jobs, cj), status: *cj.Status.DeepCopy(), out: &out}
		c.look()
		c.tick()
		if !equality.Semantic.DeepEqual(c.status, cj.Status) {
			changed := cj.DeepCopy()
			changed.Status = c.status
			out.updateStatus(changed)
		}
		c.trim(cj.Spec.SuccessfulJobsHistoryLimit, 3, batchv1.JobComplete)
		c.trim(cj.Spec.FailedJobsHistoryLimit, 1, batchv1.JobFailed)
	}
	return out
}

// cron is a CronJob with its Jobs.
type cron struct {
	s      *State
	cj     *batchv1.CronJob
	jobs   []*batchv1.Job
	status batchv1.CronJobStatus
	out    *Result
}

// look writes down which Jobs run, and when the last one succeeded.
func (c *cron) look() {
	c.status.Active = nil
	for _, job := range c.jobs {
		if ending(job) == nil {
			c.status.Active = append(c.status.Active, c.reference(job))
		}
		if at := job.Status.CompletionTime; at != nil && (c.status.LastSuccessfulTime == nil || c.status.LastSuccessfulTime.Before(at)) {
			c.status.LastSuccessfulTime = at.DeepCopy()
		}
	}
}

// reference is a Job as the status names it; it names the version in which the Job was seen
// first.
func (c *cron) reference(job *batchv1.Job) corev1.ObjectReference {
	for _, ref := range c.cj.Status.Active {
		if ref.UID == job.UID {
			return ref
		}
	}
	return corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: job.Namespace, Name: job.Name, UID: job.UID, ResourceVersion: job.ResourceVersion}
}

// tick makes the Job of the last time that fell due, if none was made of it.
func (c *cron) tick() {
	if ptr.Deref(c.cj.Spec.Suspend, false) {
		return
	}
	at, next := c.due()
	c.out.at(next)
	if at.IsZero() {
		return
	}
	if limit := c.cj.Spec.StartingDeadlineSeconds; limit != nil && c.s.Now.Sub(at) > time.Duration(*limit)*time.Second {
		return
	}
	switch {
	case len(c.status.Active) == 0:
	case c.cj.Spec.ConcurrencyPolicy == batchv1.ForbidConcurrent:
		return // this one is made when the other has ended
	case c.cj.Spec.ConcurrencyPolicy == batchv1.ReplaceConcurrent:
		for _, job := range c.jobs {
			if ending(job) == nil && job.DeletionTimestamp == nil {
				c.out.delete(job)
			}
		}
	}
	name := fmt.Sprintf("%s-%d", c.cj.Name, at.Unix()/60)
	if find(c.s.Jobs, c.cj.Namespace, name) == nil {
		c.out.create(c.job(name, at))
	}
	c.status.LastScheduleTime = new(metav1.NewTime(at))
}

// due is the last time that has fallen due since the last Job, zero for none, and the next
// one. A schedule that cannot be read never falls due.
func (c *cron) due() (at, next time.Time) {
	text, err := schedule.Parse(c.cj.Spec.Schedule)
	if err == nil {
		text, err = text.In(ptr.Deref(c.cj.Spec.TimeZone, "UTC"))
	}
	if err != nil {
		return at, next
	}
	since := c.cj.CreationTimestamp.Time
	if c.status.LastScheduleTime != nil {
		since = c.status.LastScheduleTime.Time
	}
	if limit := c.cj.Spec.StartingDeadlineSeconds; limit != nil {
		if from := c.s.Now.Add(-time.Duration(*limit) * time.Second); from.After(since) {
			since = from
		}
	}
	for next = text.Next(since); !next.IsZero() && !next.After(c.s.Now); next = text.Next(next) {
		at = next
	}
	return at, next
}

// job is the one of a time.
func (c *cron) job(name string, at time.Time) *batchv1.Job {
	t := c.cj.Spec.JobTemplate.DeepCopy()
	job := &batchv1.Job{TypeMeta: typeMeta(kindJob), ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.cj.Namespace, Labels: t.Labels}, Spec: t.Spec}
	zone, err := time.LoadLocation(ptr.Deref(c.cj.Spec.TimeZone, "UTC"))
	if err != nil {
		zone = time.UTC
	}
	job.Annotations = with(t.Annotations, batchv1.CronJobScheduledTimestampAnnotation, at.In(zone).Format(time.RFC3339))
	job.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(c.cj, kindCronJob)}
	return job
}

// trim deletes the oldest Jobs with an end, beyond a limit.
func (c *cron) trim(limit *int32, otherwise int32, of batchv1.JobConditionType) {
	var list []*batchv1.Job
	for _, job := range c.jobs {
		if jobCondition(&job.Status, of) != nil && job.DeletionTimestamp == nil {
			list = append(list, job)
		}
	}
	slices.SortStableFunc(list, func(a, b *batchv1.Job) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	for _, job := range list[:max(0, len(list)-int(ptr.Deref(limit, otherwise)))] {
		c.out.delete(job)
	}
}
