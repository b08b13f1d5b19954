package test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	k8syaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/starling-operator/starling/modules/rbac"
	"github.com/starling-operator/starling/modules/tree"
	objects "github.com/starling-operator/starling/runtime/modules"
)

const deployFile = "deploy/starling.yaml"

// The roles of deploy/starling.yaml are what `starling rbac examples/quickstart` prints,
// and its ConfigMap holds that tree.
func TestDeployIsUpToDate(t *testing.T) {
	read, err := tree.ReadDir("examples/quickstart", tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	printed, err := rbac.Compute(t.Context(), rbac.Options{Tree: read, Namespace: "starling-system", Name: "starling"})
	if err != nil {
		t.Fatal(err)
	}
	var roles bytes.Buffer
	if err := printed.Write(&roles); err != nil {
		t.Fatal(err)
	}
	modules, items := configMapOf(t, read.Files)

	old, err := os.ReadFile(deployFile)
	if err != nil {
		t.Fatal(err)
	}
	want := string(old)
	for section, text := range map[string]string{"rbac": roles.String(), "modules": modules, "items": items} {
		want = replaceSection(t, want, section, text)
	}
	if *update {
		if err := os.WriteFile(deployFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(old) {
		t.Errorf("%s is not what the code says; run: go test ./test -run Deploy -update", deployFile)
	}
}

// deploy/crds.yaml is the definition of Module objects that `starling run` applies.
func TestDeployHoldsTheDefinition(t *testing.T) {
	const file = "deploy/crds.yaml"
	if *update {
		if err := os.WriteFile(file, objects.Definition, 0o644); err != nil {
			t.Fatal(err)
		}
	} else if text, err := os.ReadFile(file); err != nil || string(text) != string(objects.Definition) {
		t.Errorf("%s is not what the code says (%v); run: go test ./test -run Deploy -update", file, err)
	}
}

// replaceSection puts text between the lines "# <name>" and "# </name>", indented as they
// are.
func replaceSection(t *testing.T, all, name, text string) string {
	t.Helper()
	begin, end := "# <"+name+">\n", "# </"+name+">\n"
	i, j := strings.Index(all, begin), strings.Index(all, end)
	if i < 0 || j < i {
		t.Fatalf("%s has no section %s", deployFile, name)
	}
	indent := all[strings.LastIndex(all[:i], "\n")+1 : i]
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(indent + line)
	}
	return all[:i] + begin + out.String() + indent + all[j:]
}

// configMapOf makes a ConfigMap of a tree, tests and what is no module's aside, and the
// items that give its keys their paths back.
func configMapOf(t *testing.T, files fs.FS) (configMap, items string) {
	t.Helper()
	var data, paths strings.Builder
	for path, text := range filesOf(t, files) {
		key := strings.ReplaceAll(path, "/", ".")
		fmt.Fprintf(&data, "  %s: |\n", key)
		for line := range strings.Lines(text) {
			if line != "\n" {
				line = "    " + line
			}
			data.WriteString(line)
		}
		fmt.Fprintf(&paths, "- key: %s\n  path: %s\n", key, path)
	}
	const head = "# The files of examples/quickstart.\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: starling-modules\n  namespace: starling-system\n" +
		"  labels:\n    app.kubernetes.io/name: starling\ndata:\n"
	return head + data.String(), paths.String()
}

// objectsOf reads a file of manifests.
func objectsOf(t *testing.T, path string) []unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return decodeObjects(t, path, text)
}

// decodeObjects reads the objects of a YAML stream that has come from path.
func decodeObjects(t *testing.T, path string, text []byte) (out []unstructured.Unstructured) {
	t.Helper()
	docs := k8syaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var obj unstructured.Unstructured
		if err := docs.Decode(&obj.Object); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatalf("%s: %v\n%s", path, err, text)
		}
		if obj.Object != nil {
			out = append(out, obj)
		}
	}
}

