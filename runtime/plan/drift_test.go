package plan

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/sim"
	"github.com/starling-operator/starling/runtime/sim/store"
)

// driftTemplates hold what API servers write otherwise than charts: quantities, defaults,
// empty fields, lists by keys, text that becomes data.
const driftTemplates = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, annotations: {note: a}, creationTimestamp: null}
spec:
  replicas: 2
  strategy: null
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      securityContext: {}
      volumes: [{name: tmp, emptyDir: {}}]
      containers:
      - name: web
        image: "web:1"
        args: [a, b]
        env: [{name: A, value: "1"}, {name: B, value: ""}]
        resources: {requests: {cpu: 1000m, memory: 1024Mi}, limits: {}}
        ports: [{containerPort: 53, protocol: UDP, name: udp}, {containerPort: 53, protocol: TCP, name: tcp}]
---
apiVersion: v1
kind: Service
metadata: {name: dns}
spec:
  selector: {app: web}
  ports: [{port: 53, protocol: UDP, name: udp}, {port: 53, name: tcp}]
---
apiVersion: v1
kind: Secret
metadata: {name: key}
stringData: {word: open sesame}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {a: b}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: stays, annotations: {"helm.sh/resource-policy": keep}}
data: {a: b}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: hooked, annotations: {"helm.sh/hook": post-install}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec: {ttlSecondsAfterFinished: 5, template: {spec: {restartPolicy: Never, containers: [{name: a, image: "a:1"}]}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: sum}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}
rules: []
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: web}
spec: {podSelector: {}, policyTypes: [Ingress], ingress: [{ports: [{port: 80}]}]}
`

// A plan says what others have changed in the objects of releases, and takes nothing for it
// that the API server, its controllers or Starling itself has done.
func TestDrift(t *testing.T) {
	deployment := effect.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "web", Name: "web"}
	nodes := effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "web", Name: "nodes"}
	named := func(kind, name string) effect.Ref {
		return effect.Ref{APIVersion: "v1", Kind: kind, Namespace: "web", Name: name}
	}
	patch := func(ref effect.Ref, text string) func(*sim.World) error {
		return func(w *sim.World) error {
			var merge map[string]any
			if err := json.Unmarshal([]byte(text), &merge); err != nil {
				return err
			}
			return w.Patch(ref, merge)
		}
	}
	remove := func(ref effect.Ref) func(*sim.World) error {
		return func(w *sim.World) error { return w.Delete(ref) }
	}
	for _, tt := range []struct {
		name   string
		meddle func(*sim.World) error
		want   []string // nil: no drift
		not    string   // what is not in the plan
		files  map[string]string
		decl   string
	}{
		{name: "nothing", meddle: func(*sim.World) error { return nil }},
		{name: "a field", meddle: patch(nodes, `{"data": {"color": "blue"}}`), want: []string{
			"~ v1 ConfigMap web/nodes  # changed by kubectl: not as release web has it; run puts it right\n    ~ data.color: \"red\" -> \"blue\"\n",
			"No changes: the modules ask for nothing else than before. 1 object is not as its release has it, and run puts it right.\n",
		}},
		{name: "of a module that is paused", meddle: func(w *sim.World) error {
			return errors.Join(w.Configure(map[string]string{"webPaused": "true"}), patch(nodes, `{"data": {"color": "blue"}}`)(w))
		}, want: []string{"~ v1 ConfigMap web/nodes  # changed by kubectl: not as release web has it; run leaves it so\n"}},
		{name: "a field that is taken away", meddle: patch(nodes, `{"data": {"color": null}}`), want: []string{"    - data.color: \"red\"\n"}},
		{name: "an object", meddle: remove(deployment), want: []string{"- apps/v1 Deployment web/web  # missing: release web has it; run makes it again\n"}},
		{name: "an object of a list", meddle: remove(named("ConfigMap", "one")), want: []string{"- v1 ConfigMap web/one  # missing"}},
		{name: "a number", meddle: patch(deployment, `{"spec": {"replicas": 5}}`), want: []string{"    ~ spec.replicas: 2 -> 5\n"}},
		{name: "in a list", meddle: func(w *sim.World) error {
			live, err := w.Get(deployment)
			if err != nil {
				return err
			}
			data, _ := json.Marshal(live)
			return patch(deployment, strings.NewReplacer(`"web:1"`, `"web:2"`, `["a","b"]`, `["a","b","c"]`, `{"name":"A","value":"1"},`, ``).Replace(string(data)))(w)
		}, want: []string{
			"    ~ spec.template.spec.containers[web].args: [\"a\",\"b\"] -> [\"a\",\"b\",\"c\"]\n",
			"    - spec.template.spec.containers[web].env[A].name: \"A\"\n",
			"    ~ spec.template.spec.containers[web].image: \"web:1\" -> \"web:2\"\n",
		}},
		{name: "a secret", meddle: patch(named("Secret", "key"), `{"data": {"word": "c2VzYW1lIHR3bw=="}}`), want: []string{"    ~ data.word: \"***\" -> \"***\"  # secret\n"}},
		{name: "what stays when its release goes", meddle: remove(named("ConfigMap", "stays")), want: []string{"- v1 ConfigMap web/stays  # missing"}},
		{name: "what stays, changed", meddle: patch(named("ConfigMap", "stays"), `{"data": {"a": "c"}}`), want: []string{"    ~ data.a: \"b\" -> \"c\"\n"}},
		{name: "of a module that reports drift", decl: `drift = "report"`, meddle: patch(nodes, `{"data": {"color": "blue"}}`), want: []string{
			"~ v1 ConfigMap web/nodes  # changed by kubectl: not as release web has it; run leaves it so\n",
			"1 object is not as its release has it, and run leaves it so.\n",
		}},
		{name: "of a module that ignores drift", decl: `drift = "ignore"`, meddle: patch(nodes, `{"data": {"color": "blue"}}`)},
		{name: "of a user who ignores drift", decl: `drift = "report"`, meddle: func(w *sim.World) error {
			return errors.Join(w.Configure(map[string]string{"webDrift": "ignore"}), patch(nodes, `{"data": {"color": "blue"}}`)(w))
		}},
		{name: "an ignored field", decl: `ignore = ["ConfigMap data.color"]`, meddle: patch(nodes, `{"data": {"color": "blue"}}`)},
		{name: "an ignored object", decl: `ignore = ["ConfigMap/nodes"]`, meddle: remove(nodes)},
		{name: "by an autoscaler", meddle: func(w *sim.World) error {
			at := store.Target{GVR: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, Namespace: "web", Name: "web", Subresource: "scale"}
			_, err := w.Store().Patch(at, types.MergePatchType, []byte(`{"spec": {"replicas": 5}}`), store.WriteOptions{Manager: "kube-controller-manager"})
			return err
		}},
		{name: "of a hook of Helm", meddle: remove(named("ConfigMap", "hooked"))},
		{name: "more fields", meddle: patch(nodes, `{"data": {"more": "b"}, "metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}}}`)},
		{name: "a Job that is done", meddle: remove(effect.Ref{APIVersion: "batch/v1", Kind: "Job", Namespace: "web", Name: "once"})},
		{name: "rules that are summed up", meddle: patch(effect.Ref{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "sum"}, `{"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}`)},
		{name: "a status", meddle: patch(deployment, `{"status": {"replicas": 1}}`)},
		{
			name: "what an upgrade puts right", meddle: patch(nodes, `{"data": {"color": "blue"}}`), files: map[string]string{"web/values.yaml": "color: green\n"},
			want: []string{`~ data.color: "blue" -> "green"`, "1 to upgrade, 0 to uninstall.\n"},
		},
		{
			name: "what an upgrade leaves", decl: `ignore = ["Deployment/web spec.replicas"]`, meddle: patch(deployment, `{"spec": {"replicas": 5}}`),
			files: map[string]string{"web/values.yaml": "color: green\n"}, not: "Deployment",
			want: []string{`~ data.color: "red" -> "green"`, "1 to upgrade, 0 to uninstall.\n"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			module := strings.Replace(webModule, "installs = [", `installs = [grant("rbac.authorization.k8s.io/v1", "ClusterRole"), `, 1)
			if tt.decl != "" {
				module = strings.Replace(module, "installs = [", tt.decl+", installs = [", 1)
			}
			files := web(map[string]string{"web/module.star": module, "web/templates/more.yaml": driftTemplates})
			w := running(t, files, thing("Node", "", "a", nil))
			if err := tt.meddle(w); err != nil {
				t.Fatal(err)
			}
			var now map[string]string
			if tt.files != nil {
				tt.files["web/module.star"], tt.files["web/templates/more.yaml"] = module, driftTemplates
				now = web(tt.files)
			}
			p, text := planned(t, w, now, nil)
			for _, want := range tt.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q is not in\n%s", want, text)
				}
			}
			if tt.not != "" && strings.Contains(text, tt.not) {
				t.Errorf("%q is in\n%s", tt.not, text)
			}
			if p.Failed() || p.Changes() != (tt.files != nil) || p.Drifted() != (tt.want != nil && tt.files == nil) || len(p.Warnings) > 0 {
				t.Errorf("changes: %v, drift: %v\n%s", p.Changes(), p.Drifted(), text)
			}
			if data, err := json.Marshal(p); err != nil || !strings.Contains(string(data), `"drift":[`) || strings.Contains(string(data), "sesame") || strings.Contains(string(data), "c2VzYW1l") {
				t.Errorf("%v %s", err, data)
			}
		})
	}
}

