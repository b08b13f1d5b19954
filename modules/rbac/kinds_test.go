package rbac

import (
	"bytes"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/starling-operator/starling/modules/tree"
)

// A hook sets the number of replicas by what it finds, which is nothing here.
const replicas = `def n(ctx):
    values.set("replicas", max(1, len(ctx.snapshots["nodes"])))

hook(n, on = [k8s.watch("v1", "Node", name = "nodes", filter = lambda o: o.metadata.name)])
`

const webChart = "apiVersion: v2\nname: web\nversion: 0.1.0\n"

func compute(t *testing.T, o Options, files map[string]string) (Result, string) {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	var err error
	if o.Tree, err = tree.Read(fsys, tree.Options{}); err != nil {
		t.Fatal(err)
	}
	o.Namespace, o.Name = "starling-system", "starling"
	r, err := Compute(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := r.Write(&out); err != nil {
		t.Fatal(err)
	}
	return r, out.String()
}

// Whatever renders an object that is not there with these values is told of: by its kind, where the text of the
// templates tells it, and else by its place.
func TestKindsThatTemplatesMakeUp(t *testing.T) {
	const (
		more = "{{- if gt (int .Values.replicas) 1 }}\n"
		rest = "metadata: {name: web}\nspec: {minAvailable: 1}\n"
		end  = "{{- end }}\n"
		pdb  = "policy/v1 PodDisruptionBudget"
		any  = "policy/* PodDisruptionBudget"
		here = "web/templates/a.yaml:"
	)
	for name, tt := range map[string]struct {
		text string
		more map[string]string
		want []string
	}{
		"written out":               {more + "apiVersion: policy/v1\nkind: PodDisruptionBudget\n" + rest + end, nil, []string{pdb}},
		"indented":                  {more + "  apiVersion: policy/v1\n  kind: PodDisruptionBudget\n  metadata: {name: a}\n" + end, nil, []string{pdb}},
		"quoted":                    {more + "\"apiVersion\": 'policy/v1'\n'kind': \"PodDisruptionBudget\" # a\n" + rest + end, nil, []string{pdb}},
		"in braces":                 {more + "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a}}\n" + end, nil, []string{pdb}},
		"JSON":                      {more + "{\n  \"apiVersion\": \"policy/v1\",\n  \"kind\": \"PodDisruptionBudget\"}\n" + end, nil, []string{pdb}},
		"ternary":                   {more + "apiVersion: {{ ternary \"policy/v1\" \"policy/v1beta1\" (semverCompare \">=1.21.0-0\" .Capabilities.KubeVersion.Version) }}\nkind: PodDisruptionBudget\n" + rest + end, nil, []string{pdb}},
		"ternary of kinds":          {more + "apiVersion: apps/v1\nkind: {{ ternary \"DaemonSet\" \"Deployment\" .Values.all | quote }}\n" + rest + end, nil, []string{"apps/v1 DaemonSet", "apps/v1 Deployment"}},
		"branches in a line":        {more + "apiVersion: {{ if .Capabilities.APIVersions.Has \"policy/v1\" }}policy/v1{{ else }}policy/v1beta1{{ end }}\nkind: PodDisruptionBudget\n" + rest + end, nil, []string{pdb}},
		"branches of lines":         {more + "{{ if .Values.b }}\napiVersion: policy/v1\n{{ else }}\napiVersion: policy/v2\n{{ end }}\nkind: PodDisruptionBudget\n" + rest + end, nil, []string{pdb}},
		"a variable":                {more + "{{- $kind := \"Pod\" }}{{ if .Values.b }}{{ $kind = \"Job\" }}{{ end }}\napiVersion: v1\nkind: {{ $kind }}\n" + rest + end, nil, []string{"v1 Pod", "v1 Job"}},
		"default":                   {more + "apiVersion: v1\nkind: {{ default \"Pod\" .Values.kind }}\n" + rest + end, nil, []string{"v1 Pod", here + "3"}},
		"printf":                    {more + "apiVersion: {{ printf \"%s/%s\" \"policy\" \"v1\" }}\nkind: {{ printf \"Pod%sBudget\" \"Disruption\" }}\n" + rest + end, nil, []string{pdb}},
		"a version of values":       {more + "apiVersion: policy/{{ .Values.version }}\nkind: PodDisruptionBudget\n" + rest + end, nil, []string{any}},
		"printf of values":          {more + "apiVersion: {{ printf \"policy/%s\" .Values.version }}\nkind: PodDisruptionBudget\n" + rest + end, nil, []string{any}},
		"values":                    {more + "apiVersion: {{ .Values.version }}\nkind: PodDisruptionBudget\n" + rest + end, nil, []string{here + "2"}},
		"a kind of values":          {more + "apiVersion: v1\nkind: {{ .Values.kind | quote }}\n" + rest + end, nil, []string{here + "3"}},
		"both of values":            {more + "apiVersion: {{ .Values.version }}\nkind: {{ .Values.kind }}\n" + rest + end, nil, []string{here + "3"}},
		"an include":                {more + "apiVersion: {{ include \"v\" . }}\nkind: {{ template \"k\" . }}\n" + rest + end, map[string]string{"web/templates/_h.tpl": "{{ define \"v\" -}}\n{{ if .Values.x }}policy/v1beta1{{ else }}{{ print \"policy/v1\" }}{{ end }}\n{{- end }}{{ define \"k\" }}PodDisruptionBudget{{ end }}"}, []string{pdb}},
		"an include of values":      {more + "apiVersion: v1\nkind: {{ include \"k\" . }}\n" + rest + end, map[string]string{"web/templates/_h.tpl": "{{ define \"k\" }}{{ .Values.kind }}{{ end }}"}, []string{here + "3"}},
		"a whole include":           {more + "{{ include \"o\" . | nindent 0 }}\n" + end, map[string]string{"web/templates/_h.tpl": "{{ define \"o\" }}\napiVersion: policy/v1\nkind: PodDisruptionBudget\nspec: {{ toYaml .Values.x | nindent 2 }}\n{{ end }}"}, []string{pdb}},
		"a whole include of values": {more + "{{ include \"o\" . }}\n" + end, map[string]string{"web/templates/_h.tpl": "{{ define \"o\" }}{{ toYaml .Values.x }}{{ end }}"}, []string{here + "2"}},
		"an include by a variable":  {more + "{{ include (printf \"%s\" .Values.name) . }}\n" + end, nil, []string{here + "2"}},
		"toYaml":                    {more + "{{ toYaml .Values.object }}\n" + end, nil, []string{here + "2"}},
		"toYaml with an indent":     {more + "{{- .Values.object | toYaml | nindent 2 }}\n" + end, nil, []string{here + "2"}},
		"toYaml of a dict":          {more + "{{ toYaml (dict \"apiVersion\" \"policy/v1\" \"kind\" \"PodDisruptionBudget\") }}\n" + end, nil, []string{pdb}},
		"toYaml of each":            {"{{ range .Values.objects }}\n---\n{{ toYaml . }}\n{{ end }}", nil, []string{here + "3"}},
		"toYaml of each, with":      {"{{ with .Values.objects }}{{ range $k, $o := . }}{{ toJson $o }}\n---\n{{ end }}{{ end }}", nil, []string{here + "1"}},
		"toYaml in a branch":        {"{{ if .Values.object }}\n{{ toYaml .Values.object }}\n{{ else }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n{{ end }}", nil, []string{here + "2"}},
		"beside one of the same":    {"apiVersion: v1\nkind: {{ .Values.a }}\nmetadata: {name: a}\n---\n" + more + "apiVersion: v1\nkind: {{ .Values.b }}\nmetadata: {name: a}\n" + end, map[string]string{"web/values.yaml": "replicas: 1\na: ConfigMap\n"}, []string{here + "7"}},
		"a list":                    {"{{ range list \"Pod\" \"Job\" }}" + more[:4] + " if $.Values.b }}\n---\napiVersion: v1\nkind: {{ . }}\n{{ end }}{{ end }}", nil, []string{"v1 Pod", "v1 Job"}},
		"a list of dicts":           {"{{ range list (dict \"k\" \"Pod\" \"v\" \"v1\") (dict \"k\" \"Job\" \"v\" \"batch/v1\") }}{{ if $.Values.b }}\n---\napiVersion: {{ .v }}\nkind: {{ .k }}\n{{ end }}{{ end }}", nil, []string{"v1 Pod", "batch/v1 Job"}},
		"a dict":                    {"{{ range $k, $v := dict \"Pod\" \"v1\" }}{{ if $.Values.b }}\n---\napiVersion: {{ $v }}\nkind: {{ $k }}\n{{ end }}{{ end }}", nil, []string{"v1 Pod"}},
		"items of a list":           {more + "apiVersion: v1\nkind: List\nitems:\n- apiVersion: policy/v1\n  kind: PodDisruptionBudget\n- apiVersion: v1\n  kind: Pod\n" + end, nil, []string{pdb, "v1 Pod"}},
		"items of values":           {more + "apiVersion: v1\nkind: List\nitems: {{ toYaml .Values.objects | nindent 2 }}\n" + end, nil, []string{here + "4"}},
		"items of values below":     {more + "apiVersion: v1\nkind: List\nitems:\n{{ toYaml .Values.objects }}\n" + end, nil, []string{here + "5"}},
		"tpl of a text":             {more + "{{ tpl \"apiVersion: policy/v1\\nkind: {{ print \\\"PodDisruptionBudget\\\" }}\\n\" . }}\n" + end, nil, []string{pdb}},
		"tpl of values":             {more + "{{ tpl .Values.text . }}\n" + end, nil, []string{here + "2"}},
		"tpl of a kind":             {more + "apiVersion: v1\nkind: {{ tpl .Values.kind $ }}\n" + end, nil, []string{here + "3"}},
		"a file":                    {more + "{{ .Files.Get \"files/a.yaml\" }}\n" + end, map[string]string{"web/files/a.yaml": "apiVersion: policy/v1\nkind: PodDisruptionBudget\n"}, []string{pdb}},
		"tpl of a file":             {more + "{{ tpl (.Files.Get \"files/a.yaml\") . }}\n" + end, map[string]string{"web/files/a.yaml": "apiVersion: policy/v1\nkind: {{ \"PodDisruptionBudget\" }}\n"}, []string{pdb}},
		"files":                     {more + "{{ range $path, $_ := .Files.Glob \"files/*.yaml\" }}\n---\n{{ $.Files.Get $path }}\n{{ end }}\n" + end, map[string]string{"web/files/a.yaml": "apiVersion: policy/v1\nkind: PodDisruptionBudget\n"}, []string{pdb}},
		"a file of values":          {more + "{{ .Files.Get .Values.file }}\n" + end, nil, []string{here + "2"}},
		"a subchart": {"", map[string]string{"web/charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
			"web/charts/sub/templates/a.yaml": "{{ if .Values.x }}\napiVersion: {{ ternary \"policy/v1\" \"policy/v1beta1\" true }}\nkind: PodDisruptionBudget\n{{ end }}", "web/charts/sub/templates/b.yaml": "{{ range .Values.x }}\n{{ toYaml . }}\n{{ end }}"}, []string{pdb, "web/charts/sub/templates/b.yaml:2"}},
		"a subchart that is off": {"", map[string]string{"web/Chart.yaml": webChart + "dependencies: [{name: sub, version: 1.0.0, condition: sub.enabled}]\n", "web/charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
			"web/charts/sub/templates/a.yaml": "apiVersion: policy/{{ .Values.v }}\nkind: PodDisruptionBudget\n", "web/values.yaml": "sub: {enabled: false}\nreplicas: 1\n"}, []string{any}},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{
				"web/Chart.yaml": webChart, "web/values.yaml": "replicas: 1\n", "web/hooks/n.star": replicas,
				"web/templates/a.yaml": tt.text, "web/templates/z.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n",
			}
			maps.Copy(files, tt.more)
			r, text := compute(t, Options{}, files)
			text, _, _ = strings.Cut(text, "\n---")
			text = strings.Join(strings.Fields(strings.ReplaceAll(text, "\n#", " ")), " ") + " "
			for _, want := range tt.want {
				if !strings.Contains(text, want+" ") && !strings.Contains(text, want+",") && !strings.Contains(text, want+".") {
					t.Errorf("nothing about %s", want)
				}
			}
			if strings.Contains(text, ".yaml:") != strings.Contains(strings.Join(tt.want, ""), ".yaml:") || !r.Incomplete || t.Failed() {
				t.Errorf("incomplete: %v, got\n%s", r.Incomplete, text)
			}
		})
	}
}

