package check

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/starling-operator/starling/modules/tree"
)

// findingsIn are the findings about a tree, with their places and hints. Files of a chart "web" need no Chart.yaml.
func findingsIn(t *testing.T, o Options, files map[string]string) (out []string) {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	var err error
	if o.Tree, err = tree.Read(fsys, tree.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, f := range run(t, o).Findings {
		out = append(out, string(f.Severity)+" "+f.File+": "+strings.TrimSuffix(f.Message+" ("+f.Hint+")", " ()"))
	}
	return out
}

const (
	clusterRole = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: ca}\n"
	configMap   = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	monitored   = "{{ if .Capabilities.APIVersions.Has \"example.com/v1/Monitor\" }}\n" + clusterRole + "{{ end }}\n"
	monitors    = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: monitors.example.com}\n" +
		"spec: {group: example.com, scope: Namespaced, names: {kind: Monitor, plural: monitors, singular: monitor, listKind: MonitorList}, " +
		"versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}\n"
)

// Charts see the version and the kinds of the cluster of --openapi, or of the newest Kubernetes, and those of the
// tree.
func TestChartsAreRenderedForTheCluster(t *testing.T) {
	served := func(version string) []byte {
		return []byte(`{"info": {"version": "` + version + `"}, "definitions": {"a": {"x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "ConfigMap"}]},
"b": {"x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Monitor"}]}}}`)
	}
	since := func(version string) string {
		return "{{ if semverCompare \">=" + version + "-0\" .Capabilities.KubeVersion.Version }}\n" + clusterRole + "{{ end }}\n"
	}
	for name, tt := range map[string]struct {
		openapi []byte
		files   map[string]string
		holds   bool
	}{
		"newest":                        {nil, map[string]string{"web/templates/a.yaml": since("1.37")}, true},
		"newer than the cluster":        {served("v1.34.2"), map[string]string{"web/templates/a.yaml": since("1.35")}, false},
		"the cluster":                   {served("v1.34.2"), map[string]string{"web/templates/a.yaml": since("1.34")}, true},
		"a cluster with a vendor's tag": {served("v1.34.2-gke.100+b"), map[string]string{"web/templates/a.yaml": since("1.34")}, true},
		"a dump without a version":      {served(""), map[string]string{"web/templates/a.yaml": since("1.37")}, true},
		"a kind of Kubernetes":          {nil, map[string]string{"web/templates/a.yaml": "{{ if .Capabilities.APIVersions.Has \"policy/v1/PodDisruptionBudget\" }}\n" + clusterRole + "{{ end }}\n"}, true},
		"a kind that is gone":           {nil, map[string]string{"web/templates/a.yaml": "{{ if .Capabilities.APIVersions.Has \"policy/v1beta1\" }}\n" + clusterRole + "{{ end }}\n"}, false},
		"nobody has the kind":           {nil, map[string]string{"web/templates/a.yaml": monitored}, false},
		"the cluster has the kind":      {served("v1.37.0"), map[string]string{"web/templates/a.yaml": monitored}, true},
		"crds/ of another module":       {nil, map[string]string{"web/templates/a.yaml": monitored, "zz/module.star": "module()\n", "zz/crds/a.yaml": monitors}, true},
		"crds/ of a subchart": {nil, map[string]string{"web/templates/a.yaml": monitored, "zz/templates/a.yaml": configMap,
			"zz/charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n", "zz/charts/sub/crds/a.yaml": monitors}, true},
		"a template of another module": {nil, map[string]string{"web/templates/a.yaml": monitored, "zz/templates/a.yaml": monitors}, true},
		"a list in a template":         {nil, map[string]string{"web/templates/a.yaml": monitored, "zz/templates/a.yaml": "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(monitors, "\n", "\n  ")}, true},
		"a kind that a module declares": {nil, map[string]string{"web/templates/a.yaml": monitored,
			"zz/module.star": "module()\ncrd(\"example.com/v1\", \"Monitor\", spec = {\"a\": \"string\"})\n"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			got := findingsIn(t, Options{OpenAPI: tt.openapi}, tt.files)
			asks := slices.ContainsFunc(got, func(f string) bool {
				return strings.Contains(f, `grant("rbac.authorization.k8s.io/v1", "ClusterRole")`)
			})
			if asks != tt.holds {
				t.Errorf("asks for a ClusterRole: %v, got %q", asks, got)
			}
		})
	}
	if got := findingsIn(t, Options{}, map[string]string{"web/templates/a.yaml": "apiVersion: {{ if semverCompare \"<1.21-0\" .Capabilities.KubeVersion.GitVersion }}policy/v1beta1{{ else }}policy/v1{{ end }}\n" +
		"kind: PodDisruptionBudget\nmetadata: {name: a}\nspec: {minAvailable: 1, selector: {matchLabels: {a: b}}}\n"}); len(got) > 0 {
		t.Errorf("of a chart that is right: %q", got)
	}
}

// All lines that a module lacks are told at once, however many one file needs.
func TestAllMissingGrantsOfAChart(t *testing.T) {
	all := clusterRole + "---\n" + strings.ReplaceAll(clusterRole, "ClusterRole", "ClusterRoleBinding") + "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ca}\n" +
		"---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: a}\nvalue: 1\n" +
		"{{ $_ := lookup \"v1\" \"Secret\" \"\" \"a\" }}{{ $_ := lookup \"v1\" \"Pod\" \"\" \"b\" }}"
	got := strings.Join(findingsIn(t, Options{}, map[string]string{"web/templates/a.yaml": all}), "\n")
	for _, want := range []string{`"ClusterRole")`, `"ClusterRoleBinding")`, `"PriorityClass")`, `"Secret"`, `"Pod"`} {
		if !strings.Contains(got, want) {
			t.Errorf("nobody asks for %s:\n%s", want, got)
		}
	}
}

// No server sees the list itself; its objects are looked at.
func TestObjectsOfAList(t *testing.T) {
	list := "apiVersion: v1\nkind: List\nmetadata: {name: x}\nitems:\n"
	if got := findingsIn(t, Options{}, map[string]string{"web/templates/a.yaml": list + "- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n"}); len(got) > 0 {
		t.Errorf("got %q", got)
	}
	for _, text := range []string{
		list + "- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, dta: {}}\n",
		list + "- {apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, dta: {}}]}\n",
		"apiVersion: v1\nkind: ConfigMapList\nmetadata: {name: x}\nitems:\n- {metadata: {name: a}, dta: {}}\n",
	} {
		if got := strings.Join(findingsIn(t, Options{}, map[string]string{"web/templates/a.yaml": text}), "\n"); !strings.Contains(got, "ConfigMap has no field dta") {
			t.Errorf("%s: got %q", text, got)
		}
	}
}

// A template that gives the same each time is not warned of because another one differs.
func TestTemplatesThatDifferEachTime(t *testing.T) {
	random := configMap + "data: {p: {{ randAlphaNum 12 }}}\n"
	for name, tt := range map[string]struct {
		files  map[string]string
		warned string // the files
	}{
		"one is off":        {map[string]string{"web/templates/a.yaml": random, "web/templates/b.yaml": "{{ if .Values.tls }}{{ genCA \"a\" 1 }}{{ end }}"}, "web/templates/a.yaml"},
		"in a helper":       {map[string]string{"web/templates/a.yaml": configMap + "data: {p: {{ include \"p\" . }}}\n", "web/templates/_h.tpl": "{{ define \"p\" }}{{ randAlphaNum 12 }}{{ end }}"}, "web/templates/_h.tpl"},
		"in helpers":        {map[string]string{"web/templates/a.yaml": configMap + "data: {p: {{ template \"q\" . }}}\n", "web/templates/_h.tpl": "{{ define \"q\" }}{{ include \"p\" . }}{{ end }}{{ define \"p\" }}{{ randAlphaNum 12 }}{{ end }}"}, "web/templates/_h.tpl"},
		"in another helper": {map[string]string{"web/templates/a.yaml": random, "web/templates/b.yaml": "{{ if .Values.tls }}{{ include \"p\" . }}{{ end }}", "web/templates/_h.tpl": "{{ define \"p\" }}{{ genCA \"a\" 1 }}{{ end }}"}, "web/templates/a.yaml"},
	} {
		var warned []string
		for _, f := range findingsIn(t, Options{}, tt.files) {
			if strings.HasPrefix(f, "warning ") && strings.Contains(f, "each render differs") {
				file, _, _ := strings.Cut(strings.TrimPrefix(f, "warning "), ":")
				warned = append(warned, file)
			}
		}
		if got := strings.Join(warned, " "); got != tt.warned {
			t.Errorf("%s: warned of %q", name, got)
		}
	}
}

// A module with test = True whose chart has no test.
func TestTestsThatAreMissing(t *testing.T) {
	const test = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, annotations: {helm.sh/hook: \"pre-install, test-success\"}}\nspec: {containers: [{name: a, image: a}]}\n"
	for chart, want := range map[string]bool{configMap: true, strings.Replace(test, "test-success", "post-install", 1): true, test: false} {
		for options, on := range map[string]bool{"": false, "test = True": true} {
			got := findingsIn(t, Options{}, map[string]string{"web/templates/a.yaml": chart, "web/module.star": "module(" + options + ")\n"})
			if is := slices.ContainsFunc(got, func(f string) bool {
				return strings.HasPrefix(f, "warning web: module(test = True), and with these values the chart has no test")
			}); is != (want && on) {
				t.Errorf("%q of %q: %q", options, chart, got)
			}
		}
	}
}
