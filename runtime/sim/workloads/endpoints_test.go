package workloads_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/starling-operator/starling/runtime/sim/workloads"
)

const service = `
apiVersion: v1
kind: Service
metadata: {name: web, labels: {team: blue}}
spec:
  clusterIP: %q
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: http}, {name: admin, port: 8081}]
`

const pod = `
apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {app: web}}
spec: {restartPolicy: %s, containers: [{name: web, image: "web:1", ports: [{name: http, containerPort: 8080}]}]}
`

func TestEndpointSlicesFollowPods(t *testing.T) {
	c := newCluster(t, workloads.Options{ReadyAfter: 5 * time.Second})
	c.apply(fmt.Sprintf(service, "None"))
	slice := func() *discoveryv1.EndpointSlice {
		return only[discoveryv1.EndpointSlice](c, "discovery.k8s.io/v1 EndpointSlice")
	}
	one := slice()
	if one.Labels["kubernetes.io/service-name"] != "web" || one.Labels["team"] != "blue" || len(one.Endpoints) != 0 || one.OwnerReferences[0].Name != "web" {
		t.Errorf("%+v", one)
	}
	if _, headless := one.Labels["service.kubernetes.io/headless"]; !headless {
		t.Errorf("labels: %v", one.Labels)
	}
	c.apply(fmt.Sprintf(pod, "a", "Always"))
	if e := slice().Endpoints; len(e) != 1 || *e[0].Conditions.Ready || e[0].TargetRef.Name != "a" {
		t.Errorf("at once: %+v", e)
	}
	c.advance(5 * time.Second)
	one = slice()
	if e := one.Endpoints; len(e) != 1 || !*e[0].Conditions.Ready || e[0].Addresses[0] != list[corev1.Pod](c, "v1 Pod")[0].Status.PodIP {
		t.Errorf("5s later: %+v", e)
	}
	if p := one.Ports; len(p) != 2 || *p[0].Port != 8080 || *p[1].Port != 8081 {
		t.Errorf("ports: %+v", p)
	}
	c.delete("v1 Pod", "a")
	if e := slice().Endpoints; len(e) != 0 {
		t.Errorf("the Pod is gone: %+v", e)
	}
	c.delete("v1 Service", "web")
	if left := list[discoveryv1.EndpointSlice](c, "discovery.k8s.io/v1 EndpointSlice"); len(left) != 0 {
		t.Errorf("the Service is gone: %+v", left)
	}
}

func TestPodsThatFail(t *testing.T) {
	c := newCluster(t, workloads.Options{})
	c.apply(fmt.Sprintf(pod, "a", "Always"))
	c.expect("at once", "a web:1 Running ready", c.pods()...)
	if err := c.mover.Failures.Add(workloads.Failure{Namespace: "default", Labels: "app=web", ExitCode: 3, Times: 2}); err != nil {
		t.Fatal(err)
	}
	c.mover.Wake()
	for _, step := range []struct {
		after time.Duration
		state string
	}{
		{0, "CrashLoopBackOff, 0 restarts, ended with 3"},
		{9 * time.Second, "CrashLoopBackOff, 0 restarts, ended with 3"},
		{time.Second, "CrashLoopBackOff, 1 restarts, ended with 3"},
		{19 * time.Second, "CrashLoopBackOff, 1 restarts, ended with 3"},
		{time.Second, "runs, 2 restarts, ended with 3"},
	} {
		c.settle()
		c.advance(step.after)
		s := only[corev1.Pod](c, "v1 Pod").Status.ContainerStatuses[0]
		got := "runs"
		if s.State.Waiting != nil {
			got = s.State.Waiting.Reason
		}
		got += fmt.Sprintf(", %d restarts, ended with %d", s.RestartCount, s.LastTerminationState.Terminated.ExitCode)
		c.expect(fmt.Sprintf("%s more", step.after), step.state, got)
	}
}

func TestPodsWaitForTheirClaims(t *testing.T) {
	c := newCluster(t, workloads.Options{})
	c.apply(`
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  containers: [{name: web, image: "web:1"}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
`)
	c.expect("no claim", "a web:1 Pending", c.pods()...)
	c.apply(`
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`)
	c.expect("a claim", "a web:1 Running ready", c.pods()...)
	if v := only[corev1.PersistentVolume](c, "v1 PersistentVolume"); v.Status.Phase != corev1.VolumeBound || v.Spec.ClaimRef.Name != "data" {
		t.Errorf("%+v", v)
	}
	c.delete("v1 Pod", "a")
	c.delete("v1 PersistentVolumeClaim", "data")
	if left := list[corev1.PersistentVolume](c, "v1 PersistentVolume"); len(left) != 0 {
		t.Errorf("%d volumes are left", len(left))
	}
}
