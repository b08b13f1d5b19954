package workloads_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/runtime/sim/store"
	"github.com/starling-operator/starling/runtime/sim/workloads"
)

// TestRandomWorkloads has people and machines do things by chance while the controllers work
// in an order by chance, none of them to its end. When all that is broken is mended, each
// workload has as many ready Pods as it asks for, nothing is left of what is gone, and
// nothing changes any more. SEEDS is how many orders there are.
func TestRandomWorkloads(t *testing.T) {
	seeds := 10
	if n, err := strconv.Atoi(os.Getenv("SEEDS")); err == nil {
		seeds = n
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := newRandom(t, uint64(seed))
			for range 60 {
				w.act()
				w.work()
			}
			w.mend()
			w.check()
		})
	}
}

// random is a cluster in which things happen by chance.
type random struct {
	*cluster
	r     *rand.Rand
	nodes bool
	steps []string
}

func newRandom(t *testing.T, seed uint64) *random {
	r := rand.New(rand.NewPCG(seed, 1))
	w := &random{cluster: newCluster(t, workloads.Options{
		ReadyAfter: time.Duration(r.IntN(3)) * 4 * time.Second, CompletesAfter: time.Duration(r.IntN(3)) * 7 * time.Second,
	}), r: r, nodes: r.IntN(3) > 0}
	w.mover.Shuffle = r.Shuffle
	w.mover.Warn = func(text string) {
		// Of an object of the same name that the garbage collection has not seen yet.
		if !strings.Contains(text, "already exists") && !strings.Contains(text, "object is being deleted") {
			t.Error(text)
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d:\n%s", seed, strings.Join(w.steps, "\n"))
		}
	})
	return w
}

// work lets some controllers do something, and time pass.
func (w *random) work() {
	for range w.r.IntN(15) {
		if w.r.IntN(4) == 0 {
			w.store.Settle()
		} else {
			w.mover.Move()
		}
	}
	if w.r.IntN(3) == 0 {
		w.now = w.now.Add(time.Duration(w.r.IntN(40)) * time.Second)
	}
}

func (w *random) say(format string, a ...any) {
	w.steps = append(w.steps, fmt.Sprintf(format, a...))
}

func pick[T any](w *random, from ...T) T { return from[w.r.IntN(len(from))] }

// act does one thing of people or of machines.
func (w *random) act() {
	switch w.r.IntN(12) {
	case 0, 1, 2, 3:
		w.put(w.workload())
	case 4:
		kind := pick(w, deployment, statefulSet, "apps/v1 DaemonSet", job, "batch/v1 CronJob", "v1 Service")
		w.remove(kind, pick(w, "a", "b"), pick(w, metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan))
	case 5:
		w.removeAny(pick(w, "v1 Pod", "apps/v1 ReplicaSet", "v1 PersistentVolumeClaim", "discovery.k8s.io/v1 EndpointSlice", "apps/v1 ControllerRevision"))
	case 6:
		w.relabel()
	case 7:
		f := workloads.Failure{Namespace: "default", Labels: "app=" + pick(w, "a", "b"), Times: w.r.IntN(3)}
		w.say("Pods fail: %+v", f)
		if err := w.mover.Failures.Add(f); err != nil {
			w.t.Fatal(err)
		}
		w.mover.Wake()
	case 8:
		of := "app=" + pick(w, "a", "b")
		w.say("Pods recover: %s", of)
		w.mover.Failures.Clear("default", of)
		w.mover.Wake()
	default:
		if w.nodes {
			w.changeNode()
		}
	}
}