// An object that is rendered is allowed, whatever makes its kind up, and nothing is told of it.
func TestKindsThatAreRendered(t *testing.T) {
	for name, tt := range map[string]map[string]string{
		"by values":    {"web/templates/a.yaml": "apiVersion: v1\nkind: {{ .Values.kind }}\nmetadata: {name: a}\n"},
		"in an object": {"web/templates/a.yaml": "{{ range .Values.objects }}\n---\n{{ toYaml . }}\n{{ end }}"},
		"by include":   {"web/templates/a.yaml": "{{ include \"o\" . }}", "web/templates/_h.tpl": "{{ define \"o\" }}{{ range .Values.objects }}{{ toYaml . }}{{ end }}{{ end }}"},
		"a check":      {"web/templates/a.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n", "web/templates/b.yaml": "{{ include \"c\" . }}", "web/templates/_h.tpl": "{{ define \"c\" }}{{ if .Values.bad }}{{ printf \"no %s\" .Values.bad | fail }}{{ end }}{{ end }}"},
		"only fields":  {"web/templates/a.yaml": "apiVersion: v1\nkind: Service\nmetadata:\n  name: {{ .Values.kind | lower }}\n  labels: {{ toYaml .Values.none | nindent 4 }}\n{{ toYaml (dict \"spec\" .Values.none) }}\n"},
	} {
		files := map[string]string{"web/Chart.yaml": webChart, "web/values.yaml": "replicas: 1\nkind: Service\nobjects: [{apiVersion: v1, kind: Service, metadata: {name: a}}]\nnone: {}\n", "web/hooks/n.star": replicas}
		maps.Copy(files, tt)
		if r, text := compute(t, Options{}, files); r.Incomplete || len(r.Notes) > 0 || !strings.Contains(text, "resources: [services]") {
			t.Errorf("%s: got\n%s", name, text)
		}
	}
}

