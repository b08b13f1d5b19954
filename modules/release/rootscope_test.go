package release

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/chart"
)

// testNamespaceOfARole releases an object that is in no namespace and whose chart names one, which counts nowhere.
func testNamespaceOfARole(t *testing.T, w *driftWorld) {
	for _, namespace := range []string{w.apps, "elsewhere"} {
		t.Run(namespace, func(t *testing.T) {
			name := w.apps + "-web"
			role := "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: " + name + ", namespace: " + namespace +
				"}\nrules: [{apiGroups: [\"\"], resources: [pods], verbs: [\"{{ .Values.verb }}\"]}]\n"
			target := Target{Input: chart.Input{
				Module: "web", Name: "web", Namespace: w.apps, Chart: chartOf("web", role, nearMap),
				Installs: []builtins.Grant{{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"}},
			}}
			step := func(verb, action string) {
				t.Helper()
				target.Values = map[string]any{"verb": verb}
				res, err := w.Reconcile(t.Context(), target)
				if err != nil || res.Action != action {
					t.Fatalf("%+v, %v", res, err)
				}
				for _, o := range res.Objects.Seen {
					if o.Kind == "ClusterRole" && o.Namespace != "" {
						t.Errorf("%+v", o.Key)
					}
				}
			}
			verb := func(want string) {
				t.Helper()
				live, err := w.client.Resource(clusterRoles).Get(t.Context(), name, metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				rules, _, _ := unstructured.NestedSlice(live.Object, "rules")
				if got := rules[0].(map[string]any)["verbs"].([]any)[0]; got != want {
					t.Errorf("verb %v, want %s", got, want)
				}
			}
			key := Key{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: name}
			repair := func(gone []Key, written int) {
				t.Helper()
				version := func() string {
					live, err := w.client.Resource(clusterRoles).Get(t.Context(), name, metav1.GetOptions{})
					if err != nil {
						return ""
					}
					return live.GetResourceVersion()
				}
				before := version()
				out, err := w.Repair(t.Context(), RepairTarget{Target: target, Only: []Key{key}, Gone: gone})
				if err != nil || len(out.Written) != written || out.Lost || written == 0 && version() != before {
					t.Errorf("%+v, %v, version %s, now %s", out, err, before, version())
				}
			}
			step("get", ActionInstalled)
			step("list", ActionUpgraded)
			verb("list")
			repair(nil, 0)
			patch := []byte(`{"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["delete"]}]}`)
			if _, err := w.client.Resource(clusterRoles).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			repair(nil, 1)
			verb("list")
			if err := w.client.Resource(clusterRoles).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			repair([]Key{key}, 1)
			verb("list")
			target.Chart = chartOf("web", strings.Replace(role, ", namespace: "+namespace, "", 1), nearMap)
			step("list", ActionUpgraded)
			verb("list")
			target.Chart = chartOf("web", nearMap)
			step("list", ActionUpgraded)
			if w.there(clusterRoles, "", name) {
				t.Error("it stays, though the chart holds it no more")
			}
			target.Chart = chartOf("web", role, nearMap)
			step("list", ActionUpgraded)
			if _, err := w.Uninstall(t.Context(), target.Ref(), 0); err != nil || w.there(clusterRoles, "", name) {
				t.Errorf("it outlives its release; %v", err)
			}
		})
	}
}

func TestTheNamespaceOfARole(t *testing.T) {
	w, _ := newSimulatedDrift(t)
	testNamespaceOfARole(t, w)
}
