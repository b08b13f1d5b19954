package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/modules/status"
)

// deploy/starling.yaml promises: it is accepted under the restricted Pod Security
// standard and applied twice without a change; with the token of its ServiceAccount,
// and no other right, Starling does the quickstart, and tells on its Deployment why a
// tree cannot be used; deleting all of the file leaves what
// runs running, and who installs it again goes on where that is.
//
// It is no parallel test: its namespaces have fixed names.
func TestInstall(t *testing.T) {
	const ns = "starling-system"
	ownNamespaces(t, ns, "hello")
	text, err := os.ReadFile("../deploy/starling.yaml")
	if err != nil {
		t.Fatal(err)
	}
	namespaces, err := os.ReadFile("../deploy/namespaces.yaml")
	if err != nil {
		t.Fatal(err)
	}
	objects := manifests(t, string(text))
	t.Cleanup(func() { deleteAll(t, objects) })
	shared.Apply(t, string(namespaces))
	shared.Apply(t, string(text))
	d := waitAvailable(t, ns, "starling")
	if err := restricted(t, ns); err != nil {
		t.Error(err)
	}

	cluster.Eventually(t, soon, "another apply changes nothing", func() error { // but controllers may write a status
		before := versions(t, objects)
		shared.Apply(t, string(text))
		for what, version := range versions(t, objects) {
			if version != before[what] {
				return fmt.Errorf("it changes %s", what)
			}
		}
		return nil
	})

	f := &fixture{t: t, ns: ns, name: "starling", kube: shared.TokenKubeconfig(t, ns, "starling"), objects: true, single: "it is in the place of one Pod"}
	files := mountedFiles(t, d)
	v := newVolume(f, "..data", files)
	t.Setenv("POD_NAME", podOf(t, d)) // as the Deployment does
	waitRights(t, f.kube)
	if err := mayNot(t, f.kube); err != nil {
		t.Error(err)
	}
	f.start()
	f.waitReady()
	f.waitState("hello", status.ModuleReady)
	f.waitHello([]string{"fake-0"}, "Hello from Starling")
	shared.AddNode(t, "install", map[string]string{"kubernetes.io/os": "linux"})
	t.Cleanup(func() { // a pod goes before its node: without it, it would stay for a minute
		deleteAll(t, objects)
		cluster.Eventually(t, soon, "no pod is left", func() error {
			pods, err := shared.Client.CoreV1().Pods(ns).List(context.Background(), metav1.ListOptions{})
			if err == nil && len(pods.Items) > 0 {
				err = fmt.Errorf("there are %d", len(pods.Items))
			}
			return err
		})
	})
	f.waitHello([]string{"fake-0", "install"}, "Hello from Starling")
	f.configure(map[string]string{"hello": "greeting: Good morning"})
	f.waitHello([]string{"fake-0", "install"}, "Good morning")
	f.configure(map[string]string{})
	f.waitHello([]string{"fake-0", "install"}, "Hello from Starling")
	v.swap(map[string]string{"hello/module.star": "module(enabeld = True)\n"})
	f.waitReloadFailed("enabeld")
	waitEvent(t, d, "ReloadFailed")
	v.swap(map[string]string{"hello/module.star": files["hello/module.star"]})
	f.waitGeneration(1)
	waitEvent(t, d, "Reloaded")
	if strings.Contains(f.process.Output(), "forbidden") {
		t.Errorf("something was not allowed:\n%s", f.process.Output())
	}
	last, err := history("hello", "hello")
	if err != nil {
		t.Fatal(err)
	}
	f.waitState("hello", status.ModuleReady)

	// All of the file goes; what runs stays.
	if code := f.process.Stop(); code != 0 {
		t.Errorf("stopped with exit code %d", code)
	}
	runs := waitAvailable(t, "hello", "hello")
	deleteAll(t, objects)
	ownNamespace(t, ns)
	stays := waitAvailable(t, "hello", "hello")
	if stays.UID != runs.UID || stays.Generation != runs.Generation {
		t.Errorf("what runs was touched: generation %d, then %d", runs.Generation, stays.Generation)
	}

	// A process that comes back goes on: the release is found where it is.
	shared.Apply(t, string(text))
	waitAvailable(t, ns, "starling")
	f.kube = shared.TokenKubeconfig(t, ns, "starling")
	waitRights(t, f.kube)
	f.start()
	f.waitReady()
	f.waitState("hello", status.ModuleReady)
	f.waitRevision("hello", "hello", len(last))
}

// manifests reads the objects of a YAML stream.
func manifests(t *testing.T, text string) []unstructured.Unstructured {
	t.Helper()
	var out []unstructured.Unstructured
	docs := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		var obj unstructured.Unstructured
		if err := docs.Decode(&obj.Object); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		if obj.Object != nil {
			out = append(out, obj)
		}
	}
}

