package test

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/modules/rbac"
	"github.com/starling-operator/starling/modules/tree"
)

const (
	deployChart     = "deploy/chart"
	chartQuickstart = deployChart + "/files/quickstart.yaml"
)

// The chart brings the files of examples/quickstart, and the rights that `starling rbac` prints for
// them: Helm reads nothing outside of a chart.
func TestDeployChartHoldsTheQuickstart(t *testing.T) {
	read, err := tree.ReadDir("examples/quickstart", tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	printed, err := rbac.Compute(t.Context(), rbac.Options{Tree: read, Namespace: "starling-system", Name: "starling"})
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	if err := printed.WriteValues(&want); err != nil {
		t.Fatal(err)
	}
	want.WriteString("files:\n")
	for path, text := range filesOf(t, read.Files) {
		fmt.Fprintf(&want, "  %s: |\n", path)
		for line := range strings.Lines(text) {
			if line != "\n" {
				line = "    " + line
			}
			want.WriteString(line)
		}
	}
	if *update {
		if err := os.WriteFile(chartQuickstart, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if text, err := os.ReadFile(chartQuickstart); err != nil || !bytes.Equal(text, want.Bytes()) {
		t.Errorf("%s is not what the code says (%v); run: go test ./test -run Deploy -update", chartQuickstart, err)
	}
}

// Without values the chart gives the rights of deploy/starling.yaml, neither more nor less, and has
// the pods that this file has, which end, and are reached, as those do.
func TestDeployChartIsTheFile(t *testing.T) {
	file := objectsOf(t, deployFile)
	chart := renderChart(t, "starling", nil)
	want, got := grantsIn(t, file), grantsIn(t, chart)
	for _, g := range want {
		if !slices.Contains(got, g) {
			t.Errorf("the chart does not give: %s", g)
		}
	}
	for _, g := range got {
		if !slices.Contains(want, g) {
			t.Errorf("the chart gives more than the file: %s", g)
		}
	}
	same := func(theirs, ours any, kind, name string, fields ...string) {
		t.Helper()
		convert(t, named(t, file, kind, name), theirs, fields...)
		convert(t, named(t, chart, kind, name), ours, fields...)
		a, errA := yaml.Marshal(theirs)
		b, errB := yaml.Marshal(ours)
		// Pods of one instance are told from those of another, which the file does not have.
		b = instanceLine.ReplaceAll(b, nil)
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs (%v, %v): the file has\n%s\nand the chart\n%s", kind, errA, errB, a, b)
		}
	}
	same(&appsv1.DeploymentSpec{}, &appsv1.DeploymentSpec{}, "Deployment", "starling", "spec")
	same(&policyv1.PodDisruptionBudgetSpec{}, &policyv1.PodDisruptionBudgetSpec{}, "PodDisruptionBudget", "starling", "spec")
	same(&corev1.ServiceSpec{}, &corev1.ServiceSpec{}, "Service", "starling", "spec")
	same(&schedulingv1.PriorityClass{}, &schedulingv1.PriorityClass{}, "PriorityClass", "starling-system.starling")
	data := func(objects []unstructured.Unstructured) map[string]string {
		out, _, err := unstructured.NestedStringMap(named(t, objects, "ConfigMap", "starling-modules").Object, "data")
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if a, b := data(file), data(chart); !maps.Equal(a, b) {
		t.Errorf("the modules differ: the file has %v, and the chart %v", a, b)
	}
	if ns := named(t, chart, "Namespace", "hello"); ns.GetAnnotations()["helm.sh/resource-policy"] != "keep" {
		t.Error("namespace hello goes with the release, and with it what runs there")
	}
}

// instanceLine is the label that the chart has, and the file has not.
var instanceLine = regexp.MustCompile(`(?m)^ *app\.kubernetes\.io/instance: .*\n`)

// Each source of modules is mounted where Starling is told to look.
func TestDeployChartValues(t *testing.T) {
	for name, c := range map[string]struct {
		release, values string
		holds, lacks    []string
	}{
		"an image": {values: `{modules: {from: image}, image: {repository: registry.example.com/addons, tag: v1}}`,
			holds: []string{"image: registry.example.com/addons:v1\n", "- --modules=/modules\n"},
			lacks: []string{"name: modules\n", "nodes", "name: hello"}},
		"a digest": {values: `{image: {repository: a/b, digest: "sha256:` + strings.Repeat("a", 64) + `"}}`,
			holds: []string{"image: a/b@sha256:" + strings.Repeat("a", 64) + "\n"}},
		"an image that is mounted": {values: `{modules: {from: image, image: {mount: "registry.example.com/modules:v1", path: /addons}}}`,
			holds: []string{"- --modules=/modules/addons\n", "reference: registry.example.com/modules:v1\n", "mountPath: /modules\n"}},
		"ConfigMaps": {values: `{modules: {from: configMaps, configMaps: [{name: addons-note, items: [{key: module.star, path: note/module.star}]}]}}`,
			holds: []string{"- --modules=/modules\n", "projected:\n", "name: addons-note\n", "path: note/module.star\n"},
			lacks: []string{"kind: ConfigMap\nmetadata"}},
		"git": {values: `{modules: {from: git, git: {repository: "https://example.com/addons.git", path: deploy/addons, secret: git}}}`,
			holds: []string{"- --modules=/git/tree/deploy/addons\n", "- --repo=https://example.com/addons.git\n", "- --one-time\n", "- --max-failures=-1\n", "mountPath: /etc/git-secret\n", "secretName: git\n"}},
		"git without a folder": {values: `{modules: {from: git, git: {repository: "https://example.com/addons.git"}}}`,
			holds: []string{"- --modules=/git/tree\n"}, lacks: []string{"/etc/git-secret"}},
		"another instance": {release: "addons.a",
			holds: []string{"- --name=addons.a\n", "name: addons-a\n", "name: infra.addons.a\n", "- addons.a-releases\n"}},
		"names that YAML takes for numbers": {release: "1.5", values: `{replicas: 1, priorityClassName: "7", state: {claim: "0x1"}, registrySecret: "null", rbac: {namespaces: [{name: "12", rules: []}]}}`,
			holds: []string{"name: \"1.5\"\n", "priorityClassName: \"7\"\n", "claimName: \"0x1\"\n", "secretName: \"null\"\n", "namespace: \"12\"\n", "instance: \"1.5\"\n"}},
		"rights of modules": {values: `{modules: {from: image}, rbac: {cluster: [{apiGroups: [""], resources: [nodes], verbs: [list]}],
			namespaces: [{name: web, create: true, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}, {name: infra, rules: [{apiGroups: [""], resources: [services], verbs: [get]}]},
			{name: default, rules: [{apiGroups: [""], resources: [events], verbs: [get, create, patch]}]}]}}`,
			holds: []string{"kind: Namespace\nmetadata:\n", "name: addons-modules\n", "namespace: web\n", "- pods\n"}},
		"no rights":             {values: `{rbac: {create: false}}`, lacks: []string{"kind: Role\n", "kind: ClusterRole\n"}},
		"no Module objects":     {values: `{modules: {from: image}, moduleObjects: false}`, holds: []string{"- --module-objects=false\n"}, lacks: []string{"- starling.dev\n", "modules.starling.dev", "namespace: default"}},
		"no webhooks":           {values: `{webhooks: {enabled: false}}`, lacks: []string{"9443", "port: 443\n"}},
		"certificates of yours": {values: `{webhooks: {certSecret: certs}}`, holds: []string{"- --webhook-cert-dir=/webhook-certs\n", "secretName: certs\n"}},
		"two replicas":          {holds: []string{"replicas: 2\n", "type: RollingUpdate\n", "maxUnavailable: 0\n", "kind: PodDisruptionBudget\n", "name: infra.addons\n", "priorityClassName: infra.addons\n"}},
		"one replica":           {values: `{replicas: 1}`, holds: []string{"replicas: 1\n", "type: RollingUpdate\n", "maxUnavailable: 1\n"}},
		"one after the other":   {values: `{replicas: 1, strategy: Recreate}`, holds: []string{"type: Recreate\n"}, lacks: []string{"maxSurge"}},
		"a folder that stays":   {values: `{replicas: 1, state: {claim: kept}}`, holds: []string{"type: Recreate\n", "claimName: kept\n", "fsGroup: 65532\n", "fsGroupChangePolicy: OnRootMismatch\n"}},
		"no class of priority":  {values: `{priorityClass: {create: false}}`, lacks: []string{"kind: PriorityClass\n", "priorityClassName"}},
		"a class of yours":      {values: `{priorityClassName: system-cluster-critical}`, holds: []string{"priorityClassName: system-cluster-critical\n"}, lacks: []string{"kind: PriorityClass\n"}},
		"the rest": {values: `{replicas: 1, args: ["--log-level=debug"], env: [{name: REGION, value: eu}], state: {claim: kept}, podAnnotations: {a: b}, imagePullSecrets: [{name: pull}], priorityClassName: system-cluster-critical,
			tolerations: [{operator: Exists}], affinity: {podAntiAffinity: {}}, serviceAccount: {annotations: {c: d}}}`,
			holds: []string{"replicas: 1\n", "- --log-level=debug\n", "name: REGION\n", "claimName: kept\n", "a: b\n", "name: pull\n", "priorityClassName: system-cluster-critical\n", "operator: Exists\n", "c: d\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			release := c.release
			if release == "" {
				release = "addons"
			}
			var text strings.Builder
			for _, o := range renderChart(t, release, []byte(c.values)) {
				y, err := yaml.Marshal(o.Object)
				if err != nil {
					t.Fatal(err)
				}
				text.Write(append(y, "---\n"...))
			}
			for _, want := range c.holds {
				if !strings.Contains(text.String(), want) {
					t.Errorf("there is no %q in\n%s", want, text.String())
				}
			}
			for _, none := range c.lacks {
				if strings.Contains(text.String(), none) {
					t.Errorf("there is %q in\n%s", none, text.String())
				}
			}
		})
	}
}

// Values that cannot be meant are refused, with their names.
func TestDeployChartRefuses(t *testing.T) {
	for values, want := range map[string]string{
		`{replcas: 2}`:                    "replcas",
		`{modules: {from: configmap}}`:    "from",
		`{modules: {from: configMaps}}`:   "modules.configMaps is empty",
		`{modules: {from: git}}`:          "modules.git.repository is missing",
		`{rbac: {cluster: [{verb: []}]}}`: "verb",
		`{state: {claim: a}}`:             "state.claim is the folder of one process; with it set replicas: 1",
		`{strategy: recreate}`:            "strategy",
	} {
		if _, err := tryChart("starling", []byte(values)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", values, err, want)
		}
	}
}

// tryChart renders the chart by Starling's Helm library.
func tryChart(release string, values []byte) (map[string]string, error) {
	c, err := loader.LoadDir(deployChart)
	if err != nil {
		return nil, err
	}
	given, err := chartutil.ReadValues(values)
	if err != nil {
		return nil, err
	}
	all, err := chartutil.ToRenderValues(c, given, chartutil.ReleaseOptions{Name: release, Namespace: namespaceOf(release), IsInstall: true}, nil)
	if err != nil {
		return nil, err
	}
	return engine.Render(c, all)
}

// namespaceOf is that of deploy/starling.yaml for its instance.
func namespaceOf(release string) string {
	if release == "starling" {
		return "starling-system"
	}
	return "infra"
}

// renderChart returns the objects of the chart.
func renderChart(t *testing.T, release string, values []byte) (out []unstructured.Unstructured) {
	t.Helper()
	files, err := tryChart(release, values)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if filepath.Ext(path) == ".yaml" {
			out = append(out, decodeObjects(t, path, []byte(files[path]))...)
		}
	}
	return out
}

// grantsIn are all that roles allow, one line for each verb of each resource.
func grantsIn(t *testing.T, objects []unstructured.Unstructured) (out []string) {
	t.Helper()
	for _, o := range objects {
		switch o.GetKind() {
		case "Role", "ClusterRole":
			var role rbacv1.ClusterRole // as a Role, but for what takes in others
			convert(t, o, &role)
			for _, r := range role.Rules {
				for _, group := range r.APIGroups {
					for _, resource := range r.Resources {
						for _, verb := range r.Verbs {
							out = append(out, fmt.Sprintf("%s %s/%s: %s %s.%s %v", o.GetKind(), o.GetNamespace(), o.GetName(), verb, resource, group, r.ResourceNames))
						}
					}
				}
				for _, url := range r.NonResourceURLs {
					out = append(out, fmt.Sprintf("%s %s: %v %s", o.GetKind(), o.GetName(), r.Verbs, url))
				}
			}
		case "RoleBinding", "ClusterRoleBinding":
			var binding rbacv1.ClusterRoleBinding
			convert(t, o, &binding)
			out = append(out, fmt.Sprintf("%s %s/%s: %v for %v", o.GetKind(), o.GetNamespace(), o.GetName(), binding.RoleRef, binding.Subjects))
		}
	}
	return out
}

// convert reads an object, or a part of it, as its type.
func convert(t *testing.T, o unstructured.Unstructured, into any, fields ...string) {
	t.Helper()
	part, _, err := unstructured.NestedMap(o.Object, fields...)
	if len(fields) == 0 {
		part, err = o.Object, nil
	}
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(part, into)
	}
	if err != nil {
		t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
	}
}

// named returns one object.
func named(t *testing.T, objects []unstructured.Unstructured, kind, name string) unstructured.Unstructured {
	t.Helper()
	i := slices.IndexFunc(objects, func(o unstructured.Unstructured) bool { return o.GetKind() == kind && o.GetName() == name })
	if i < 0 {
		t.Fatalf("there is no %s %s", kind, name)
	}
	return objects[i]
}

// filesOf yields the files of the modules of a tree, tests and what is no module's aside.
func filesOf(t *testing.T, files fs.FS) func(yield func(path, text string) bool) {
	t.Helper()
	return func(yield func(path, text string) bool) {
		err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.Contains(path, "/") || strings.HasSuffix(path, "_test.star") {
				return err
			}
			text, err := fs.ReadFile(files, path)
			if err == nil && !yield(path, string(text)) {
				return fs.SkipAll
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