// Charts see the newest Kubernetes, and kinds that the tree defines.
func TestChartsSeeTheKindsOfTheTree(t *testing.T) {
	const service = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n{{ end }}"
	const defined = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: monitors.example.com}\n" +
		"spec: {group: example.com, scope: Namespaced, names: {kind: Monitor, plural: monitors}, versions: [{name: v1, served: true, storage: true}]}\n"
	const asks = "{{ if .Capabilities.APIVersions.Has \"example.com/v1/Monitor\" }}\n" + service
	for name, files := range map[string]map[string]string{
		"version":          {"web/templates/a.yaml": "{{ if semverCompare \">=1.37-0\" .Capabilities.KubeVersion.Version }}\n" + service},
		"crds":             {"web/templates/a.yaml": asks, "zz/module.star": "module()\n", "zz/crds/a.yaml": defined},
		"template":         {"web/templates/a.yaml": asks, "zz/templates/a.yaml": defined},
		"crds of its own":  {"web/templates/a.yaml": asks, "web/crds/a.yaml": defined},
		"a kind of old":    {"web/templates/a.yaml": "{{ if not (.Capabilities.APIVersions.Has \"policy/v1beta1\") }}\n" + service},
		"a kind there is":  {"web/templates/a.yaml": "{{ if .Capabilities.APIVersions.Has \"policy/v1\" }}\n" + service},
		"a kind of nobody": {"web/templates/a.yaml": "{{ if not (.Capabilities.APIVersions.Has \"example.com/v1\") }}\n" + service},
	} {
		if _, text := compute(t, Options{}, files); !strings.Contains(text, "resources: [services]") {
			t.Errorf("%s: got\n%s", name, text)
		}
	}
}