// Mounted as the Deployment says, the ConfigMap is the tree.
func TestDeployHoldsTheTree(t *testing.T) {
	var kinds []string
	paths, data := map[string]string{}, map[string]string{}
	for _, o := range objectsOf(t, deployFile) {
		kinds = append(kinds, o.GetKind())
		if o.GetKind() == "ConfigMap" {
			data, _, _ = unstructured.NestedStringMap(o.Object, "data")
		}
		volumes, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "volumes")
		for _, v := range volumes {
			items, _, _ := unstructured.NestedSlice(v.(map[string]any), "configMap", "items")
			for _, item := range items {
				item := item.(map[string]any)
				paths[item["path"].(string)] = item["key"].(string)
			}
		}
	}
	want := []string{"Namespace", "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Role", "RoleBinding", "ConfigMap", "PriorityClass", "Deployment", "PodDisruptionBudget", "Service"}
	if !slices.Equal(kinds, want) {
		t.Errorf("got %v, want %v", kinds, want)
	}
	if len(paths) == 0 || len(paths) != len(data) {
		t.Errorf("%d paths for %d files", len(paths), len(data))
	}
	for path, key := range paths {
		if text, err := os.ReadFile("examples/quickstart/" + path); err != nil || string(text) != data[key] {
			t.Errorf("%s is not what the tree has (%v)", path, err)
		}
	}
}

// examples/image: its Dockerfile copies into where Starling is told to look, and its
// volume holds all of its module, as the commands beside it put it there.
func TestImageExample(t *testing.T) {
	docker, err := os.ReadFile("examples/image/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"FROM ${STARLING}\n", "COPY . /modules\n", `CMD ["run", "--modules=/modules",`} {
		if !strings.Contains(string(docker), line) {
			t.Errorf("the Dockerfile has no line %q", line)
		}
	}
	text, err := os.ReadFile("examples/image/volume.yaml")
	if err != nil {
		t.Fatal(err)
	}
	mounted := map[string]bool{}
	for _, o := range objectsOf(t, "examples/image/volume.yaml") {
		volumes, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "volumes")
		for _, v := range volumes {
			sources, _, _ := unstructured.NestedSlice(v.(map[string]any), "projected", "sources")
			for _, s := range sources {
				name, _, _ := unstructured.NestedString(s.(map[string]any), "configMap", "name")
				items, _, _ := unstructured.NestedSlice(s.(map[string]any), "configMap", "items")
				for _, item := range items {
					item := item.(map[string]any)
					_, after, _ := strings.Cut(string(text), "create configmap "+name+" ")
					command, _, _ := strings.Cut(after, "create configmap ")
					if want := fmt.Sprintf("--from-file=%s=examples/image/%s", item["key"], item["path"]); !strings.Contains(command, want) {
						t.Errorf("no command says %s of %s", want, name)
					}
					mounted[item["path"].(string)] = true
				}
			}
		}
	}
	read, err := tree.ReadDir("examples/image", tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = fs.WalkDir(read.Files, ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.Contains(path, "/") && !strings.HasSuffix(path, "_test.star") && !mounted[path] {
			t.Errorf("%s is not mounted", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The Dockerfile builds what `make image` does.
func TestDockerfile(t *testing.T) {
	text, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"CGO_ENABLED=0", "-trimpath", "FROM gcr.io/distroless/static-debian12:nonroot\n", "USER 65532:65532\n", `ENTRYPOINT ["/usr/local/bin/starling"]`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("it has no %q", want)
		}
	}
}

// The PodMonitor of deploy/prometheus selects the pods of both installations, by the port that they have.
func TestDeployPodMonitor(t *testing.T) {
	var monitor struct {
		Selector struct {
			MatchLabels map[string]string `json:"matchLabels"`
		} `json:"selector"`
		PodMetricsEndpoints []struct {
			Port string `json:"port"`
		} `json:"podMetricsEndpoints"`
	}
	convert(t, named(t, objectsOf(t, "deploy/prometheus/podmonitor.yaml"), "PodMonitor", "starling"), &monitor, "spec")
	for where, objects := range map[string][]unstructured.Unstructured{
		"the file": objectsOf(t, deployFile), "the chart": renderChart(t, "second", nil),
	} {
		for _, o := range objects {
			if o.GetKind() != "Deployment" {
				continue
			}
			var pod corev1.PodTemplateSpec
			convert(t, o, &pod, "spec", "template")
			selects := labels.SelectorFromSet(monitor.Selector.MatchLabels).Matches(labels.Set(pod.Labels))
			if port := pod.Spec.Containers[0].Ports[0].Name; !selects || len(monitor.PodMetricsEndpoints) != 1 || port != monitor.PodMetricsEndpoints[0].Port {
				t.Errorf("%s: selected %v, with port %q of %v", where, selects, port, monitor.PodMetricsEndpoints)
			}
		}
	}
}
