package release

import (
	"fmt"
	"testing"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
	helmtime "helm.sh/helm/v3/pkg/time"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/modules/release/owned"
)

// A number of replicas is written once, however often the upgrade fails that has brought it.
func TestRetriesLeaveReplicas(t *testing.T) {
	w, _ := newSimulatedDrift(t)
	target := w.target("red")
	target.Chart = chartOf("web", `apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data: {port: {{ .Values.port }}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}]}
`)
	release := func(port string, replicas, want int64, fails bool) {
		t.Helper()
		target.Values = map[string]any{"port": port, "replicas": replicas}
		_, err := w.Reconcile(t.Context(), target)
		got, _, _ := unstructured.NestedInt64((&others{w, deployments}).get().Object, "spec", "replicas")
		if err != nil != fails || got != want {
			t.Fatalf("%d replicas, %v", got, err)
		}
	}
	scale := func(n int) {
		(&others{w, deployments}).patch("kube-controller-manager", types.MergePatchType, fmt.Sprintf(`{"spec":{"replicas":%d}}`, n), "scale")
	}
	release(`"1"`, 2, 2, false)
	scale(8)
	release("1", 3, 3, true)
	scale(8)
	release("1", 3, 8, true)
	release("1", 3, 8, true)
	release(`"2"`, 3, 8, false)
	release(`"2"`, 4, 4, false)
}

// A try counts if it may have written the object: one before it may be gone from the history.
func TestTries(t *testing.T) {
	web := stored{key: Key{Namespace: "apps", Name: "web"}, mapping: &meta.RESTMapping{GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}}}
	start := time.Date(2026, 1, 1, 0, 0, 0, 5, time.UTC)
	rel := func(number int, status helmrelease.Status) *helmrelease.Release {
		return &helmrelease.Release{
			Version: number, Info: &helmrelease.Info{Status: status, LastDeployed: helmtime.Time{Time: start.Add(time.Duration(number) * time.Minute)}},
			Manifest: fmt.Sprintf("---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: %d}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: other}\n", number),
		}
	}
	deployed, failed := helmrelease.StatusDeployed, helmrelease.StatusFailed
	for name, tt := range map[string]struct {
		list  []*helmrelease.Release
		wrote int // the minute
		want  string
	}{
		"none failed":              {[]*helmrelease.Release{rel(1, deployed)}, 9, "[]"},
		"failed before":            {[]*helmrelease.Release{rel(1, failed), rel(2, deployed)}, 9, "[]"},
		"two":                      {[]*helmrelease.Release{rel(3, failed), rel(1, deployed), rel(2, failed)}, 3, "[2 3]"},
		"the second wrote nothing": {[]*helmrelease.Release{rel(1, deployed), rel(2, failed), rel(3, failed)}, 2, "[2]"},
		"none wrote anything":      {[]*helmrelease.Release{rel(1, deployed), rel(2, failed)}, 1, "[]"},
		"the first is gone":        {[]*helmrelease.Release{rel(1, deployed), rel(7, failed)}, 2, "[7]"},
	} {
		numbers := []any{}
		for _, obj := range triesOf(tt.list).of(web, start.Add(time.Duration(tt.wrote)*time.Minute).Truncate(time.Second)) {
			numbers = append(numbers, obj["spec"].(map[string]any)["replicas"])
		}
		if got := fmt.Sprint(numbers); got != tt.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// The API server refuses a stringData that is no text, also where a path of the Secret is ignored.
func TestASecretThatIsNoText(t *testing.T) {
	w, _ := newSimulatedDrift(t)
	target := w.target("red")
	target.Chart = chartOf("web", `apiVersion: v1
kind: Secret
metadata: {name: web}
stringData: {password: "p", port: {{ .Values.port }}}
`)
	target.Ignore = []owned.Ignore{{Kind: "Secret", Path: owned.Path{{Field: "data"}, {Field: "password"}}}}
	for _, port := range []string{`"8080"`, "8081"} {
		target.Values = map[string]any{"port": port}
		if _, err := w.Reconcile(t.Context(), target); (err != nil) != (port == "8081") {
			t.Errorf("%s: %v", port, err)
		}
	}
	secret := (&others{w, schema.GroupVersionResource{Version: "v1", Resource: "secrets"}}).get()
	if port, _, _ := unstructured.NestedString(secret.Object, "data", "port"); port != "ODA4MA==" {
		t.Errorf("the port is %q", port)
	}
}

// A rule that comes before another one does not take its weights, and elements of others stay in a list that has one
// owner.
func TestElementsOfOthers(t *testing.T) {
	w, _ := newSimulatedDrift(t)
	target := w.target("red")
	target.Chart = chartOf("web", replaceGroup(`apiVersion: GROUP/v1
kind: Gadget
metadata: {name: web, annotations: {n: "{{ .Values.admin }}"}}
spec:
  list: [{name: a}]
  rules:
  {{ if .Values.admin }}- {path: /admin, refs: [{name: stable, weight: 100}, {name: canary, weight: 0}]}{{ end }}
  - {path: /api, refs: [{name: stable, weight: 100}, {name: canary, weight: 0}]}
`, w.group))
	for _, text := range []string{"Gadget spec.rules[*].refs[*].weight", "Gadget spec.list[name=c]"} {
		i, err := owned.ParseIgnore(text)
		if err != nil {
			t.Fatal(err)
		}
		target.Ignore = append(target.Ignore, i)
	}
	o := &others{w, schema.GroupVersionResource{Group: w.group, Version: "v1", Resource: "gadgets"}}
	is := func(want string) {
		t.Helper()
		if got := fmt.Sprint(o.get().Object["spec"]); got != want {
			t.Errorf("got %s", got)
		}
	}
	release := func(admin bool) {
		t.Helper()
		target.Values = map[string]any{"admin": admin}
		if _, err := w.Reconcile(t.Context(), target); err != nil {
			t.Fatal(err)
		}
	}
	release(false)
	o.merge(`{"spec":{"list":[{"name":"a"},{"name":"c"}],"rules":[{"path":"/api","refs":[{"name":"stable","weight":10},{"name":"canary","weight":90}]}]}}`)
	release(true)
	both := "map[list:[map[name:a] map[name:c]] rules:[map[path:/admin refs:[map[name:stable weight:100] map[name:canary weight:0]]] map[path:/api refs:[map[name:stable weight:10] map[name:canary weight:90]]]]]"
	is(both)
	if out, err := w.Repair(t.Context(), RepairTarget{Target: target}); err != nil || len(out.Written) > 0 {
		t.Errorf("%+v, %v", out, err)
	}
	is(both)
	o.merge(`{"spec":{"list":[{"name":"c"},{"name":"d"}]}}`)
	if _, err := w.Repair(t.Context(), RepairTarget{Target: target}); err != nil {
		t.Error(err)
	}
	is("map[list:[map[name:a] map[name:c]]" + both[len("map[list:[map[name:a] map[name:c]]"):])
}
