package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/e2e/cluster"
)

// corpusKinds are the resources that charts of the corpus make; those that controllers make
// (Pods, ReplicaSets) are not among them.
var corpusKinds = []schema.GroupVersionResource{
	{Version: "v1", Resource: "configmaps"},
	{Version: "v1", Resource: "secrets"},
	{Version: "v1", Resource: "services"},
	{Version: "v1", Resource: "serviceaccounts"},
	{Version: "v1", Resource: "persistentvolumeclaims"},
	{Version: "v1", Resource: "resourcequotas"},
	{Version: "v1", Resource: "limitranges"},
	{Group: "apps", Version: "v1", Resource: "deployments"},
	{Group: "apps", Version: "v1", Resource: "daemonsets"},
	{Group: "apps", Version: "v1", Resource: "statefulsets"},
	{Group: "batch", Version: "v1", Resource: "jobs"},
	{Group: "batch", Version: "v1", Resource: "cronjobs"},
	{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"},
	{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
	{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"},
	{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"},
	{Group: "networking.k8s.io", Version: "v1", Resource: "ingressclasses"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
	{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"},
	{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"},
	{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"},
	{Group: "storage.k8s.io", Version: "v1", Resource: "csidrivers"},
	{Group: "node.k8s.io", Version: "v1", Resource: "runtimeclasses"},
	{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"},
	definitions,
	{Group: "operator.charts.example", Version: "v1", Resource: "widgets"},
	{Group: "operator.charts.example", Version: "v1", Resource: "widgetclasses"},
}

// left are the resources of which releases leave objects behind, as Helm's do: Jobs and
// accounts of hooks, claims.
var left = []schema.GroupVersionResource{
	{Group: "batch", Version: "v1", Resource: "jobs"},
	{Version: "v1", Resource: "persistentvolumeclaims"},
	{Version: "v1", Resource: "serviceaccounts"},
}

// leftBehind are their names: objects of hooks that no policy deletes, claims of
// StatefulSets, what has the policy keep, and definitions of crds/.
var leftBehind = []string{
	"CustomResourceDefinition plants.operator.charts.example",
	"CustomResourceDefinition rules.monitors.charts.example",
	"CustomResourceDefinition widgetclasses.operator.charts.example",
	"CustomResourceDefinition widgets.operator.charts.example",
	"Job charts-migrate/schema",
	"Job charts-migrate/seed-1",
	"Job charts-migrate/seed-2",
	"Job charts-migrate/trace",
	"PersistentVolumeClaim charts-database/data-database-0",
	"PersistentVolumeClaim charts-database/data-database-1",
	"PersistentVolumeClaim charts-database/database-backup",
	"ServiceAccount charts-migrate/migrate",
}

// definedLater comes with a subchart that the upgrade switches on: Helm applies crds/ with the
// first revision only.
const definedLater = "CustomResourceDefinition topics.queue.charts.example"

// snapshot is what the charts of the corpus have made, by kind, namespace and name, as YAML
// without what differs from one install to the next.
func snapshot(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, resource := range corpusKinds {
		list, err := shared.Dynamic.Resource(resource).List(t.Context(), metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			continue // its definition has gone
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			if o := &list.Items[i]; ofCorpus(o) {
				text, err := yaml.Marshal(withoutNoise(o).Object)
				if err != nil {
					t.Fatal(err)
				}
				out[strings.TrimSpace(o.GetKind()+" "+strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/"))] = steadyTexts(string(text))
			}
		}
	}
	return out
}

// ofCorpus says that an object is one of the corpus: Helm has noted so, or it stands in one
// of its namespaces.
func ofCorpus(o *unstructured.Unstructured) bool {
	switch {
	case o.GetKind() == "CustomResourceDefinition":
		return strings.HasSuffix(o.GetName(), ".charts.example")
	case o.GetNamespace() == "":
		return strings.HasPrefix(o.GetAnnotations()["meta.helm.sh/release-namespace"], "charts-")
	case !strings.HasPrefix(o.GetNamespace(), "charts-"):
		return strings.HasPrefix(o.GetName(), "charts-") || strings.HasPrefix(o.GetAnnotations()["meta.helm.sh/release-namespace"], "charts-")
	}
	return o.GetName() != "kube-root-ca.crt" && !(o.GetKind() == "ServiceAccount" && o.GetName() == "default") &&
		!strings.HasPrefix(o.GetName(), "sh.helm.release.v1.") && len(o.GetOwnerReferences()) == 0 &&
		!strings.HasSuffix(o.GetName(), ".op-starling") // the role that the instance runs under
}

// withoutNoise leaves out what the API server and controllers fill in, what is random, and
// what Starling notes on objects.
func withoutNoise(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	meta, _ := o.Object["metadata"].(map[string]any)
	for _, key := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "finalizers"} {
		delete(meta, key)
	}
	for _, key := range []string{"labels", "annotations"} {
		notes, _ := meta[key].(map[string]any)
		for name := range notes {
			if domain, _, _ := strings.Cut(name, "/"); domain == "starling.dev" || domain == "deployment.kubernetes.io" || strings.HasPrefix(name, "volume.") || strings.HasPrefix(name, "pv.") {
				delete(notes, name)
			}
		}
		if len(notes) == 0 {
			delete(meta, key)
		}
	}
	delete(o.Object, "status")
	if o.GetKind() == "ClusterRole" && o.Object["aggregationRule"] != nil {
		delete(o.Object, "rules") // a controller fills them in
	}
	if data, _ := o.Object["data"].(map[string]any); o.GetKind() == "Secret" {
		for _, key := range []string{"password", "ca.crt", "tls.crt", "tls.key"} {
			if data[key] != nil {
				data[key] = "RANDOM"
			}
		}
	}
	return o
}

var steadyPatterns = []struct {
	find *regexp.Regexp
	put  string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`\b10\.96\.\d+\.\d+`), "IP"},
	{regexp.MustCompile(`(?m)(nodePort|healthCheckNodePort): \d+`), "$1: PORT"},
	{regexp.MustCompile(`(?m)caBundle: .*`), "caBundle: RANDOM"},
	{regexp.MustCompile(`(?m)volumeName: .*`), "volumeName: VOLUME"},
}

func steadyTexts(text string) string {
	for _, p := range steadyPatterns {
		text = p.find.ReplaceAllString(text, p.put)
	}
	return text
}

// waitLeft waits until nothing but leftBehind and more is there, and returns it.
func waitLeft(t *testing.T, more ...string) (found map[string]string) {
	t.Helper()
	want := slices.Sorted(slices.Values(slices.Concat(leftBehind, more)))
	cluster.Eventually(t, soon, "the releases have gone", func() error {
		found = snapshot(t)
		names := slices.Sorted(maps.Keys(found))
		if diff := cmp.Diff(want, names); diff != "" {
			return fmt.Errorf("(-want +there)\n%s", diff)
		}
		return nil
	})
	return found
}

// deleteDefinitions deletes those of the corpus, and waits until they have gone.
func deleteDefinitions(t *testing.T) {
	t.Helper()
	client := shared.Dynamic.Resource(definitions)
	cluster.Eventually(t, soon, "the definitions have gone", func() error {
		list, err := client.List(context.Background(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range list.Items {
			name := list.Items[i].GetName()
			if !strings.HasSuffix(name, ".charts.example") {
				continue
			}
			if e := client.Delete(context.Background(), name, metav1.DeleteOptions{}); e != nil && !apierrors.IsNotFound(e) {
				return e
			}
			err = errors.New(name + " is still there")
		}
		return err
	})
}
