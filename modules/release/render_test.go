package release

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/chart"
)

// render is renderAs for the first revision, where the API server serves what caps has.
func (m *Manager) render(ctx context.Context, t Target, caps *chartutil.Capabilities, upgrade bool) (rendering, error) {
	m.caps, m.o.Discovery = caps, fresh{}
	return m.renderAs(ctx, t, upgrade, 1)
}

type fresh struct {
	discovery.CachedDiscoveryInterface
}

// Fresh says yes.
func (fresh) Fresh() bool { return true }

// renderer renders without a cluster: nothing is served but ConfigMaps.
func renderer() *Manager {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	return &Manager{
		o:       Options{Mapper: resettable{mapper}},
		dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{{Version: "v1", Resource: "configmaps"}: "ConfigMapList"}),
	}
}

type resettable struct{ meta.RESTMapper }

// Reset does nothing.
func (resettable) Reset() {}

func TestRender(t *testing.T) {
	caps := chartutil.DefaultCapabilities
	m := renderer()
	of := func(t *testing.T, text string, values map[string]any, upgrade bool) rendering {
		t.Helper()
		r, err := m.render(t.Context(), Target{Input: chart.Input{Name: "web", Namespace: "apps", Chart: chartOf("web", text), Values: values,
			Lookup: []builtins.Grant{{APIVersion: "v1", Kind: "ConfigMap", Verbs: []string{"get"}, Namespaces: []string{"x"}}}}}, caps, upgrade)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	values := map[string]any{"n": int64(1000000), "list": []any{"a"}}
	if r := of(t, "n: {{ .Values.n }} {{ .Release.Revision }}", values, false); r.files["web/templates/0.yaml"] != "n: 1000000 1" {
		t.Errorf("%v", r.files)
	}
	if len(values) != 2 {
		t.Errorf("values were changed: %v", values)
	}
	branch := "a: {{ .Release.IsUpgrade }}"
	if of(t, branch, nil, false).digest == of(t, branch, nil, true).digest {
		t.Error("install and upgrade render the same")
	}
	quiet := `a: {{ if false }}{{ lookup "v1" "ConfigMap" "x" "y" }}{{ end }}`
	if of(t, quiet, nil, false).lookups != "" {
		t.Error("a lookup that is not reached counts")
	}
	if r := of(t, `a: {{ lookup "v1" "ConfigMap" "x" "y" | len }}`, nil, false); r.lookups == "" || r.files["web/templates/0.yaml"] != "a: 0" {
		t.Errorf("lookup: %+v", r)
	}
	if got := of(t, `a: "{{ getHostByName "localhost" }}"`, nil, false).files["web/templates/0.yaml"]; got != `a: ""` {
		t.Errorf("a template resolved a name: %s", got)
	}
	taken := with(chartOf("web", "a: {{ .Values.limit }}"), "values.yaml", "limit: 5\n")
	r, err := m.render(t.Context(), Target{Input: chart.Input{Name: "web", Namespace: "apps", Chart: taken, Values: map[string]any{}}}, caps, false)
	if err != nil || r.files["web/templates/0.yaml"] != "a: " {
		t.Errorf("a value that was taken out came back: %v %v", r.files, err)
	}
	notes := with(chartOf("web", "a: b"), "templates/NOTES.txt", "hello")
	r, err = m.render(t.Context(), Target{Input: chart.Input{Name: "web", Namespace: "apps", Chart: notes}}, caps, false)
	if err != nil || r.digest != of(t, "a: b", nil, false).digest {
		t.Errorf("notes count as manifest (%v)", err)
	}
}

func TestRenderErrors(t *testing.T) {
	helper := `{{ define "help" }}
{{ .Values.db.host }}{{ end }}`
	tests := []struct {
		name   string
		chart  *chart.Chart
		values map[string]any
		want   string
	}{
		{"no Chart.yaml", &chart.Chart{Name: "web"}, nil, "chart web: Chart.yaml file is missing"},
		{"library", with(&chart.Chart{Name: "web"}, "Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\ntype: library\n"), nil,
			"chart web is a library: it has nothing to install (type in Chart.yaml)"},
		{"missing dependency", with(&chart.Chart{Name: "web"}, "Chart.yaml",
			"apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies: [{name: redis, version: 1.x, repository: https://x}]\n"), nil,
			"chart web: a dependency is found in Chart.yaml, but missing in charts/ directory: redis; run `starling fetch`"},
		{"syntax", chartOf("web", "a: b\n{{ if }}"), nil, "web/templates/0.yaml:2: missing value for if"},
		{"unknown function", chartOf("web", "{{ nope }}"), nil, `web/templates/0.yaml:1: function "nope" not defined`},
		{"nothing there", chartOf("web", "a:\n  {{ .Values.db.host.name }}"), nil,
			"web/templates/0.yaml:2:12: there is nothing to take .host from in {{ .Values.db.host.name }} (add db: {host: {name: …}} to values.yaml of module web)"},
		{"nearly there", chartOf("web", "a: {{ .Values.resorces.limits }}"), map[string]any{"resources": map[string]any{}},
			"web/templates/0.yaml:1:13: there is nothing to take .limits from in {{ .Values.resorces.limits }} (did you mean .Values.resources?)"},
		{"an action without an end", chartOf("web", "a: b\n{{- if .Values.a\nargs: [\"--debug\"]\n{{- end }}\n"), nil,
			"web/templates/0.yaml:2: the action that begins here has no }}"},
		{"a block without an end", chartOf("web", "a: b\n{{- if .Values.a }}\nc: d\n"), nil,
			"web/templates/0.yaml:2: " + chart.NoEnd},
		{"a template with a near name", with(chartOf("web", `a: {{ include "web.lables" . }}`), "templates/_h.tpl", `{{- define "web.labels" }}b{{ end }}`), nil,
			`web/templates/0.yaml:1:6: there is no template "web.lables" (did you mean "web.labels"?)`},
		{"in a helper", with(chartOf("web", `a: {{ include "help" . }}`), "templates/_h.tpl", helper), nil,
			"web/templates/_h.tpl:2:10: there is nothing to take .host from in {{ .Values.db.host }} (from web/templates/0.yaml:1:6) (add db: {host: …} to values.yaml of module web)"},
		{"required", chartOf("web", `{{ required "set db.host" .Values.host }}`), nil, "web/templates/0.yaml:1:3: set db.host"},
		{"fail", chartOf("web", "\n{{ fail \"no way\" }}"), nil, "web/templates/0.yaml:2:3: no way"},
		{"tpl", chartOf("web", `{{ tpl .Values.text . }}`), map[string]any{"text": "my secret text {{ nope }}"},
			`web/templates/0.yaml:1:3: error calling tpl: cannot parse template a text: line 1 of it: function "nope" not defined in {{ tpl .Values.text . }}`},
		{"schema", with(chartOf("web", "a: b"), "values.schema.json",
			`{"type":"object","properties":{"replicas":{"type":"integer"},"password":{"pattern":"^[0-9]+$"}}}`),
			map[string]any{"replicas": "three", "password": "hunter2"},
			"values do not fit the chart's values.schema.json: web: " +
				"at '/password': value does not match pattern '^[0-9]+$'; at '/replicas': got string, want integer"},
		{"panic", chartOf("web", `{{ index .Values.list 5 }}`), map[string]any{"list": []any{}},
			"web/templates/0.yaml:1:3: error calling index: index out of range: 5 in {{ index .Values.list 5 }}"},
		{"no apiVersion", chartOf("web", "kind: ConfigMap\nmetadata: {name: a}\n"), nil,
			`web/templates/0.yaml:2: ConfigMap "a" has no apiVersion: give it one, or leave the document out`},
		{"no kind", chartOf("web", "apiVersion: v1\nmetadata: {name: a}\n"), nil,
			`web/templates/0.yaml:2: an object "a" has no kind: give it one, or leave the document out`},
		{"an empty object", chartOf("web", "# nothing\n---\n{}\n"), nil, `web/templates/0.yaml: an object has no kind: give it one, or leave the document out`},
		{"an object in two files", chartOf("web", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n", "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: apps}\n"), nil,
			"web/templates/1.yaml:3: Secret a in namespace apps is in web/templates/0.yaml too: rename one, or leave one out"},
		{"an object twice in a file", chartOf("web", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: a}\n"), nil,
			"web/templates/0.yaml:7: Secret a is there twice: rename one, or leave one out"},
		{"an object twice in a file with others", chartOf("web", "apiVersion: v1\nkind: Pod\nmetadata: {name: b}\nspec:\n  containers: [{name: a}]\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers: [{name: a}]\n---\n"+
			"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"), nil,
			"web/templates/0.yaml:15: Pod a is there twice: rename one, or leave one out"},
		{"an object in two versions", chartOf("web", "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: a}\n", "apiVersion: autoscaling/v1\nkind: HorizontalPodAutoscaler\nmetadata: {name: a}\n"), nil,
			"web/templates/1.yaml:3: HorizontalPodAutoscaler a is in web/templates/0.yaml too, as autoscaling/v2: rename one, or leave one out"},
		{"an object in a list, too", chartOf("web", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n", "apiVersion: v1\nkind: SecretList\nitems:\n- metadata: {name: b}\n- metadata: {name: a}\n"), nil,
			"web/templates/1.yaml:5: Secret a is in web/templates/0.yaml too: rename one, or leave one out"},
		{"a generated name", chartOf("web", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  generateName: run-\n"), nil,
			"web/templates/0.yaml:4: ConfigMap has metadata.generateName and no metadata.name, so that no release finds again what another one has made: give it a name"},
		{"a generated name of a Job", chartOf("web", "# sync\napiVersion: batch/v1\nkind: Job\nmetadata: {generateName: run-}\n"), nil,
			"web/templates/0.yaml:4: Job has metadata.generateName and no metadata.name, so that no release finds again what another one has made: " +
				"give it a name, and let it be a hook (helm.sh/hook: post-install,post-upgrade), which each release makes anew"},
		{"a generated name of a hook", chartOf("web", "apiVersion: batch/v1\nkind: Job\nmetadata:\n  generateName: run-\n  annotations: {helm.sh/hook: post-install}\n"), nil,
			"web/templates/0.yaml:4: Job has metadata.generateName and no metadata.name, so that no release finds again what another one has made: " +
				"give it a name: the hook of the release before is deleted first, unless helm.sh/hook-delete-policy says otherwise"},
		{"a name that a value leaves empty", chartOf("web", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Values.name }}\n"), nil,
			"web/templates/0.yaml:4: ConfigMap: metadata.name is empty: give it a name"},
		{"an empty name", chartOf("web", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: \"\"\n"), nil,
			"web/templates/0.yaml:4: ConfigMap: metadata.name is empty: give it a name"},
		{"a name that is a number", chartOf("web", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: 17\n"), nil,
			"web/templates/0.yaml:4: ConfigMap: metadata.name is a number: it must be a string, in quotes where YAML takes it for something else"},
		{"a name with a slash", chartOf("web", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a/b\n"), nil,
			"web/templates/0.yaml:4: ConfigMap: metadata.name \"a/b\" may not contain '/'"},
		{"no metadata", chartOf("web", "apiVersion: v1\nkind: ConfigMap\ndata: {}\n"), nil, "web/templates/0.yaml:2: ConfigMap has no metadata.name: give it a name"},
		{"metadata that is a text", chartOf("web", "apiVersion: v1\nkind: ConfigMap\nmetadata: web\n"), nil,
			"web/templates/0.yaml:3: ConfigMap: metadata is a text: it must be a map"},
		{"an item of a list without a name", chartOf("web", "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {generateName: a-}\n"), nil,
			"web/templates/0.yaml:6: ConfigMap has metadata.generateName and no metadata.name, so that no release finds again what another one has made: give it a name"},
		{"an item of a list in a list without a name", chartOf("web", "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: List\n  items:\n  - apiVersion: v1\n    kind: ConfigMap\n    metadata: {generateName: a-}\n"), nil,
			"web/templates/0.yaml:9: ConfigMap has metadata.generateName and no metadata.name, so that no release finds again what another one has made: give it a name"},
		{"an item of a list that is no object", chartOf("web", "apiVersion: v1\nkind: List\nitems:\n- a\n"), nil, "web/templates/0.yaml: not YAML once rendered: an item of List is no object"},
		{"a volume at one path twice", chartOf("web", twicePod("volumeMounts: [{name: a, mountPath: /x}, {name: b, mountPath: /x}]")), nil,
			"web/templates/0.yaml:7: Pod a: spec.containers[0].volumeMounts has mountPath /x twice: the API server refuses it; leave one out"},
		{"a port of a Service twice", chartOf("web", "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec:\n  ports:\n  - port: 53\n  - port: 53\n    protocol: TCP\n"), nil,
			"web/templates/0.yaml:7: Service a: spec.ports has port/protocol 53/TCP twice: the API server refuses it; leave one out"},
		{"a name of a port that a Service wants", chartOf("web", twicePod("ports: [{containerPort: 80, name: http}, {containerPort: 80, name: web}]"),
			"apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec:\n  selector: {app: a}\n  ports: [{port: 80, targetPort: http}]\n"), nil,
			"web/templates/0.yaml:7: Pod a: spec.containers[0].ports has containerPort/protocol 80/TCP twice: the last one is applied, named web; leave the others out" +
				"; Service a has targetPort http, which would lead nowhere: give it the number 80"},
		{"a name of a port that a PodMonitor wants", chartOf("web", twicePod("ports: [{containerPort: 80, name: http}, {containerPort: 80, name: web}]"),
			"apiVersion: monitoring.coreos.com/v1\nkind: PodMonitor\nmetadata: {name: a}\nspec:\n  selector: {matchLabels: {app: a}}\n  podMetricsEndpoints: [{port: http}]\n"), nil,
			"web/templates/0.yaml:7: Pod a: spec.containers[0].ports has containerPort/protocol 80/TCP twice: the last one is applied, named web; leave the others out" +
				"; PodMonitor a has port http, which would lead nowhere: give it the number 80"},
		{"a hook that no server takes", chartOf("web", strings.Replace(twicePod("volumeMounts: [{name: a, mountPath: /x}, {name: b, mountPath: /x}]"), "labels: {app: a}", "annotations: {helm.sh/hook: pre-install}", 1)), nil,
			"web/templates/0.yaml:7: Pod a: spec.containers[0].volumeMounts has mountPath /x twice: the API server refuses it; leave one out"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := renderer().render(t.Context(), Target{Input: chart.Input{Module: "web", Name: "web", Namespace: "apps", Chart: tt.chart, Values: tt.values}},
				chartutil.DefaultCapabilities, false)
			if err == nil || err.Error() != tt.want {
				t.Errorf("error\n%v\nwant\n%s", err, tt.want)
			}
		})
	}
}

// An object of a hook may have the name of another one: it goes before that is made.
func TestAnObjectAndThatOfAHook(t *testing.T) {
	const account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a%s}\n"
	c := chartOf("web", fmt.Sprintf(account, ", annotations: {helm.sh/hook: pre-install}"), fmt.Sprintf(account, ""), fmt.Sprintf(account, ", namespace: other"))
	if _, err := renderer().render(t.Context(), Target{Input: chart.Input{Name: "web", Namespace: "apps", Chart: c, Installs: []builtins.Grant{{APIVersion: "v1", Kind: "ServiceAccount", Namespaces: []string{"other"}}}}}, chartutil.DefaultCapabilities, false); err != nil {
		t.Error(err)
	}
}

// A template that never ends does not hold its caller.
func TestRenderEndless(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("timed out after 1s"))
	_, err := renderer().render(ctx, Target{Input: chart.Input{Name: "web", Namespace: "apps", Chart: chartOf("web", strings.Repeat("{{ range until 100 }}", 3)+
		strings.Repeat("{{ end }}", 3))}}, chartutil.DefaultCapabilities, false)
	if err == nil || err.Error() != "rendering chart web: timed out after 1s" {
		t.Errorf("%v", err)
	}
}

func twicePod(list string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {app: a}}\nspec:\n  containers:\n  - name: a\n    " + list + "\n"
}

