package workloads_test

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/starling-operator/starling/runtime/sim/workloads"
)

const deployment = "apps/v1 Deployment"

// web is a Deployment; its strategy and image are put in.
const web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, annotations: {team: blue}}
spec:
  replicas: %d
  selector: {matchLabels: {app: web}}
  strategy: %s
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:%d"}]}
`

// rolled tells how far a Deployment is: its sizes, those of its ReplicaSets by image, and
// its conditions.
func (c *cluster) rolled() (out []string) {
	c.t.Helper()
	d := only[appsv1.Deployment](c, deployment)
	s := d.Status
	line := fmt.Sprintf("%d Pods, %d updated, %d ready, %d available", s.Replicas, s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas)
	for _, of := range []appsv1.DeploymentConditionType{appsv1.DeploymentAvailable, appsv1.DeploymentProgressing} {
		for _, one := range s.Conditions {
			if one.Type == of {
				line += fmt.Sprintf(", %s %s", one.Status, one.Reason)
			}
		}
	}
	out = append(out, line)
	for image := 1; image < 5; image++ {
		for _, rs := range list[appsv1.ReplicaSet](c, "apps/v1 ReplicaSet") {
			if rs.Spec.Template.Spec.Containers[0].Image == fmt.Sprintf("web:%d", image) {
				out = append(out, fmt.Sprintf("web:%d has %d, revision %s", image, *rs.Spec.Replicas, rs.Annotations["deployment.kubernetes.io/revision"]))
			}
		}
	}
	return out
}

func TestDeployments(t *testing.T) {
	type step struct {
		name string
		do   func(c *cluster)
		want string
	}
	image := func(n int) func(c *cluster) {
		return func(c *cluster) {
			c.patch(deployment, "web", fmt.Sprintf(`{spec: {template: {spec: {containers: [{name: web, image: "web:%d"}]}}}}`, n))
		}
	}
	after := func(d time.Duration) func(c *cluster) { return func(c *cluster) { c.advance(d) } }
	for _, test := range []struct {
		name, strategy string
		replicas       int
		options        workloads.Options
		steps          []step
	}{
		{"ready after a time", "{}", 3, workloads.Options{ReadyAfter: 5 * time.Second}, []step{
			{"at once", nil, `
				3 Pods, 3 updated, 0 ready, 0 available, False MinimumReplicasUnavailable, True ReplicaSetUpdated
				web:1 has 3, revision 1`},
			{"4s later", after(4 * time.Second), `
				3 Pods, 3 updated, 0 ready, 0 available, False MinimumReplicasUnavailable, True ReplicaSetUpdated
				web:1 has 3, revision 1`},
			{"5s later", after(time.Second), `
				3 Pods, 3 updated, 3 ready, 3 available, True MinimumReplicasAvailable, True NewReplicaSetAvailable
				web:1 has 3, revision 1`},
		}},
		{"one more, none missing", "{rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}", 3, workloads.Options{ReadyAfter: 5 * time.Second}, []step{
			{"ready", after(5 * time.Second), `
				3 Pods, 3 updated, 3 ready, 3 available, True MinimumReplicasAvailable, True NewReplicaSetAvailable
				web:1 has 3, revision 1`},
			{"a new image", image(2), `
				4 Pods, 1 updated, 3 ready, 3 available, True MinimumReplicasAvailable, True ReplicaSetUpdated
				web:1 has 3, revision 1
				web:2 has 1, revision 2`},
			{"5s later", after(5 * time.Second), `
				4 Pods, 2 updated, 3 ready, 3 available, True MinimumReplicasAvailable, True ReplicaSetUpdated
				web:1 has 2, revision 1
				web:2 has 2, revision 2`},
			{"10s later", after(5 * time.Second), `
				4 Pods, 3 updated, 3 ready, 3 available, True MinimumReplicasAvailable, True ReplicaSetUpdated
				web:1 has 1, revision 1
				web:2 has 3, revision 2`},
			{"15s later", after(5 * time.Second), `
				3 Pods, 3 updated, 3 ready, 3 available, True MinimumReplicasAvailable, True NewReplicaSetAvailable
				web:1 has 0, revision 1
				web:2 has 3, revision 2`},
			{"the old image again", func(c *cluster) { image(1)(c); c.advance(time.Minute) }, `
				3 Pods, 3 updated, 3 ready, 3 available, True MinimumReplicasAvailable, True NewReplicaSetAvailable
				web:1 has 3, revision 3
				web:2 has 0, revision 2`},
		}},
		{"one missing, none more", "{rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}", 2, workloads.Options{ReadyAfter: 5 * time.Second}, []step{
			{"a new image", func(c *cluster) { c.advance(5 * time.Second); image(2)(c) }, `
				2 Pods, 1 updated, 1 ready, 1 available, True MinimumReplicasAvailable, True ReplicaSetUpdated
				web:1 has 1, revision 1
				web:2 has 1, revision 2`},
		}},
		{"all anew", "{type: Recreate}", 2, workloads.Options{ReadyAfter: 5 * time.Second}, []step{
			{"a new image", func(c *cluster) { c.advance(5 * time.Second); image(2)(c) }, `
				2 Pods, 2 updated, 0 ready, 0 available, False MinimumReplicasUnavailable, True ReplicaSetUpdated
				web:1 has 0, revision 1
				web:2 has 2, revision 2`},
		}},
		{"scaled", "{}", 2, workloads.Options{}, []step{
			{"to five", func(c *cluster) { c.patch(deployment, "web", `{spec: {replicas: 5}}`) }, `
				5 Pods, 5 updated, 5 ready, 5 available, True MinimumReplicasAvailable, True NewReplicaSetAvailable
				web:1 has 5, revision 1`},
			{"to none", func(c *cluster) { c.patch(deployment, "web", `{spec: {replicas: 0}}`) }, `
				0 Pods, 0 updated, 0 ready, 0 available, True MinimumReplicasAvailable, True NewReplicaSetAvailable
				web:1 has 0, revision 1`},
		}},
		{"an image that never gets ready", "{rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}", 2, workloads.Options{}, []step{
			{"a new image", func(c *cluster) {
				if err := c.mover.Failures.Add(workloads.Failure{Namespace: "default", Labels: "app=web"}); err != nil {
					c.t.Fatal(err)
				}
				// Those of the old image are ready already, and fail as well, until they recover.
				image(2)(c)
				c.advance(11 * time.Minute)
			}, `
				3 Pods, 1 updated, 0 ready, 0 available, False MinimumReplicasUnavailable, False ProgressDeadlineExceeded
				web:1 has 2, revision 1
				web:2 has 1, revision 2`},
			{"it recovers", func(c *cluster) {
				c.mover.Failures.Clear("default", "app=web")
				c.mover.Wake()
				c.advance(10 * time.Minute)
			}, `
				2 Pods, 2 updated, 2 ready, 2 available, True MinimumReplicasAvailable, True NewReplicaSetAvailable
				web:1 has 0, revision 1
				web:2 has 2, revision 2`},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCluster(t, test.options)
			c.apply(fmt.Sprintf(web, test.replicas, test.strategy, 1))
			for _, s := range test.steps {
				if s.do != nil {
					s.do(c)
				}
				c.expect(s.name, s.want, c.rolled()...)
			}
		})
	}
}

func TestDeploymentMakesReplicaSetsAndPodsAsTheRealOne(t *testing.T) {
	c := newCluster(t, workloads.Options{})
	c.apply(fmt.Sprintf(web, 1, "{}", 1))
	d, rs, pod := only[appsv1.Deployment](c, deployment), only[appsv1.ReplicaSet](c, "apps/v1 ReplicaSet"), only[corev1.Pod](c, "v1 Pod")
	hash := rs.Labels["pod-template-hash"]
	for _, one := range []struct{ what, got, want string }{
		{"the ReplicaSet's name", rs.Name, "web-" + hash},
		{"the hash in its selector", rs.Spec.Selector.MatchLabels["pod-template-hash"], hash},
		{"the hash in its template", rs.Spec.Template.Labels["pod-template-hash"], hash},
		{"its owner", rs.OwnerReferences[0].Kind + " " + rs.OwnerReferences[0].Name, "Deployment web"},
		{"the annotations of the Deployment", rs.Annotations["team"], "blue"},
		{"the size it should have", rs.Annotations["deployment.kubernetes.io/desired-replicas"], "1"},
		{"the size it may have", rs.Annotations["deployment.kubernetes.io/max-replicas"], "2"},
		{"the Pod's name", pod.Name[:len(rs.Name)+1], rs.Name + "-"},
		{"its hash", pod.Labels["pod-template-hash"], hash},
		{"its owner", pod.OwnerReferences[0].Kind + " " + pod.OwnerReferences[0].Name, "ReplicaSet " + rs.Name},
		{"the Deployment's revision", d.Annotations["deployment.kubernetes.io/revision"], "1"},
	} {
		if one.got != one.want {
			t.Errorf("%s: %q, want %q", one.what, one.got, one.want)
		}
	}
	if d.Status.ObservedGeneration != d.Generation {
		t.Errorf("generation %d is observed, of %d", d.Status.ObservedGeneration, d.Generation)
	}
	version := c.store.Version()
	c.advance(time.Hour)
	if now := c.store.Version(); now != version {
		t.Errorf("it does not rest: version %s, after an hour %s", version, now)
	}
	c.delete(deployment, "web")
	if left := list[corev1.Pod](c, "v1 Pod"); len(left) > 0 {
		t.Errorf("%d Pods are left", len(left))
	}
}
