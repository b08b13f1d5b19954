package workloads_test

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/starling-operator/starling/runtime/sim/workloads"
)

const (
	statefulSet = "apps/v1 StatefulSet"
	db          = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: %d
  serviceName: db
  podManagementPolicy: %s
  updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: %d}}
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: "db:1", volumeMounts: [{name: data, mountPath: /data}]}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`
)

// pods tells of each Pod: its name, its image, its phase, and whether it is ready.
func (c *cluster) pods() (out []string) {
	c.t.Helper()
	for _, p := range list[corev1.Pod](c, "v1 Pod") {
		line := fmt.Sprintf("%s %s %s", p.Name, p.Spec.Containers[0].Image, p.Status.Phase)
		for _, one := range p.Status.Conditions {
			if one.Type == corev1.PodReady && one.Status == corev1.ConditionTrue {
				line += " ready"
			}
		}
		out = append(out, line)
	}
	return out
}

func TestStatefulSetsGoInOrder(t *testing.T) {
	c := newCluster(t, workloads.Options{ReadyAfter: 5 * time.Second})
	c.apply(fmt.Sprintf(db, 3, "OrderedReady", 0))
	c.expect("at once", "db-0 db:1 Running", c.pods()...)
	c.advance(5 * time.Second)
	c.expect("5s later", "db-0 db:1 Running ready\ndb-1 db:1 Running", c.pods()...)
	c.advance(10 * time.Second)
	c.expect("15s later", "db-0 db:1 Running ready\ndb-1 db:1 Running ready\ndb-2 db:1 Running ready", c.pods()...)
	if claims := list[corev1.PersistentVolumeClaim](c, "v1 PersistentVolumeClaim"); len(claims) != 3 || claims[2].Name != "data-db-2" || claims[2].Status.Phase != corev1.ClaimBound || claims[2].Labels["app"] != "db" {
		t.Errorf("claims: %+v", claims)
	}
	pod := list[corev1.Pod](c, "v1 Pod")[2]
	set := only[appsv1.StatefulSet](c, statefulSet)
	for _, one := range []struct{ what, got, want string }{
		{"the Pod's label with its name", pod.Labels["statefulset.kubernetes.io/pod-name"], "db-2"},
		{"its ordinal", pod.Labels["apps.kubernetes.io/pod-index"], "2"},
		{"its revision", pod.Labels["controller-revision-hash"], set.Status.UpdateRevision},
		{"its hostname", pod.Spec.Hostname + "." + pod.Spec.Subdomain, "db-2.db"},
		{"its claim", pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName, "data-db-2"},
		{"the set's revisions", set.Status.CurrentRevision, set.Status.UpdateRevision},
		{"the set's counts", fmt.Sprint(set.Status.Replicas, set.Status.ReadyReplicas, set.Status.AvailableReplicas, set.Status.CurrentReplicas, set.Status.UpdatedReplicas), "3 3 3 3 3"},
	} {
		if one.got != one.want {
			t.Errorf("%s: %q, want %q", one.what, one.got, one.want)
		}
	}

	c.patch(statefulSet, "db", `{spec: {template: {spec: {containers: [{name: db, image: "db:2", volumeMounts: [{name: data, mountPath: /data}]}]}}}}`)
	c.expect("a new image", "db-0 db:1 Running ready\ndb-1 db:1 Running ready\ndb-2 db:2 Running", c.pods()...)
	c.advance(5 * time.Second)
	c.expect("5s later", "db-0 db:1 Running ready\ndb-1 db:2 Running\ndb-2 db:2 Running ready", c.pods()...)
	c.advance(time.Minute)
	c.expect("a minute later", "db-0 db:2 Running ready\ndb-1 db:2 Running ready\ndb-2 db:2 Running ready", c.pods()...)
	if set := only[appsv1.StatefulSet](c, statefulSet); set.Status.CurrentRevision != set.Status.UpdateRevision {
		t.Errorf("the update has not ended: %+v", set.Status)
	}

	c.patch(statefulSet, "db", `{spec: {replicas: 1}}`)
	c.expect("fewer", "db-0 db:2 Running ready", c.pods()...)
	if claims := list[corev1.PersistentVolumeClaim](c, "v1 PersistentVolumeClaim"); len(claims) != 3 {
		t.Errorf("%d claims, want 3: they outlive their Pods", len(claims))
	}
}

func TestStatefulSetsWithAPartition(t *testing.T) {
	c := newCluster(t, workloads.Options{})
	c.apply(fmt.Sprintf(db, 3, "Parallel", 2))
	c.patch(statefulSet, "db", `{spec: {template: {spec: {containers: [{name: db, image: "db:2", volumeMounts: [{name: data, mountPath: /data}]}]}}}}`)
	c.expect("a new image", "db-0 db:1 Running ready\ndb-1 db:1 Running ready\ndb-2 db:2 Running ready", c.pods()...)
	c.delete("v1 Pod", "db-0")
	c.expect("one below the partition is deleted", "db-0 db:1 Running ready\ndb-1 db:1 Running ready\ndb-2 db:2 Running ready", c.pods()...)
	if s := only[appsv1.StatefulSet](c, statefulSet).Status; s.CurrentReplicas != 2 || s.UpdatedReplicas != 1 || s.CurrentRevision == s.UpdateRevision {
		t.Errorf("%+v", s)
	}
}

func TestParallelStatefulSets(t *testing.T) {
	c := newCluster(t, workloads.Options{ReadyAfter: 5 * time.Second})
	c.apply(fmt.Sprintf(db, 3, "Parallel", 0))
	c.expect("at once", "db-0 db:1 Running\ndb-1 db:1 Running\ndb-2 db:1 Running", c.pods()...)
}