// A key that the cluster takes twice is applied once, and told.
func TestAKeyTwiceIsAWarning(t *testing.T) {
	for list, want := range map[string]string{
		"env:\n    - name: A\n      value: x\n    - name: B\n    - name: A\n      value: {{ .Values.a }}": "web/templates/0.yaml:11: Pod a: spec.containers[0].env has name A twice: the last one counts, and is applied; leave the others out",
		"env:\n    {{- toYaml .Values.env | nindent 4 }}":                                                 "web/templates/0.yaml:7: Pod a: spec.containers[0].env has name A twice: the last one counts, and is applied; leave the others out",
		"ports: [{containerPort: 80, name: http}, {containerPort: 80, name: web}]": "web/templates/0.yaml:7: Pod a: spec.containers[0].ports has containerPort/protocol 80/TCP twice: " +
			"the last one is applied, named web; leave the others out",
		"ports: [{containerPort: 80}, {containerPort: 80, protocol: UDP}]": "",
	} {
		// A Service of other Pods may want a port of that name.
		c := chartOf("web", twicePod(list), "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {selector: {app: b}, ports: [{port: 80, targetPort: http}]}\n")
		values := map[string]any{"a": "y", "env": []any{map[string]any{"name": "A"}, map[string]any{"name": "A"}}}
		r, err := renderer().render(t.Context(), Target{Input: chart.Input{Module: "web", Name: "web", Namespace: "apps", Chart: c, Values: values}}, chartutil.DefaultCapabilities, false)
		if got := strings.Join(r.warnings, "; "); err != nil || got != want {
			t.Errorf("%s: %v, warnings\n%s\nwant\n%s", list, err, got, want)
		}
	}
}

