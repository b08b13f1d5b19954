package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/runtime/record"
)

var applications = schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "applications"}

// examples/application promises: the children of an Application are there, those that somebody deletes
// or changes are put right, and all go before it does.
func TestApplication(t *testing.T) {
	t.Parallel()
	t.Cleanup(func() {
		_ = shared.Dynamic.Resource(definitions).Delete(context.Background(), "applications.example.org", metav1.DeleteOptions{})
	})
	f := example(t, "application")
	f.start()
	f.waitReady()

	ns := shared.Namespace(t)
	apps, services := shared.Dynamic.Resource(applications).Namespace(ns), shared.Client.CoreV1().Services(ns)
	deployments, ingresses := shared.Client.AppsV1().Deployments(ns), shared.Client.NetworkingV1().Ingresses(ns)
	apply := func(name, image string) {
		t.Helper()
		shared.Apply(t, fmt.Sprintf("apiVersion: example.org/v1\nkind: Application\nmetadata: {name: %s, namespace: %s}\nspec: {image: %q, host: %[1]s.example.com}\n", name, ns, image))
	}
	apply("blog", "nginx:1")
	f.eventually("the children are there", func() error {
		if _, err := services.Get(t.Context(), "blog", metav1.GetOptions{}); err != nil {
			return err
		}
		_, err := ingresses.Get(t.Context(), "blog", metav1.GetOptions{})
		return err
	})
	says := func(name, status, message string) func() error {
		return func() error {
			app, err := apps.Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			conditions, _, _ := unstructured.NestedSlice(app.Object, "status", "conditions")
			seen, _, _ := unstructured.NestedInt64(app.Object, "status", "observedGeneration")
			for _, c := range conditions {
				m, _ := c.(map[string]any)
				if text := fmt.Sprint(m["message"]); m["type"] == "Ready" && m["status"] == status && strings.Contains(text, message) && seen == app.GetGeneration() {
					return nil
				}
			}
			return fmt.Errorf("of generation %d it has seen %d, and says %v", app.GetGeneration(), seen, conditions)
		}
	}
	f.eventually("the Application says that it is ready", says("blog", "True", "all children are as they should be"))
	if got := columns(t, ns); !strings.HasPrefix(got, "blog nginx:1 blog.example.com True all children are as they should be ") {
		t.Errorf("kubectl get apps shows %q", got)
	}
	f.nothingToPlan()

	// The page says that it is back within a second. The best of three says that of Starling, not of the machine.
	best := soon
	for range 3 {
		before, err := services.Get(t.Context(), "blog", metav1.GetOptions{})
		if err != nil || len(before.OwnerReferences) != 1 {
			t.Fatalf("the Service is %+v, %v", before, err)
		}
		began := time.Now()
		if err := services.Delete(t.Context(), "blog", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		f.eventually("a Service that somebody deletes comes back", func() error {
			s, err := services.Get(t.Context(), "blog", metav1.GetOptions{})
			if err == nil && s.UID == before.UID {
				err = fmt.Errorf("it is the one of before")
			}
			return err
		})
		best = min(best, time.Since(began))
		f.eventually("the Application is ready again", says("blog", "True", ""))
	}
	t.Logf("back after %s", best.Round(time.Millisecond))
	if best > 5*time.Second {
		t.Errorf("a Service that somebody deletes is back after %s, and not within a second", best)
	}

	apply("blog", "nginx:2")
	f.eventually("the Deployment follows the image", func() error {
		d, err := deployments.Get(t.Context(), "blog", metav1.GetOptions{})
		if err == nil && d.Spec.Template.Spec.Containers[0].Image != "nginx:2" {
			err = fmt.Errorf("it has %s", d.Spec.Template.Spec.Containers[0].Image)
		}
		return err
	})
	f.eventually("the Application is ready again", says("blog", "True", ""))

	shared.Apply(t, fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: taken, namespace: %s}\nspec: {ports: [{port: 1}]}\n", ns))
	apply("taken", "nginx:1")
	f.eventually("an Application names the child that is in its way", says("taken", "False", "Service "+ns+"/taken: it is there"))
	keep := func(finalizers string) {
		t.Helper()
		if _, err := services.Patch(t.Context(), "blog", types.MergePatchType, []byte(`{"metadata": {"finalizers": `+finalizers+`}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	keep(`["example.org/hold"]`)
	if err := apps.Delete(t.Context(), "blog", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.eventually("the Application names the child that stays, and why", says("blog", "False", "Service "+ns+"/blog: it is being deleted, and stays until finalizer example.org/hold"))
	keep("null")
	f.eventually("the Application goes", func() error {
		if _, err := apps.Get(t.Context(), "blog", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %v", err)
		}
		return nil
	})
	for what, get := range map[string]func() error{
		"Deployment": func() error { _, err := deployments.Get(t.Context(), "blog", metav1.GetOptions{}); return err },
		"Service":    func() error { _, err := services.Get(t.Context(), "blog", metav1.GetOptions{}); return err },
		"Secret": func() error {
			_, err := shared.Client.CoreV1().Secrets(ns).Get(t.Context(), "blog", metav1.GetOptions{})
			return err
		},
		"Ingress": func() error { _, err := ingresses.Get(t.Context(), "blog", metav1.GetOptions{}); return err },
	} {
		if err := get(); !apierrors.IsNotFound(err) {
			t.Errorf("the Application went before its %s: %v", what, err)
		}
	}
	f.replayed(ns + "/blog")

	// The page has the same by hand.
	if err := apps.Delete(t.Context(), "taken", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	kubectl{t, ns, map[string]types.UID{}}.session("../docs/controllers.md")
}

// replayed replays the first run about a parent.
func (f *fixture) replayed(key string) {
	f.t.Helper()
	var runs []record.Header
	out, err := f.process.Get(f.t.Context(), "runs", "apps")
	if err == nil {
		err = json.Unmarshal(out, &runs)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	for _, run := range slices.Backward(runs) {
		if run.Key != key {
			continue
		}
		if out, err := f.replay(run.ID); err != nil || !strings.Contains(out, "\ndecided: create ") || !strings.Contains(out, key+": it is not there\n") || !strings.Contains(out, "# the same as recorded\n") {
			f.t.Errorf("replay of %s: %v\n%s", run.ID, err, out)
		}
		return
	}
	f.t.Errorf("no run about %s is recorded: %+v", key, runs)
}

// columns are what kubectl get shows of the Applications in a namespace.
func columns(t *testing.T, ns string) string {
	t.Helper()
	data, err := shared.Client.Discovery().RESTClient().Get().AbsPath("apis/example.org/v1/namespaces", ns, "applications").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	var table metav1.Table
	if err == nil {
		err = json.Unmarshal(data, &table)
	}
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, row := range table.Rows {
		rows = append(rows, strings.TrimSuffix(fmt.Sprintln(row.Cells...), "\n"))
	}
	return strings.Join(rows, "; ")
}