// workload is one of some kind; one of the same name is changed by it.
func (w *random) workload() string {
	name, image := pick(w, "a", "b"), w.r.IntN(3)
	template := fmt.Sprintf(`{metadata: {labels: {app: %s}}, spec: {containers: [{name: main, image: "i:%d", ports: [{name: http, containerPort: 80}]}]}}`, name, image)
	head := func(kind string) string {
		apiVersion, of, _ := strings.Cut(kind, " ")
		return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: %s}\n", apiVersion, of, name)
	}
	selected := fmt.Sprintf("replicas: %d, minReadySeconds: %d, revisionHistoryLimit: 2, selector: {matchLabels: {app: %s}}, template: %s", w.r.IntN(5), 3*w.r.IntN(3), name, template)
	switch w.r.IntN(6) {
	case 0, 1:
		strategy := "{type: Recreate}"
		if surge, missing := w.r.IntN(3), w.r.IntN(3); surge+missing > 0 {
			strategy = fmt.Sprintf("{type: RollingUpdate, rollingUpdate: {maxSurge: %d, maxUnavailable: %d}}", surge, missing)
		}
		return head(deployment) + fmt.Sprintf("spec: {%s, paused: %t, strategy: %s}\n", selected, w.r.IntN(5) == 0, strategy)
	case 2:
		claims := ""
		if name == "b" {
			claims = ", volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}], persistentVolumeClaimRetentionPolicy: {whenScaled: " + pick(w, "Retain", "Delete") + ", whenDeleted: " + pick(w, "Retain", "Delete") + "}"
		}
		policy := map[string]string{"a": "OrderedReady", "b": "Parallel"}[name]
		update := pick(w, "{type: OnDelete}", fmt.Sprintf("{type: RollingUpdate, rollingUpdate: {partition: %d}}", w.r.IntN(3)))
		return head(statefulSet) + fmt.Sprintf("spec: {%s, serviceName: x, podManagementPolicy: %s, updateStrategy: %s%s}\n", selected, policy, update, claims)
	case 3:
		_, rest, _ := strings.Cut(selected, ",")
		return head("apps/v1 DaemonSet") + fmt.Sprintf("spec: {%s}\n", rest)
	case 4:
		if w.r.IntN(3) == 0 {
			return head("batch/v1 CronJob") + fmt.Sprintf("spec: {schedule: \"* * * * *\", concurrencyPolicy: %s, jobTemplate: {spec: {template: {metadata: {labels: {app: %s}}, spec: {restartPolicy: Never, containers: [{name: main, image: \"i:1\"}]}}}}}\n", pick(w, "Allow", "Forbid", "Replace"), name)
		}
		return head(job) + fmt.Sprintf("spec: {parallelism: %d, suspend: %t, completions: 3, completionMode: %s, backoffLimit: %d, podReplacementPolicy: %s, template: {metadata: {labels: {app: %s}}, spec: {restartPolicy: %s, containers: [{name: main, image: \"i:1\"}]}}}\n",
			w.r.IntN(4), w.r.IntN(4) == 0, map[string]string{"a": "NonIndexed", "b": "Indexed"}[name], map[string]int{"a": 2, "b": 0}[name], map[string]string{"a": "TerminatingOrFailed", "b": "Failed"}[name], name, map[string]string{"a": "OnFailure", "b": "Never"}[name])
	}
	return head("v1 Service") + fmt.Sprintf("spec: {selector: {app: %s}, ports: [{name: http, port: 80, targetPort: %s}]}\n", name, pick(w, "http", "8080"))
}

// put applies an object; what the API server refuses, such as a change of a Job, is not done.
func (w *random) put(text string) {
	var obj map[string]any
	if err := yaml.Unmarshal([]byte(text), &obj); err != nil {
		w.t.Fatalf("%s: %v", text, err)
	}
	data, err := json.Marshal(obj)
	if err != nil {
		w.t.Fatal(err)
	}
	t := w.target(fmt.Sprint(obj["apiVersion"], " ", obj["kind"]), fmt.Sprint(obj["metadata"].(map[string]any)["name"]))
	_, err = w.store.Patch(t, types.ApplyPatchType, data, store.WriteOptions{Manager: "people", Force: true})
	w.say("apply %s: %v", text, err)
	if err != nil && !apierrors.IsInvalid(err) {
		w.t.Fatal(err)
	}
}

func (w *random) merge(kind, name, patch string, sub string) {
	data, err := yaml.YAMLToJSON([]byte(patch))
	if err != nil {
		w.t.Fatal(err)
	}
	t := w.target(kind, name)
	t.Subresource = sub
	_, err = w.store.Patch(t, types.MergePatchType, data, store.WriteOptions{Manager: "people"})
	w.say("patch %s %s %s: %v", kind, name, patch, err)
	if err != nil && !apierrors.IsNotFound(err) {
		w.t.Fatal(err)
	}
}

