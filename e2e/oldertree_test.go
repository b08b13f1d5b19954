package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/modules/status"
)

// keeping is a hook that keeps how often it has run, in its state and as a value.
const keeping = `
def count(ctx):
    n = ctx.state.get("n", 0) + 1
    ctx.state.set("n", n)
    values.set("text", "run %d" % n)

hook(count, on = [startup()])
`

// longer is for how long a module is looked at that an older process would have uninstalled by then: after ten seconds.
const longer = 20 * time.Second

// One of two processes gets a change of the tree before the other one, as kubelets bring it, and is killed. The other
// one takes away nothing that came with the change: no release, and nothing that hooks keep. It goes on with all of it
// once the change is there.
func TestATreeThatArrivesLateUninstallsNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mirror("web", on), webhookRole(mirrors)).alone("each process has a tree of its own")
	ns, denied := f.labelled(), newConfigMap("bad", map[string]string{"deny": "yes"})
	asked, led := webhookArgs(t), webhookArgs(t) // the API server knows the address of the second process alone
	next := (&fixture{t: t, ns: f.ns, name: f.name, modules: t.TempDir(), kube: f.kube}).alone(f.single)
	next.write(mirror("web", on))
	f.start(led[0], asked[1])
	f.waitState("web", status.ModuleReady)
	next.start(asked...)
	next.waitReadyAs(false)

	change := mirror("extra", on)
	change["extra/hooks/keeping.star"], change["web/hooks/keeping.star"], change["extra/hooks/guard.star"] = keeping, keeping, guard
	f.write(change)
	for _, name := range []string{"extra", "web"} {
		f.waitState(name, status.ModuleReady)
		f.waitData(name, map[string]string{"text": "run 1"})
	}
	extra := func() types.UID {
		cm, err := shared.Client.CoreV1().ConfigMaps(f.ns).Get(t.Context(), "extra", metav1.GetOptions{})
		if err != nil {
			t.Fatalf("what extra has installed: %v", err)
		}
		return cm.UID
	}
	before := extra()
	f.refused(ns, denied, "denied the request: CREATE of bad by ")
	f.process.Kill()
	next.waitState("extra", status.ModulePaused, "not in the module tree; it stays as it is until ", "had a newer module tree, which may still arrive here")
	next.waitState("web", status.ModuleReady)
	time.Sleep(longer)
	next.waitState("extra", status.ModulePaused)
	next.waitConfigurations(3)
	next.refused(ns, denied, "failed calling webhook ") // by its failure policy: no process has the hook
	if after := extra(); after != before {
		t.Errorf("it was made anew: %s, then %s", before, after)
	}

	next.write(change)
	for _, name := range []string{"extra", "web"} {
		next.waitState(name, status.ModuleReady)
		next.waitData(name, map[string]string{"text": "run 2"}) // with the state of the process before
	}
	next.refused(ns, denied, "denied the request: CREATE of bad by ")
	if after := extra(); after != before {
		t.Errorf("it was made anew: %s, then %s", before, after)
	}
}

// A rollout brings a new module, and is paused half way. A pod of the new template leads and ends, and one of the old
// template takes over, which was made later: the module stays, and says why. Once the rollout is undone it goes. It
// comes with a rollout that is done, and goes with the next one, as before. It is no parallel test: its namespaces have
// fixed names, and all pods come to its node.
func TestARolloutHalfWayUninstallsNothing(t *testing.T) {
	const ns = "starling-system"
	ownNamespaces(t, ns, "hello")
	cordoned(t)
	kube, objects := applyDeploy(t, ns)
	node := shared.Pods(t, cluster.PodsOptions{Node: "halfway", Kubeconfig: kube})
	t.Cleanup(func() {
		_ = shared.Dynamic.Resource(moduleResource).Delete(context.Background(), "extra", metav1.DeleteOptions{})
		endPods(t, ns, objects)
	})
	waitAvailable(t, ns, "starling")
	waitAvailable(t, "hello", "hello")
	d, err := shared.Client.AppsV1().Deployments(ns).Get(t.Context(), "starling", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	old, with := d.Spec.Template, withExtra(t, ns, d.Spec.Template)
	r := &halfway{t: t, ns: ns, node: node}
	r.old = r.templates()[0]

	r.roll(with, false)
	cluster.Eventually(t, soon, "there is a pod of the new template", func() error {
		if all := r.templates(); len(all) != 3 {
			return fmt.Errorf("the pods have the templates %q", all)
		}
		return nil
	})
	r.roll(with, true)
	r.lead(false)
	before := r.waitExtra(true)
	r.lead(true)
	r.waitSaid("not in the module tree; it stays as it is until the rollout of Deployment starling is done, or undone: pods of two templates are there")
	time.Sleep(longer)
	if after := r.waitExtra(true); after != before {
		t.Errorf("it was made anew: %s, then %s", before, after)
	}
	r.roll(old, false)
	r.waitExtra(false)
}

// withExtra is the template of Starling's Deployment with a module more, whose files are in another ConfigMap.
func withExtra(t *testing.T, ns string, template corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	t.Helper()
	files := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "addons-extra"}, Data: map[string]string{}}
	var items []corev1.KeyToPath
	for path, text := range mirror("extra", `module(enabled = True, namespace = "hello")`+"\n") {
		key := strings.ReplaceAll(path, "/", ".")
		files.Data[key] = text
		items = append(items, corev1.KeyToPath{Key: key, Path: path})
	}
	if _, err := shared.Client.CoreV1().ConfigMaps(ns).Create(t.Context(), files, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(items, func(a, b corev1.KeyToPath) int { return strings.Compare(a.Key, b.Key) })
	template = *template.DeepCopy()
	for i := range template.Spec.Volumes {
		if v := &template.Spec.Volumes[i]; v.Name == "modules" {
			source := func(name string, items []corev1.KeyToPath) corev1.VolumeProjection {
				return corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Items: items}}
			}
			v.Projected = &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{source(v.ConfigMap.Name, v.ConfigMap.Items), source(files.Name, items)}}
			v.ConfigMap = nil
		}
	}
	return template
}

