package owned

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestParseIgnore(t *testing.T) {
	for text, want := range map[string]Ignore{
		"Secret":         {Kind: "Secret"},
		"Deployment/web": {Kind: "Deployment", Name: "web"},
		"spec.replicas":  {Path: Path{{Field: "spec"}, {Field: "replicas"}}},
		`Deployment/web spec.template.spec.containers[name=web].image`: {
			Kind: "Deployment", Name: "web",
			Path: Path{{Field: "spec"}, {Field: "template"}, {Field: "spec"}, {Field: "containers"}, {Key: "name", Value: "web"}, {Field: "image"}},
		},
		`Service metadata.annotations["example.com/x"]`: {Kind: "Service", Path: Path{{Field: "metadata"}, {Field: "annotations"}, {Field: "example.com/x"}}},
		"Service.serving.knative.dev/web":               {Kind: "Service.serving.knative.dev", Name: "web"},
		"Service. spec.ports":                           {Kind: "Service.", Path: Path{{Field: "spec"}, {Field: "ports"}}},
		"spec.rules[*].host":                            {Path: Path{{Field: "spec"}, {Field: "rules"}, {Any: true}, {Field: "host"}}},
	} {
		got, err := ParseIgnore(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" || got.String() != text {
			t.Errorf("%s is %s: %s", text, got, diff)
		}
	}
	for _, text := range []string{"", " ", "Deployment/", "/web", ".spec", "spec..x", "spec.", "spec[", "spec[]", `spec[""]`, "spec[a]", "web/x y", "a b", "Service.A/web", "Service..x", "Deployment spec x"} {
		if got, err := ParseIgnore(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

func TestIgnored(t *testing.T) {
	var list []Ignore
	for _, text := range []string{"Secret", "Deployment/web spec.replicas", "metadata.labels", "Job/web", "Service.serving.knative.dev/web", "Ingress."} {
		i, err := ParseIgnore(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, i)
	}
	for name, test := range map[string]struct {
		apiVersion, kind, name string
		paths                  int
		all                    bool
	}{
		"a kind": {"v1", "Secret", "x", 0, true}, "an object": {"batch/v1", "Job", "web", 0, true}, "another object": {"batch/v1", "Job", "db", 1, false},
		"a field": {"apps/v1", "Deployment", "web", 2, false}, "a field of another": {"apps/v1", "Deployment", "db", 1, false},
		"a kind of any group":          {"example.com/v1", "Secret", "x", 0, true},
		"of its group, in any version": {"serving.knative.dev/v2", "Service", "web", 0, true}, "of another group": {"v1", "Service", "web", 1, false},
		"of no group": {"v1", "Ingress", "web", 0, true}, "of a group": {"networking.k8s.io/v1", "Ingress", "web", 1, false},
	} {
		paths, all := Ignored(list, test.apiVersion, test.kind, test.name)
		if len(paths) != test.paths || all != test.all {
			t.Errorf("%s: %v, %v", name, paths, all)
		}
	}
}

func TestKeep(t *testing.T) {
	for name, test := range map[string]struct{ path, obj, live, want string }{
		"a value":              {"spec.v", "{spec: {v: 1, m: 1}}", "{spec: {v: 2, m: 2}}", "{spec: {v: 2, m: 1}}"},
		"gone in the cluster":  {"spec.v", "{spec: {v: 1, m: 1}}", "{spec: {m: 2}}", "{spec: {m: 1}}"},
		"all of it gone":       {"spec.v", "{spec: {v: 1}}", "{}", "{spec: {}}"},
		"not in the manifest":  {"spec.v", "{spec: {m: 1}}", "{spec: {v: 2}}", "{spec: {m: 1, v: 2}}"},
		"a whole map":          {"spec", "{spec: {v: 1}}", "{spec: {x: {z: 1}}}", "{spec: {x: {z: 1}}}"},
		"a named element":      {"c[name=b].i", "{c: [{name: a, i: 1}, {name: b, i: 1}]}", "{c: [{name: b, i: 2}, {name: a, i: 2}]}", "{c: [{name: a, i: 1}, {name: b, i: 2}]}"},
		"an element gone":      {"c[name=b]", "{c: [{name: a}, {name: b}]}", "{c: [{name: a}]}", "{c: [{name: a}]}"},
		"another key":          {"c[port=80].v", "{c: [{port: 80, v: x}]}", "{c: [{port: 80, v: z}]}", "{c: [{port: 80, v: z}]}"},
		"all elements":         {"c[*].i", "{c: [{name: a, i: 1}, {name: b, i: 1}]}", "{c: [{name: b, i: 2}, {name: a}]}", "{c: [{name: a}, {name: b, i: 2}]}"},
		"elements by place":    {"c[*]", "{c: [1, 2, 3]}", "{c: [4, 5]}", "{c: [4, 5]}"},
		"all keys":             {"d[*]", "{d: {a: 1, b: 1}}", "{d: {a: 2, c: 2}}", "{d: {a: 2, c: 2}}"},
		"of another shape":     {"a.b.c", "{a: {b: [1]}}", "{a: {b: {c: 1}}}", "{a: {b: [1]}}"},
		"live is of another":   {"a.b", "{a: {b: 1}}", "{a: [1]}", "{a: {}}"},
		"a step into a scalar": {"a.b", "{a: 1}", "{a: {b: 1}}", "{a: 1}"},
	} {
		read := func(text string) (out map[string]any) {
			if err := yaml.Unmarshal([]byte(text), &out); err != nil {
				t.Fatal(err)
			}
			return out
		}
		p, err := ParsePath(test.path)
		if err != nil {
			t.Fatal(err)
		}
		obj := read(test.obj)
		Keep(obj, read(test.live), []Path{p})
		if diff := cmp.Diff(read(test.want), obj); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
