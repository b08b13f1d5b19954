package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/modules/rbac"
	"github.com/starling-operator/starling/modules/tree"
)

// rolloutTree is a module whose hook reviews ConfigMaps of the namespace $WORK; others note each of them, and each
// request, in the namespace $NOTES.
const rolloutTree = `
def check(ctx):
    if ctx.request.object.get("data.deny"):
        return deny("no")

hook(check, on = [k8s.validate("v1", "ConfigMap", ["CREATE"], failure_policy = "fail", namespace_labels = {"e2e": "$WORK"})])

def note(name):
    k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "$NOTES"}, "data": {"noted": "yes"}})

def see(ctx):
    note("seen-" + ctx.object)

hook(see, on = [k8s.watch("v1", "ConfigMap", name = "cms", namespaces = ["$WORK"], labels = {"say": "yes"},
                          filter = lambda o: o.metadata.name)], for_each = "cms")

def take(ctx):
    note("got-" + ctx.request.json["name"])
    return reply(201, "noted")

hook(take, on = [http.receive("/take", public = True, rate = 1000, burst = 1000)])
`

// deploy/starling.yaml promises: there are two Ready pods. While they are deleted one after the other, and replaced by
// ten rollouts, each object that a hook reviews is created, each event has its effect, and each request its answer. A
// drain has one pod at a time.
//
// The real controllers make the pods, the endpoints of the Service and the answer to an eviction; pods are processes
// of this machine. It is no parallel test: its namespaces have fixed names, and all pods come to its node.
func TestRolloutsLoseNothing(t *testing.T) {
	const ns = "starling-system"
	t.Setenv("GODEBUG", "http2server=0") // of the pods: an API server asks a Service, not a URL like here, over HTTP/1.1
	ownNamespaces(t, ns, "hello")
	work, notes := shared.Namespace(t), shared.Namespace(t)
	patch(t, "namespaces", "", work, map[string]any{"metadata": map[string]any{"labels": map[string]any{"e2e": work}}})
	cordoned(t)
	kube, objects := applyDeploy(t, ns)
	reviews, requests := cluster.Balance(t), cluster.Balance(t)
	node := shared.Pods(t, cluster.PodsOptions{Node: "rollouts", Kubeconfig: kube, Webhooks: []string{"--webhook-url=https://" + reviews.Address()}})
	node.Serve(reviews, ns, "starling", "webhooks")
	node.Serve(requests, ns, "starling", "receive")
	t.Cleanup(func() { endPods(t, ns, objects) })
	waitAvailable(t, ns, "starling")
	waitAvailable(t, "hello", "hello")

	addModule(t, ns, work, notes)
	waitRolledOut(t, ns)
	cluster.Eventually(t, soon, "objects are reviewed", func() error {
		_, err := shared.Client.CoreV1().ConfigMaps(work).Create(t.Context(), newConfigMap("no", map[string]string{"deny": "yes"}), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), "denied the request: no") {
			return fmt.Errorf("it is %v", err)
		}
		return nil
	})
	load := startLoad(t, work, "http://"+requests.Address()+"/take")
	for _, name := range podsOf(t, ns) {
		if err := shared.Client.CoreV1().Pods(ns).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		waitReplaced(t, ns, name)
	}
	load.check(t, "as each pod was deleted")

	drained := podsOf(t, ns)
	cluster.Eventually(t, soon, "a pod may be drained", func() error { // the budget learns of Ready pods a moment later
		return evict(t, ns, drained[0])
	})
	if err := evict(t, ns, drained[1]); !apierrors.IsTooManyRequests(err) {
		t.Errorf("a second pod may be drained: %v", err)
	}
	waitReplaced(t, ns, drained[0])
	load.check(t, "in a drain")

	began := time.Now()
	for n := range 10 {
		restart := fmt.Appendf(nil, `{"spec": {"template": {"metadata": {"annotations": {"rollout": "%d"}}}}}`, n)
		if _, err := shared.Client.AppsV1().Deployments(ns).Patch(t.Context(), "starling", types.MergePatchType, restart, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		waitRolledOut(t, ns)
		load.check(t, fmt.Sprintf("in rollout %d", n))
	}
	took := time.Since(began)
	waitLabel(t, node, ns)
	objectsMade, requestsMade := load.stop()
	t.Logf("ten rollouts took %s; of %d creates and %d requests in all, none has failed", took.Round(time.Second), objectsMade, requestsMade)
	for prefix, n := range map[string]int{"seen-w": objectsMade, "got-r": requestsMade} {
		cluster.Eventually(t, soon, fmt.Sprintf("all of %d are noted as %s", n, prefix), func() error {
			list, err := shared.Client.CoreV1().ConfigMaps(notes).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				return err
			}
			there := 0
			for i := range list.Items {
				if strings.HasPrefix(list.Items[i].Name, prefix) {
					there++
				}
			}
			if there != n {
				return fmt.Errorf("there are %d", there)
			}
			return nil
		})
	}
}