// A field that the kind does not have is told of once, and the rest of its object is compared.
func TestDriftBesideAFieldThatIsNot(t *testing.T) {
	files := web(map[string]string{"web/templates/more.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: odd}
spec:
  replcias: 2
  replicas: 3
  selector: {matchLabels: {app: odd}}
  template:
    metadata: {labels: {app: odd}}
    spec: {containers: [{name: a, image: a, imagee: b}]}
`})
	w := running(t, files, thing("Node", "", "a", nil))
	_, text := planned(t, w, nil, nil)
	if strings.Contains(text, "typed patch") || strings.Contains(text, "cannot be compared") || strings.Count(text, "no field spec.replcias") != 1 {
		t.Error(text)
	}
	odd := store.Target{GVR: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, Namespace: "web", Name: "odd"}
	if _, err := w.Store().Patch(odd, types.MergePatchType, []byte(`{"spec": {"replicas": 5}}`), store.WriteOptions{Manager: "kubectl"}); err != nil {
		t.Fatal(err)
	}
	if _, text = planned(t, w, nil, nil); !strings.Contains(text, "    ~ spec.replicas: 3 -> 5\n") {
		t.Error(text)
	}
}

// An object that must not be read cannot be compared, and the plan says so.
func TestDriftThatMustNotBeRead(t *testing.T) {
	files := web(nil)
	a := serve(t, running(t, files, thing("Node", "", "a", nil)))
	if p, text, err := a.plan(t, files); err != nil || p.Changes() || p.Drifted() || !strings.Contains(text, "are as their charts have them") {
		t.Fatalf("%v\n%s", err, text)
	}
	a.mu.Lock()
	a.meddle = func(w http.ResponseWriter, r *http.Request) bool {
		return strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/web/configmaps/nodes") && refuse(w, 403, "Forbidden", "configmaps is forbidden")
	}
	a.mu.Unlock()
	p, text, err := a.plan(t, files)
	if err != nil || p.Failed() || p.Changes() || p.Drifted() || len(p.Warnings) != 1 || !strings.Contains(text, "Not all objects of releases could be compared") ||
		!strings.Contains(text, "! warning: release web: ConfigMap nodes cannot be compared with the cluster: ") {
		t.Fatalf("%v\n%s", err, text)
	}
}

// Elements of a list of a manifest may have a type and a status, and no name.
func TestDriftOfElementsWithTypes(t *testing.T) {
	of := func(status string) map[string]any {
		return map[string]any{"spec": map[string]any{"l": []any{map[string]any{"type": "A", "status": status}}}}
	}
	d := drifts{known: true}
	d.maps(nil, d.owned, of("x"), of("y"))
	if len(d.fields) != 1 || d.fields[0].Path != "spec.l[0].status" {
		t.Errorf("got %v", d.fields)
	}
}