// Another object, or another container, may hold the key once, or twice, too.
func TestTheLineOfAKeyThatIsThereTwice(t *testing.T) {
	const one, two = "    env:\n    - {name: A, value: x}\n", "    env:\n    - name: A\n      value: x\n    - name: A\n      value: y\n"
	pod := func(name, containers, inits string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata:\n  name: " + name + "\nspec:\n  containers:\n" + containers + "  initContainers:\n" + inits + "---\n"
	}
	container := func(name, env string) string { return "  - name: " + name + "\n" + env }
	for text, want := range map[string][]int{
		pod("a", container("a", one), container("i", one)) + pod("b", container("b", one), container("i", two)):                           {29},
		pod("a", container("a", ""), container("i", two)) + pod("b", container("b", ""), container("i", two)):                             {13, 28},
		pod("{{ .Values.a }}", container("a", ""), container("i", one)) + pod("{{ .Values.b }}", container("b", ""), container("i", two)): {25},
		pod("a", container("a", one)+container("b", one)+container("c", two), container("i", "")):                                         {17},
		pod("a", container("a", two), container("i", one)):                                                                                {11},
		pod("a", container("a", "    env: [{name: B}, {name: A}]\n")+container("b", "    env: [{name: A}, {name: A}]\n"), ""):             {10},
	} {
		c := chartOf("web", text)
		values := map[string]any{"a": "a", "b": "b"}
		r, err := renderer().render(t.Context(), Target{Input: chart.Input{Module: "web", Name: "web", Namespace: "apps", Chart: c, Values: values}}, chartutil.DefaultCapabilities, false)
		if err != nil || len(r.warnings) != len(want) {
			t.Errorf("%s: %v, %v", text, r.warnings, err)
			continue
		}
		for i, line := range want {
			if at := fmt.Sprintf("web/templates/0.yaml:%d: ", line); !strings.HasPrefix(r.warnings[i], at) {
				t.Errorf("%s%s, want line %d", text, r.warnings[i], line)
			}
		}
	}
}