// versions are the resourceVersions of objects that are there.
func versions(t *testing.T, objects []unstructured.Unstructured) map[string]string {
	t.Helper()
	out := map[string]string{}
	for i := range objects {
		o := &objects[i]
		r, err := shared.Resource(o)
		if err != nil {
			t.Fatal(err)
		}
		live, err := r.Get(t.Context(), o.GetName(), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		out[o.GetKind()+" "+o.GetName()] = live.GetResourceVersion()
	}
	return out
}

// deleteAll deletes objects, as kubectl delete -f does.
func deleteAll(t *testing.T, objects []unstructured.Unstructured) {
	t.Helper()
	for i := range objects {
		r, err := shared.Resource(&objects[i])
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Delete(context.Background(), objects[i].GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	}
}

// ownNamespace waits until a namespace is gone.
func ownNamespace(t *testing.T, name string) {
	t.Helper()
	cluster.Eventually(t, 5*soon, "namespace "+name+" is gone", func() error {
		_, err := shared.Client.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
		if err == nil {
			return errors.New("it is there")
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// waitAvailable waits until the pods of a Deployment are there, by its latest version:
// nothing changes its status then.
func waitAvailable(t *testing.T, ns, name string) (d *appsv1.Deployment) {
	t.Helper()
	cluster.Eventually(t, soon, "Deployment "+ns+"/"+name+" is available", func() (err error) {
		if d, err = shared.Client.AppsV1().Deployments(ns).Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			return err
		}
		if d.Status.ObservedGeneration != d.Generation || d.Status.AvailableReplicas != *d.Spec.Replicas || d.Status.UpdatedReplicas != *d.Spec.Replicas {
			return fmt.Errorf("its status is %+v", d.Status)
		}
		return nil
	})
	return d
}

// restricted makes sure that the API server holds the namespace to its standard.
func restricted(t *testing.T, ns string) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "root"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "x"}}}}
	_, err := shared.Client.CoreV1().Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err == nil || !strings.Contains(err.Error(), "violates PodSecurity") {
		return fmt.Errorf("any pod may run in namespace %s: %w", ns, err)
	}
	return nil
}

// mayNot looks at some of what an admin may do.
func mayNot(t *testing.T, kubeconfig string) error {
	for _, what := range []authorizationv1.ResourceAttributes{
		{Verb: "*", Group: "*", Resource: "*"},
		{Verb: "create", Resource: "pods", Namespace: "kube-system"},
		{Verb: "create", Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
		{Verb: "delete", Resource: "nodes"},
		{Verb: "delete", Resource: "namespaces"},
		{Verb: "create", Resource: "namespaces"},
		{Verb: "list", Resource: "secrets"},
		{Verb: "get", Resource: "secrets", Namespace: "kube-system"},
		{Verb: "create", Resource: "secrets", Namespace: "default"},
	} {
		if allowed, err := may(t, kubeconfig, what); err != nil || allowed {
			return fmt.Errorf("it may %s %s (%v)", what.Verb, what.Resource, err)
		}
	}
	return nil
}

// may says what the API server allows to a user.
func may(t *testing.T, kubeconfig string, what authorizationv1.ResourceAttributes) (bool, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return false, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return false, err
	}
	review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}

// waitRights waits until the API server, which learns of them a moment later, honours the
// rights of deploy/starling.yaml: some of a Role, and some of a ClusterRole.
func waitRights(t *testing.T, kubeconfig string) {
	t.Helper()
	for _, what := range []authorizationv1.ResourceAttributes{
		{Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: "starling-system", Name: "starling"},
		{Verb: "watch", Resource: "nodes"},
	} {
		cluster.Eventually(t, soon, "the right to "+what.Verb+" "+what.Resource, func() error {
			allowed, err := may(t, kubeconfig, what)
			if err == nil && !allowed {
				err = errors.New("it is not there yet")
			}
			return err
		})
	}
}

// mountedFiles are the files that a Deployment's volume holds, by their paths.
func mountedFiles(t *testing.T, d *appsv1.Deployment) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, v := range d.Spec.Template.Spec.Volumes {
		if v.ConfigMap == nil {
			continue
		}
		data, err := configMap(t, d.Namespace, v.ConfigMap.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range v.ConfigMap.Items {
			text, ok := data[item.Key]
			if !ok {
				t.Errorf("ConfigMap %s has no key %s", v.ConfigMap.Name, item.Key)
			}
			out[item.Path] = text
		}
	}
	return out
}

// podOf returns the name of a pod of a Deployment.
func podOf(t *testing.T, d *appsv1.Deployment) string {
	t.Helper()
	pods, err := shared.Client.CoreV1().Pods(d.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(d.Spec.Selector)})
	if err != nil || len(pods.Items) != int(*d.Spec.Replicas) {
		t.Fatalf("%d pods of %s, %v", len(pods.Items), d.Name, err)
	}
	return pods.Items[0].Name
}

// waitEvent waits for an Event about a Deployment.
func waitEvent(t *testing.T, d *appsv1.Deployment, reason string) {
	t.Helper()
	cluster.Eventually(t, soon, "an Event "+reason, func() error {
		events, err := shared.Client.CoreV1().Events(d.Namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=" + reason})
		if err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.InvolvedObject.Kind == "Deployment" && e.InvolvedObject.UID == d.UID {
				return nil
			}
		}
		return fmt.Errorf("there are %d, none about the Deployment", len(events.Items))
	})
}