// halfway is Starling's Deployment, whose pods may have two templates.
type halfway struct {
	t    *testing.T
	ns   string
	node *cluster.Pods
	old  string // the hash of the first template
}

// roll gives the Deployment a template, as `kubectl rollout undo` does, too, and pauses or resumes its rollout.
func (r *halfway) roll(template corev1.PodTemplateSpec, paused bool) {
	r.t.Helper()
	deployments := shared.Client.AppsV1().Deployments(r.ns)
	cluster.Eventually(r.t, soon, "the Deployment takes a template", func() error {
		d, err := deployments.Get(r.t.Context(), "starling", metav1.GetOptions{})
		if err != nil {
			return err
		}
		d.Spec.Template, d.Spec.Paused = template, paused
		_, err = deployments.Update(r.t.Context(), d, metav1.UpdateOptions{})
		return err
	})
}

// pods are those that do not end.
func (r *halfway) pods() (pods []corev1.Pod) {
	r.t.Helper()
	list, err := shared.Client.CoreV1().Pods(r.ns).List(r.t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=starling"})
	if err != nil {
		r.t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
}

// templates are the hashes of the templates of all pods.
func (r *halfway) templates() (all []string) {
	for _, pod := range r.pods() {
		all = append(all, pod.Labels["pod-template-hash"])
	}
	return all
}

// lead ends pods of the other template until one of the old, or the new, template leads.
func (r *halfway) lead(old bool) {
	r.t.Helper()
	for began := time.Now(); time.Since(began) < 2*soon; {
		var leader *corev1.Pod
		cluster.Eventually(r.t, soon, "three pods are ready, and one leads", func() error {
			pods, ready := r.pods(), 0
			leader = nil
			for i := range pods {
				pod := &pods[i]
				if slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue }) {
					ready++
				}
				if answer, err := http.Get("http://" + r.node.Address(pod.Status.PodIP, 9115) + "/metrics"); err == nil {
					if strings.Contains(readAll(answer.Body), "\nstarling_leader 1\n") {
						leader = pod
					}
					answer.Body.Close()
				}
			}
			if ready != 3 || leader == nil {
				return fmt.Errorf("%d of %d are ready, and the leader is %v", ready, len(pods), leader != nil)
			}
			return nil
		})
		if (leader.Labels["pod-template-hash"] == r.old) == old {
			return
		}
		for _, pod := range r.pods() {
			if (pod.Labels["pod-template-hash"] == r.old) != old {
				if err := shared.Client.CoreV1().Pods(r.ns).Delete(r.t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))}); err != nil {
					r.t.Fatal(err)
				}
			}
		}
	}
	r.t.Fatalf("a pod of the old template: %v; it does not lead", old)
}

// waitExtra waits until the module has installed what it installs, or has no more of it.
func (r *halfway) waitExtra(want bool) (uid types.UID) {
	r.t.Helper()
	cluster.Eventually(r.t, soon, fmt.Sprint("the module is installed: ", want), func() error {
		cm, err := shared.Client.CoreV1().ConfigMaps("hello").Get(r.t.Context(), "extra", metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if (err == nil) != want {
			return fmt.Errorf("it is not so: %v", err)
		}
		uid = cm.UID
		return nil
	})
	return uid
}

// waitSaid waits until the Module object says this.
func (r *halfway) waitSaid(text string) {
	r.t.Helper()
	cluster.Eventually(r.t, soon, "Module extra says: "+text, func() error {
		o, err := shared.Dynamic.Resource(moduleResource).Get(r.t.Context(), "extra", metav1.GetOptions{})
		if err != nil {
			return err
		}
		return holds(fmt.Sprint(o.Object["status"]), []string{text})
	})
}