// Hooks are created, and not applied: the API server takes in a create what it refuses in an apply.
func TestAKeyTwiceOfAHook(t *testing.T) {
	pod := strings.Replace(twicePod("ports: [{containerPort: 80, hostPort: 1}, {containerPort: 80, hostPort: 2}]"), "labels: {app: a}", "annotations: {helm.sh/hook: pre-install}", 1)
	r, err := renderer().render(t.Context(), Target{Input: chart.Input{Module: "web", Name: "web", Namespace: "apps", Chart: chartOf("web", pod)}}, chartutil.DefaultCapabilities, false)
	if err != nil || len(r.warnings) > 0 {
		t.Error(r.warnings, err)
	}
}

// A namespace tells no objects apart of a kind that has none.
func TestAnObjectOfTheClusterTwice(t *testing.T) {
	m := renderer()
	m.o.Mapper.(resettable).RESTMapper.(*meta.DefaultRESTMapper).Add(schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}, meta.RESTScopeRoot)
	const role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: a%s}\n"
	c := chartOf("web", fmt.Sprintf(role, ""), fmt.Sprintf(role, ", namespace: other"))
	_, err := m.render(t.Context(), Target{Input: chart.Input{Module: "web", Name: "web", Namespace: "apps", Chart: c}}, chartutil.DefaultCapabilities, false)
	if err == nil || !strings.Contains(err.Error(), "web/templates/1.yaml:3: ClusterRole a in namespace other is in web/templates/0.yaml too") {
		t.Error(err)
	}
}
