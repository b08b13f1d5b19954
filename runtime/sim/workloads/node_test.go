package workloads_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/starling-operator/starling/runtime/sim/workloads"
)

const agent = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {nodeSelector: {disk: fast}, containers: [{name: agent, image: "agent:1"}]}
`

func node(name, labels string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Node\nmetadata: {name: %s, labels: %s}\n", name, labels)
}

// placed tells how many Pods each Node has, and how many of them are ready.
func (c *cluster) placed() (out []string) {
	c.t.Helper()
	for _, name := range []string{"", "a", "b", "c"} {
		all, ready := 0, 0
		for _, line := range list[corev1.Pod](c, "v1 Pod") {
			if line.Spec.NodeName != name {
				continue
			}
			all++
			for _, one := range line.Status.Conditions {
				if one.Type == corev1.PodReady && one.Status == corev1.ConditionTrue {
					ready++
				}
			}
		}
		if all > 0 {
			out = append(out, strings.TrimSpace(fmt.Sprintf("%s has %d, %d ready", name, all, ready)))
		}
	}
	return out
}

func TestDaemonSetsHaveAPodOnEachNodeThatFits(t *testing.T) {
	c := newCluster(t, workloads.Options{})
	c.apply(agent)
	c.expect("no Node", "", c.placed()...)
	c.apply(node("a", "{disk: fast}") + "\n---\n" + node("b", "{disk: slow}") + "\n---\n" + node("c", "{disk: fast}"))
	c.expect("three Nodes", "a has 1, 1 ready\nc has 1, 1 ready", c.placed()...)
	s := only[appsv1.DaemonSet](c, "apps/v1 DaemonSet").Status
	if got := fmt.Sprint(s.DesiredNumberScheduled, s.CurrentNumberScheduled, s.NumberReady, s.NumberAvailable, s.UpdatedNumberScheduled, s.NumberUnavailable, s.NumberMisscheduled); got != "2 2 2 2 2 0 0" {
		t.Errorf("counts: %s", got)
	}
	c.patch("v1 Node", "c", `{metadata: {labels: {disk: slow}}}`)
	c.expect("another label", "a has 1, 1 ready", c.placed()...)
	c.patch("v1 Node", "b", `{metadata: {labels: {disk: fast}}, spec: {unschedulable: true}}`)
	c.expect("Pods of DaemonSets come to Nodes that are cordoned", "a has 1, 1 ready\nb has 1, 1 ready", c.placed()...)
	c.delete("v1 Node", "a")
	c.expect("a Node that goes", "b has 1, 1 ready", c.placed()...)
}

func TestDaemonSetsReplaceOneAfterTheOther(t *testing.T) {
	c := newCluster(t, workloads.Options{ReadyAfter: 5 * time.Second})
	c.apply(node("a", "{disk: fast}") + "\n---\n" + node("b", "{disk: fast}") + "\n---\n" + agent)
	c.advance(5 * time.Second)
	c.patch("apps/v1 DaemonSet", "agent", `{spec: {template: {spec: {containers: [{name: agent, image: "agent:2"}]}}}}`)
	for _, want := range []int32{1, 2} {
		s := only[appsv1.DaemonSet](c, "apps/v1 DaemonSet").Status
		if s.UpdatedNumberScheduled != want || s.NumberAvailable != 1 {
			t.Errorf("%d are updated and %d available, want %d and 1", s.UpdatedNumberScheduled, s.NumberAvailable, want)
		}
		c.advance(5 * time.Second)
	}
	if s := only[appsv1.DaemonSet](c, "apps/v1 DaemonSet").Status; s.NumberAvailable != 2 || s.NumberUnavailable != 0 {
		t.Errorf("%+v", s)
	}
}

func TestNodesThatAreLost(t *testing.T) {
	c := newCluster(t, workloads.Options{})
	c.apply(node("a", "{}") + "\n---\n" + node("b", "{}") + "\n---\n" + fmt.Sprintf(web, 4, "{}", 1))
	c.expect("two Nodes", "a has 2, 2 ready\nb has 2, 2 ready", c.placed()...)

	c.patch("v1 Node", "b", fmt.Sprintf(`{status: {conditions: [{type: Ready, status: Unknown, lastTransitionTime: %q}]}}`, c.now.Format(time.RFC3339)))
	c.expect("one is not ready", "a has 2, 2 ready\nb has 2, 0 ready", c.placed()...)
	if s := only[appsv1.Deployment](c, deployment).Status; s.AvailableReplicas != 2 {
		t.Errorf("%d are available, want 2", s.AvailableReplicas)
	}
	c.advance(299 * time.Second)
	c.expect("299s later", "a has 2, 2 ready\nb has 2, 0 ready", c.placed()...)
	c.advance(time.Second)
	c.expect("300s later", "a has 4, 4 ready", c.placed()...)

	c.delete("v1 Node", "a")
	c.delete("v1 Node", "b")
	c.expect("no Node is left", "has 4, 0 ready", c.placed()...)
	for _, p := range list[corev1.Pod](c, "v1 Pod") {
		if p.Status.Phase != corev1.PodPending || p.Status.Conditions[0].Reason != corev1.PodReasonUnschedulable {
			t.Errorf("%s: %+v", p.Name, p.Status)
		}
	}
}

func TestNodesThatComeLater(t *testing.T) {
	c := newCluster(t, workloads.Options{ReadyAfter: 5 * time.Second})
	c.apply(fmt.Sprintf(web, 1, "{}", 1))
	c.apply(node("a", "{}"))
	c.advance(5 * time.Second)
	c.expect("the Pod runs on without a Node", "has 1, 1 ready", c.placed()...)
	c.patch(deployment, "web", `{spec: {replicas: 2}}`)
	c.advance(5 * time.Second)
	c.expect("the next one has one", "has 1, 1 ready\na has 1, 1 ready", c.placed()...)
}