// applyDeploy applies the files of deploy/, and returns a kubeconfig with the rights that they give, and the objects.
func applyDeploy(t *testing.T, ns string) (kube string, objects []unstructured.Unstructured) {
	t.Helper()
	for _, file := range []string{"namespaces.yaml", "starling.yaml"} {
		text, err := os.ReadFile("../deploy/" + file)
		if err != nil {
			t.Fatal(err)
		}
		shared.Apply(t, string(text))
		objects = append(objects, manifests(t, string(text))...)
	}
	kube = shared.TokenKubeconfig(t, ns, "starling")
	waitRights(t, kube)
	return kube, objects
}

// cordoned has no pod come to the node of the control plane until the test ends.
func cordoned(t *testing.T) {
	t.Helper()
	cordon := func(yes bool) {
		_, err := shared.Client.CoreV1().Nodes().Patch(context.Background(), "fake-0", types.MergePatchType, fmt.Appendf(nil, `{"spec": {"unschedulable": %t}}`, yes), metav1.PatchOptions{})
		if err != nil {
			t.Error(err)
		}
	}
	cordon(true)
	t.Cleanup(func() { cordon(false) })
}

// addModule adds a module to the tree of deploy/starling.yaml, as docs/replicas.md says: a ConfigMap more in the
// volume, and the roles that `starling rbac` prints.
func addModule(t *testing.T, ns, work, notes string) {
	t.Helper()
	f := copied(t, "quickstart")
	hook := strings.NewReplacer("$WORK", work, "$NOTES", notes).Replace(rolloutTree)
	module := fmt.Sprintf("module(enabled = True, grants = [grant(\"v1\", \"ConfigMap\", verbs = [\"apply\"], namespaces = [%q])])\n", notes)
	f.write(map[string]string{"rollout/module.star": module, "rollout/hooks/rollout.star": hook})
	read, err := tree.ReadDir(f.modules, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	printed, err := rbac.Compute(t.Context(), rbac.Options{Tree: read, Namespace: ns, Name: "starling"})
	if err != nil {
		t.Fatal(err)
	}
	var roles strings.Builder
	if err := printed.Write(&roles); err != nil {
		t.Fatal(err)
	}
	shared.Apply(t, roles.String())
	files := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "addons-rollout"}, Data: map[string]string{"module.star": module, "rollout.star": hook}}
	if _, err := shared.Client.CoreV1().ConfigMaps(ns).Create(t.Context(), files, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	d, err := shared.Client.AppsV1().Deployments(ns).Get(t.Context(), "starling", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	spec := &d.Spec.Template.Spec
	spec.Containers[0].Args = append(spec.Containers[0].Args, "--receive-address=0.0.0.0:8080")
	spec.Containers[0].Ports = append(spec.Containers[0].Ports, corev1.ContainerPort{Name: "receive", ContainerPort: 8080})
	for i := range spec.Volumes {
		if v := &spec.Volumes[i]; v.Name == "modules" {
			source := func(name string, items []corev1.KeyToPath) corev1.VolumeProjection {
				return corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Items: items}}
			}
			v.Projected = &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				source(v.ConfigMap.Name, v.ConfigMap.Items),
				source(files.Name, []corev1.KeyToPath{{Key: "module.star", Path: "rollout/module.star"}, {Key: "rollout.star", Path: "rollout/hooks/rollout.star"}}),
			}}
			v.ConfigMap = nil
		}
	}
	_, err1 := shared.Client.AppsV1().Deployments(ns).Update(t.Context(), d, metav1.UpdateOptions{})
	port := []byte(`{"spec": {"ports": [{"name": "receive", "port": 80, "targetPort": "receive"}]}}`)
	_, err2 := shared.Client.CoreV1().Services(ns).Patch(t.Context(), "starling", types.StrategicMergePatchType, port, metav1.PatchOptions{})
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
}

// endPods takes Starling away while its node is there, and what would be in the way without it.
func endPods(t *testing.T, ns string, objects []unstructured.Unstructured) {
	own := metav1.ListOptions{LabelSelector: "starling.dev/instance=" + ns + ".starling"}
	deleteAll(t, objects)
	cluster.Eventually(t, soon, "no pod is left", func() error {
		for _, in := range []string{ns, "hello"} {
			pods, err := shared.Client.CoreV1().Pods(in).List(context.Background(), metav1.ListOptions{})
			if err != nil || len(pods.Items) > 0 {
				return fmt.Errorf("in %s: %d, %w", in, len(pods.Items), err)
			}
		}
		return nil
	})
	_ = shared.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().DeleteCollection(context.Background(), metav1.DeleteOptions{}, own)
	modules := shared.Dynamic.Resource(schema.GroupVersionResource{Group: "starling.dev", Version: "v1alpha1", Resource: "modules"})
	_ = modules.Delete(context.Background(), "rollout", metav1.DeleteOptions{})
}