func (w *random) remove(kind, name string, how metav1.DeletionPropagation) {
	_, err := w.store.Delete(w.target(kind, name), store.DeleteOptions{Propagation: how})
	w.say("delete %s %s %s: %v", how, kind, name, err)
	if err != nil && !apierrors.IsNotFound(err) {
		w.t.Fatal(err)
	}
}

// removeAny deletes one object of a kind.
func (w *random) removeAny(kind string) {
	if all := list[metav1.PartialObjectMetadata](w.cluster, kind); len(all) > 0 {
		w.remove(kind, pick(w, all...).Name, metav1.DeletePropagationBackground)
	}
}

// relabel takes a Pod away from its owner.
func (w *random) relabel() {
	if all := list[corev1.Pod](w.cluster, "v1 Pod"); len(all) > 0 {
		w.merge("v1 Pod", pick(w, all...).Name, "{metadata: {labels: {app: away}}}", "")
	}
}

// changeNode has a Node come, go, be cordoned, tainted, or not be ready.
func (w *random) changeNode() {
	name := pick(w, "a", "b", "c")
	switch w.r.IntN(5) {
	case 0, 1:
		w.put(node(name, "{}"))
	case 2:
		w.remove("v1 Node", name, metav1.DeletePropagationBackground)
	case 3:
		w.merge("v1 Node", name, pick(w, "{spec: {unschedulable: true}}", "{spec: {unschedulable: null}}", "{spec: {taints: [{key: x, effect: NoExecute}]}}", "{spec: {taints: [{key: x, effect: NoSchedule}]}}", "{spec: {taints: null}}"), "")
	default:
		w.merge("v1 Node", name, fmt.Sprintf("{status: {conditions: [{type: Ready, status: %q, lastTransitionTime: %q}]}}", pick(w, "True", "False", "Unknown"), w.now.Format(time.RFC3339)), "status")
	}
}

// mend ends all trouble, and lets two hours pass.
func (w *random) mend() {
	for _, name := range []string{"a", "b"} {
		for range 60 {
			w.mover.Failures.Clear("default", "app="+name)
		}
		w.merge(deployment, name, "{spec: {paused: null}}", "")
		w.merge("batch/v1 CronJob", name, "{spec: {suspend: true}}", "")
		w.merge(job, name, "{spec: {suspend: null, parallelism: 2}}", "")
		w.merge(statefulSet, name, "{spec: {updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 0}}}}", "")
	}
	if w.nodes {
		for _, name := range []string{"a", "b", "c"} {
			w.remove("v1 Node", name, metav1.DeletePropagationBackground)
			w.store.Settle()
			w.put(node(name, "{}"))
		}
	}
	for _, p := range list[corev1.Pod](w.cluster, "v1 Pod") {
		if p.Labels["app"] == "away" { // one of a StatefulSet keeps its name from its successor
			w.remove("v1 Pod", p.Name, metav1.DeletePropagationBackground)
		}
	}
	w.mover.Wake()
	w.settle()
	w.advance(2 * time.Hour)
}

