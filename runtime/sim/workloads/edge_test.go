package workloads_test

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/starling-operator/starling/runtime/sim/workloads"
)

func TestNamespacesGoWithAllThatIsInThem(t *testing.T) {
	c := newCluster(t, workloads.Options{CompletesAfter: time.Minute})
	c.in = "shop"
	c.apply(fmt.Sprintf(web, 2, "{}", 1) + "\n---\n" + fmt.Sprintf(db, 2, "OrderedReady", 0) + "\n---\n" + jobNamed("j", "parallelism: 2", "Never") + "\n---\n" + fmt.Sprintf(service, "None"))
	c.advance(10 * time.Second)
	c.delete("v1 Namespace", "shop")
	c.advance(time.Hour)
	for _, kind := range []string{"v1 Pod", "v1 PersistentVolumeClaim", "v1 PersistentVolume", "discovery.k8s.io/v1 EndpointSlice", "apps/v1 ControllerRevision"} {
		if left := list[corev1.Pod](c, kind); len(left) > 0 {
			t.Errorf("%d objects of %s are left, such as %s", len(left), kind, left[0].Name)
		}
	}
}

func TestPodsThatLeaveTheirOwner(t *testing.T) {
	c := newCluster(t, workloads.Options{})
	c.apply(fmt.Sprintf(web, 1, "{}", 1))
	lost := only[corev1.Pod](c, "v1 Pod").Name
	c.patch("v1 Pod", lost, `{metadata: {labels: {app: debug}}}`)
	for _, p := range list[corev1.Pod](c, "v1 Pod") {
		if owners := len(p.OwnerReferences); (p.Name == lost) != (owners == 0) {
			t.Errorf("%s has %d owners", p.Name, owners)
		}
	}
	c.expect("another one has come", "1 Pods, 1 updated, 1 ready, 1 available, True MinimumReplicasAvailable, True NewReplicaSetAvailable\nweb:1 has 1, revision 1", c.rolled()...)
	c.patch("v1 Pod", lost, `{metadata: {labels: {app: web}}}`)
	if p := only[corev1.Pod](c, "v1 Pod"); len(p.OwnerReferences) != 1 {
		t.Errorf("%s is adopted by nobody", p.Name)
	}
}

func TestTaintsOfNodes(t *testing.T) {
	c := newCluster(t, workloads.Options{})
	c.apply(node("a", "{disk: fast}") + "\n---\n" + node("b", "{disk: fast}") + "\n---\n" + agent + "\n---\n" + fmt.Sprintf(web, 2, "{}", 1))
	c.expect("two Nodes", "a has 2, 2 ready\nb has 2, 2 ready", c.placed()...)
	c.patch("v1 Node", "b", `{spec: {taints: [{key: x, effect: NoSchedule}]}}`)
	c.expect("nobody has to go", "a has 2, 2 ready\nb has 2, 2 ready", c.placed()...)
	if s := only[appsv1.DaemonSet](c, "apps/v1 DaemonSet").Status; s.DesiredNumberScheduled != 1 || s.NumberMisscheduled != 1 {
		t.Errorf("%+v", s)
	}
	c.patch("v1 Node", "b", `{spec: {taints: [{key: x, effect: NoExecute}]}}`)
	c.expect("all have to go", "a has 3, 3 ready", c.placed()...)
	c.patch(deployment, "web", `{spec: {template: {spec: {tolerations: [{key: x, operator: Exists}]}}}}`)
	c.expect("those come back that tolerate it", "a has 1, 1 ready\nb has 2, 2 ready", c.placed()...)
}

func TestSchedulesThatWereMissed(t *testing.T) {
	const nightly = `
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: "*/10 * * * *"
  suspend: %t
  startingDeadlineSeconds: %s
  jobTemplate:
    spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: "job:1"}]}}}
`
	for _, test := range []struct {
		deadline string
		jobs     string
	}{{"null", "nightly-29453820"}, {"60", ""}, {"400", "nightly-29453820"}} {
		c := newCluster(t, workloads.Options{})
		c.apply(fmt.Sprintf(nightly, true, test.deadline))
		c.advance(65 * time.Minute)
		c.patch("batch/v1 CronJob", "nightly", `{spec: {suspend: false}}`)
		var got []string
		for _, j := range list[corev1.Pod](c, job) {
			got = append(got, j.Name)
		}
		c.expect("startingDeadlineSeconds: "+test.deadline, test.jobs, got...)
	}
}