// podsOf are the names of the pods of Starling that do not end.
func podsOf(t *testing.T, ns string) (names []string) {
	t.Helper()
	pods, err := shared.Client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=starling"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp == nil {
			names = append(names, pods.Items[i].Name)
		}
	}
	return names
}

// waitReplaced waits until a pod is gone, and two others are Ready.
func waitReplaced(t *testing.T, ns, pod string) {
	t.Helper()
	cluster.Eventually(t, soon, "pod "+pod+" is gone", func() error {
		_, err := shared.Client.CoreV1().Pods(ns).Get(t.Context(), pod, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there: %w", err)
	})
	waitRolledOut(t, ns)
}

// waitRolledOut waits as kubectl rollout status does.
func waitRolledOut(t *testing.T, ns string) {
	t.Helper()
	cluster.Eventually(t, soon, "the rollout is done", func() error {
		d, err := shared.Client.AppsV1().Deployments(ns).Get(t.Context(), "starling", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if want := *d.Spec.Replicas; d.Status.ObservedGeneration != d.Generation || d.Status.UpdatedReplicas != want || d.Status.Replicas != want || d.Status.AvailableReplicas != want {
			return fmt.Errorf("its status is %+v", d.Status)
		}
		return nil
	})
}

// waitLabel waits until the label of one pod, which leads, says so, and that of the other one that it stands by.
func waitLabel(t *testing.T, node *cluster.Pods, ns string) {
	t.Helper()
	cluster.Eventually(t, soon, "the pod that leads has the label", func() error {
		for _, name := range podsOf(t, ns) {
			pod, err := shared.Client.CoreV1().Pods(ns).Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			answer, err := http.Get("http://" + node.Address(pod.Status.PodIP, 9115) + "/metrics")
			if err != nil {
				return err
			}
			want := "standby"
			if strings.Contains(readAll(answer.Body), "\nstarling_leader 1\n") {
				want = "leader"
			}
			answer.Body.Close()
			if got := pod.Labels["starling.dev/role"]; got != want {
				return fmt.Errorf("pod %s has the label %q, and is %s", name, got, want)
			}
		}
		return nil
	})
}

// evict asks for the eviction of a pod, as a drain does.
func evict(t *testing.T, ns, pod string) error {
	return shared.Client.PolicyV1().Evictions(ns).Evict(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: ns}})
}

// load creates objects that are reviewed, and sends requests, without end.
type load struct {
	objects, requests atomic.Int64
	end               context.CancelFunc
	busy              sync.WaitGroup
	mu                sync.Mutex
	failed            []string
}

func startLoad(t *testing.T, ns, page string) *load {
	ctx, end := context.WithCancel(t.Context())
	l := &load{end: end}
	t.Cleanup(func() { l.stop() })
	loop := func(does string, count *atomic.Int64, do func(n int64) error) {
		l.busy.Go(func() {
			ticks := time.NewTicker(20 * time.Millisecond)
			defer ticks.Stop()
			for {
				n := count.Add(1) - 1
				if err := do(n); err != nil {
					l.mu.Lock()
					l.failed = append(l.failed, fmt.Sprintf("%s %s %d: %v", time.Now().Format(time.StampMilli), does, n, err))
					l.mu.Unlock()
				}
				select {
				case <-ticks.C:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	for range 3 {
		loop("create", &l.objects, func(n int64) error {
			o := newConfigMap(fmt.Sprint("w", n), nil)
			o.Labels = map[string]string{"say": "yes"}
			_, err := shared.Client.CoreV1().ConfigMaps(ns).Create(context.Background(), o, metav1.CreateOptions{})
			return err
		})
	}
	sender := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
	loop("request", &l.requests, func(n int64) error {
		answer, err := sender.Post(page, "application/json", strings.NewReader(fmt.Sprintf(`{"name": "r%d"}`, n)))
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusCreated {
			return fmt.Errorf("%d: %s", answer.StatusCode, readAll(answer.Body))
		}
		return nil
	})
	return l
}

// check tells of all that has failed so far.
func (l *load) check(t *testing.T, when string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, text := range l.failed {
		t.Errorf("%s: %s", when, text)
	}
	l.failed = nil
}

// stop ends the load, and returns what it has made.
func (l *load) stop() (objects, requests int) {
	l.end()
	l.busy.Wait()
	return int(l.objects.Load()), int(l.requests.Load())
}
