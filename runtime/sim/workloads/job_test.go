package workloads_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/starling-operator/starling/runtime/sim/workloads"
)

const job = "batch/v1 Job"

// jobNamed is a Job with what a test says of its spec, and how its Pods are restarted.
func jobNamed(name, spec, restart string) string {
	return fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: %s}
spec:
  %s
  template:
    spec: {restartPolicy: %s, containers: [{name: main, image: "job:1"}]}
`, name, strings.ReplaceAll(spec, "; ", "\n  "), restart)
}

// jobs tells of each Job how many Pods run, have succeeded and have failed, and how it
// ended.
func (c *cluster) jobs() (out []string) {
	c.t.Helper()
	for _, j := range list[batchv1.Job](c, job) {
		line := fmt.Sprintf("%s: %d active, %d succeeded, %d failed", j.Name, j.Status.Active, j.Status.Succeeded, j.Status.Failed)
		if j.Status.CompletedIndexes != "" {
			line += ", indexes " + j.Status.CompletedIndexes
		}
		for _, one := range j.Status.Conditions {
			if (one.Type == batchv1.JobComplete || one.Type == batchv1.JobFailed) && one.Status == corev1.ConditionTrue {
				line += fmt.Sprintf(", %s: %s", one.Type, one.Reason)
			}
		}
		out = append(out, line)
	}
	return out
}

func TestJobs(t *testing.T) {
	type step struct {
		after time.Duration
		want  string
	}
	for _, test := range []struct {
		name, spec, restart string
		times               int // how often a Pod fails; -1: always
		steps               []step
	}{
		{"three, two at a time", "completions: 3; parallelism: 2", "Never", 0, []step{
			{0, "j: 2 active, 0 succeeded, 0 failed"},
			{9 * time.Second, "j: 2 active, 0 succeeded, 0 failed"},
			{time.Second, "j: 1 active, 2 succeeded, 0 failed"},
			{10 * time.Second, "j: 0 active, 3 succeeded, 0 failed, Complete: CompletionsReached"},
		}},
		{"with indexes", "completions: 4; parallelism: 3; completionMode: Indexed", "Never", 0, []step{
			{10 * time.Second, "j: 1 active, 3 succeeded, 0 failed, indexes 0-2"},
			{10 * time.Second, "j: 0 active, 4 succeeded, 0 failed, indexes 0-3, Complete: CompletionsReached"},
		}},
		{"one failure, then a success", "backoffLimit: 2", "Never", 1, []step{
			{10 * time.Second, "j: 0 active, 0 succeeded, 1 failed"}, // it backs off
			{10 * time.Second, "j: 1 active, 0 succeeded, 1 failed"},
			{10 * time.Second, "j: 0 active, 1 succeeded, 1 failed, Complete: CompletionsReached"},
		}},
		{"only failures", "backoffLimit: 1", "Never", -1, []step{
			{10 * time.Second, "j: 0 active, 0 succeeded, 1 failed"},
			{20 * time.Second, "j: 0 active, 0 succeeded, 2 failed, Failed: BackoffLimitExceeded"},
			{time.Hour, "j: 0 active, 0 succeeded, 2 failed, Failed: BackoffLimitExceeded"},
		}},
		{"too late", "activeDeadlineSeconds: 5", "Never", 0, []step{
			{4 * time.Second, "j: 1 active, 0 succeeded, 0 failed"},
			{time.Second, "j: 0 active, 0 succeeded, 1 failed, Failed: DeadlineExceeded"},
		}},
		{"restarted in its place", "backoffLimit: 2", "OnFailure", 1, []step{
			{10 * time.Second, "j: 1 active, 0 succeeded, 0 failed"},
			{20 * time.Second, "j: 0 active, 1 succeeded, 0 failed, Complete: CompletionsReached"},
		}},
		{"gone after a time", "ttlSecondsAfterFinished: 60", "Never", 0, []step{
			{10 * time.Second, "j: 0 active, 1 succeeded, 0 failed, Complete: CompletionsReached"},
			{time.Minute, ""},
		}},
		{"suspended", "suspend: true", "Never", 0, []step{{time.Hour, "j: 0 active, 0 succeeded, 0 failed"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCluster(t, workloads.Options{CompletesAfter: 10 * time.Second})
			if test.times != 0 {
				if err := c.mover.Failures.Add(workloads.Failure{Namespace: "default", Labels: "batch.kubernetes.io/job-name=j", Times: max(0, test.times)}); err != nil {
					t.Fatal(err)
				}
			}
			c.apply(jobNamed("j", test.spec, test.restart))
			for _, s := range test.steps {
				c.advance(s.after)
				c.expect(fmt.Sprintf("%s more", s.after), s.want, c.jobs()...)
			}
		})
	}
}

func TestJobsThatAreDeletedLeaveNothing(t *testing.T) {
	c := newCluster(t, workloads.Options{CompletesAfter: time.Minute})
	c.apply(jobNamed("j", "parallelism: 2; completions: 2", "Never"))
	c.delete(job, "j")
	if left := list[corev1.Pod](c, "v1 Pod"); len(left) > 0 {
		t.Errorf("%d Pods are left: %+v", len(left), left[0].ObjectMeta)
	}
}

func TestCronJobs(t *testing.T) {
	const cronJob = `
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: "*/10 * * * *"
  concurrencyPolicy: %s
  jobTemplate:
    spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: "job:1"}]}}}
`
	for _, test := range []struct {
		policy   string
		takes    time.Duration
		after    time.Duration
		jobs     int
		active   int
		lastName string
	}{
		{"Allow", time.Minute, 9 * time.Minute, 0, 0, ""},
		{"Allow", time.Minute, 10 * time.Minute, 1, 1, "nightly-29453770"},
		{"Allow", time.Minute, 65 * time.Minute, 3, 0, "nightly-29453820"}, // the history
		{"Allow", 25 * time.Minute, 31 * time.Minute, 3, 3, "nightly-29453790"},
		{"Forbid", 15 * time.Minute, 21 * time.Minute, 1, 1, "nightly-29453770"},
		{"Forbid", 15 * time.Minute, 26 * time.Minute, 2, 1, "nightly-29453780"},
		{"Replace", time.Hour, 21 * time.Minute, 1, 1, "nightly-29453780"},
	} {
		t.Run(fmt.Sprintf("%s, each %s, after %s", test.policy, test.takes, test.after), func(t *testing.T) {
			c := newCluster(t, workloads.Options{CompletesAfter: test.takes})
			c.apply(fmt.Sprintf(cronJob, test.policy))
			c.advance(test.after)
			jobs := list[batchv1.Job](c, job)
			cj := only[batchv1.CronJob](c, "batch/v1 CronJob")
			if len(jobs) != test.jobs || len(cj.Status.Active) != test.active {
				t.Fatalf("%v, %d active, want %d Jobs and %d active", c.jobs(), len(cj.Status.Active), test.jobs, test.active)
			}
			if len(jobs) > 0 && jobs[len(jobs)-1].Name != test.lastName {
				t.Errorf("the last one is %s, want %s", jobs[len(jobs)-1].Name, test.lastName)
			}
		})
	}
}
