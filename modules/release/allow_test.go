package release

import (
	"strings"
	"testing"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/runtime/effect"
)

func TestInstalls(t *testing.T) {
	const roles = "rbac.authorization.k8s.io/v1"
	for _, tt := range []struct {
		name, manifest string
		installs       []builtins.Grant
		missing        string
	}{
		{"everyday", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, namespace: web}", nil, ""},
		{"elsewhere", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: kube-system}", nil, `grant("v1", "ConfigMap", namespaces = ["kube-system"])`},
		{"elsewhere, named", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: kube-system}", []builtins.Grant{{APIVersion: "v1", Kind: "ConfigMap", Namespaces: []string{"kube-system"}}}, ""},
		{"rights", "apiVersion: " + roles + "\nkind: Role\nmetadata: {name: a}\n---\napiVersion: " + roles + "\nkind: ClusterRole\nmetadata: {name: a}", nil,
			`grant("` + roles + `", "Role"), grant("` + roles + `", "ClusterRole")`},
		{"rights, named", "apiVersion: " + roles + "\nkind: ClusterRole\nmetadata: {name: a}", []builtins.Grant{{APIVersion: roles, Kind: "ClusterRole", Names: []string{"a"}}}, ""},
		{"another name", "apiVersion: " + roles + "\nkind: ClusterRole\nmetadata: {name: b}", []builtins.Grant{{APIVersion: roles, Kind: "ClusterRole", Names: []string{"a"}}}, `grant("` + roles + `", "ClusterRole")`},
		{"definitions", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}", nil, `grant("apiextensions.k8s.io/v1", "CustomResourceDefinition")`},
		{"a kind that only looks so", "apiVersion: example.com/v1\nkind: ConfigMap\nmetadata: {name: a}", nil, `grant("example.com/v1", "ConfigMap")`},
		{"in a list", "apiVersion: v1\nkind: List\nitems: [{apiVersion: example.com/v1, kind: Thing, metadata: {name: a}}]", nil, `grant("example.com/v1", "Thing")`},
		{"in a list of its kind", "apiVersion: example.com/v1\nkind: ThingList\nitems: [{metadata: {name: a}}]", nil, `grant("example.com/v1", "Thing")`},
		{"in what poses as no list", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nitems: [{apiVersion: v1, kind: Node, metadata: {name: a}}]", nil, `grant("v1", "Node")`},
		{"in other letters", "apiVersion: v1\nkind: Node\nKind: ConfigMap\nmetadata: {name: a}", nil, `grant("v1", "Node")`},
		{"of a hook", "apiVersion: v1\nkind: Node\nmetadata: {name: a, annotations: {helm.sh/hook: pre-install}}", nil, `grant("v1", "Node")`},
		{"of a test", "apiVersion: v1\nkind: Node\nmetadata: {name: a, annotations: {helm.sh/hook: test}}", nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			objects, err := chart.ObjectsOf(tt.manifest)
			if err != nil {
				t.Fatal(err)
			}
			target := Target{Input: chart.Input{Namespace: "web", Installs: tt.installs}}
			lines, wrong := chart.MissingInstalls(target.Input, objects)
			if got := strings.Join(lines, ", "); got != tt.missing || len(wrong) > 0 {
				t.Errorf("got  %s %v\nwant %s", got, wrong, tt.missing)
			}
			m := &Manager{o: Options{Namespace: "starling-system", Name: "starling"}}
			if err := m.limit(target, objects); (err == nil) != (tt.missing == "") {
				t.Errorf("limit: %v", err)
			}
		})
	}
	node := []chart.Object{{Ref: Key{APIVersion: "v1", Kind: "Node", Name: "a"}, Hook: true, Test: true}}
	if lines, _ := chart.MissingInstalls(chart.Input{Namespace: "web", Test: true}, node); len(lines) != 1 {
		t.Errorf("of a test that runs: %q", lines)
	}
	m := &Manager{o: Options{Namespace: "ops", Name: "starling"}}
	typo := []chart.Object{{Ref: Key{APIVersion: "apps/v1", Kind: "Deploymnt", Name: "web"}}}
	if err := m.limit(Target{Input: chart.Input{Namespace: "web"}}, typo); err == nil || !strings.HasSuffix(err.Error(), "kind Deploymnt, and there is none (did you mean Deployment?)") {
		t.Errorf("a kind that is written wrongly: %v", err)
	}
	own := []chart.Object{{Ref: Key{APIVersion: "v1", Kind: "ConfigMap", Name: "starling"}}}
	if err := m.limit(Target{Input: chart.Input{Namespace: "ops"}}, own); err == nil || !strings.Contains(err.Error(), "belongs to Starling itself") {
		t.Errorf("its own ConfigMap: %v", err)
	}
	m.o.Others = func(ref effect.Ref) bool {
		return ref == effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "web", Name: "starling"}
	}
	if err := m.limit(Target{Input: chart.Input{Namespace: "web"}}, own); err == nil || !strings.Contains(err.Error(), "another Starling takes its config from it") {
		t.Errorf("the ConfigMap of another instance: %v", err)
	}
	token, err := chart.ObjectsOf("apiVersion: v1\nkind: Secret\ntype: kubernetes.io/service-account-token\nmetadata: {name: t, annotations: {kubernetes.io/service-account.name: starling}}\n")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.limit(Target{Input: chart.Input{Namespace: "ops"}}, token); err == nil || !strings.Contains(err.Error(), "Secret t with the token of a ServiceAccount in Starling's namespace") {
		t.Errorf("a token of its namespace: %v", err)
	}
	if err := m.limit(Target{Input: chart.Input{Namespace: "web"}}, token); err != nil {
		t.Errorf("a token of the release's own namespace: %v", err)
	}
}