// check looks for what is not as it should be.
func (w *random) check() {
	version := w.store.Version()
	w.advance(time.Hour)
	if now := w.store.Version(); now != version {
		w.t.Errorf("it does not rest: version %s, an hour later %s", version, now)
	}
	pods := list[corev1.Pod](w.cluster, "v1 Pod")
	of := func(owner metav1.Object) (out []*corev1.Pod) {
		return slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return !metav1.IsControlledBy(p, owner) })
	}
	// have says how many Pods an owner has; all of them must be ready.
	have := func(owner metav1.Object, want int32) {
		w.t.Helper()
		mine := of(owner)
		for _, p := range mine {
			if !isReady(p) {
				w.t.Errorf("Pod %s of %s is not ready: %+v", p.Name, owner.GetName(), p.Status)
			}
		}
		if len(mine) != int(want) {
			w.t.Errorf("%T %s has %d Pods, want %d", owner, owner.GetName(), len(mine), want)
		}
	}
	known := map[types.UID]bool{}
	sets := list[appsv1.ReplicaSet](w.cluster, "apps/v1 ReplicaSet")
	for _, d := range list[appsv1.Deployment](w.cluster, deployment) {
		known[d.UID] = true
		s, n := d.Status, *d.Spec.Replicas
		if s.Replicas != n || s.UpdatedReplicas != n || s.AvailableReplicas != n || s.UnavailableReplicas != 0 || s.ObservedGeneration != d.Generation {
			w.t.Errorf("Deployment %s of %d: %+v", d.Name, n, s)
		}
		mine := slices.DeleteFunc(slices.Clone(sets), func(rs *appsv1.ReplicaSet) bool { return !metav1.IsControlledBy(rs, d) })
		if size := len(mine); size > 3 {
			w.t.Errorf("Deployment %s has %d ReplicaSets, and a history of 2", d.Name, size)
		}
	}
	for _, rs := range sets {
		known[rs.UID] = true
		have(rs, *rs.Spec.Replicas)
	}
	for _, set := range list[appsv1.StatefulSet](w.cluster, statefulSet) {
		known[set.UID] = true
		have(set, *set.Spec.Replicas)
		if s := set.Status; s.CurrentRevision != s.UpdateRevision || s.AvailableReplicas != *set.Spec.Replicas {
			w.t.Errorf("StatefulSet %s: %+v", set.Name, s)
		}
	}
	for _, ds := range list[appsv1.DaemonSet](w.cluster, "apps/v1 DaemonSet") {
		known[ds.UID] = true
		n := int32(0)
		if w.nodes {
			n = 3
		}
		have(ds, n)
		if s := ds.Status; s.UpdatedNumberScheduled != n || s.NumberAvailable != n || s.NumberUnavailable != 0 || s.NumberMisscheduled != 0 {
			w.t.Errorf("DaemonSet %s: %+v", ds.Name, s)
		}
	}
	for _, j := range list[batchv1.Job](w.cluster, job) {
		known[j.UID] = true
		if !slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
			return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue
		}) || j.Status.Active != 0 {
			w.t.Errorf("Job %s has not ended: %+v", j.Name, j.Status)
		}
	}
	for _, p := range pods {
		if ref := metav1.GetControllerOf(p); ref != nil && !known[ref.UID] {
			w.t.Errorf("the %s %s of Pod %s is gone", ref.Kind, ref.Name, p.Name)
		}
		if p.DeletionTimestamp != nil || slices.Contains(p.Finalizers, batchv1.JobTrackingFinalizer) {
			w.t.Errorf("Pod %s is held: %v", p.Name, p.Finalizers)
		}
	}
	w.checkEndpoints(pods)
	w.checkVolumes()
}

func isReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// checkEndpoints compares the endpoints of each Service with the Pods that it selects.
func (w *random) checkEndpoints(pods []*corev1.Pod) {
	endpoints := list[discoveryv1.EndpointSlice](w.cluster, "discovery.k8s.io/v1 EndpointSlice")
	for _, s := range list[corev1.Service](w.cluster, "v1 Service") {
		want, got := map[string]bool{}, map[string]bool{}
		for _, p := range pods {
			if p.Labels["app"] == s.Spec.Selector["app"] && isReady(p) {
				want[p.Name] = true
			}
		}
		for _, one := range endpoints {
			for _, e := range one.Endpoints {
				if metav1.IsControlledBy(one, s) && *e.Conditions.Ready {
					got[e.TargetRef.Name] = true
				}
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			w.t.Errorf("Service %s has the endpoints %v, want %v", s.Name, got, want)
		}
	}
}

// checkVolumes says which claims have no volume, and which volumes no claim.
func (w *random) checkVolumes() {
	claims := map[types.UID]bool{}
	for _, c := range list[corev1.PersistentVolumeClaim](w.cluster, "v1 PersistentVolumeClaim") {
		claims[c.UID] = true
		if c.Status.Phase != corev1.ClaimBound {
			w.t.Errorf("claim %s: %+v", c.Name, c.Status)
		}
	}
	for _, v := range list[corev1.PersistentVolume](w.cluster, "v1 PersistentVolume") {
		if !claims[v.Spec.ClaimRef.UID] {
			w.t.Errorf("volume %s has no claim", v.Name)
		}
	}
}
