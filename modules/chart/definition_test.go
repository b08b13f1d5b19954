package chart

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const thingCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.GROUP, creationTimestamp: null}
spec:
  group: GROUP
  names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}
  scope: Namespaced
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
    - {name: v0, served: false, storage: false, schema: {openAPIV3Schema: {type: object}}}
status: {conditions: [], storedVersions: []}
`

func TestParseCRDs(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
		err        string
	}{
		{"empty", "", nil, ""},
		{"comments", "# a\n---\n# b\n", nil, ""},
		{"two", thingCRD + "---\n" + thingCRD, []string{"things.GROUP v1", "things.GROUP v1"}, ""},
		{"json", `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a"}}`, []string{"a"}, ""},
		{"another kind", thingCRD + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", nil,
			`crds/a.yaml: document 2: kind is "ConfigMap"; crds/ holds CustomResourceDefinitions only, other objects belong to the chart's templates`},
		{"old", "apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\nmetadata: {name: a}\n", nil,
			`crds/a.yaml: document 1: apiVersion is "apiextensions.k8s.io/v1beta1", not apiextensions.k8s.io/v1`},
		{"no name", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n", nil, "crds/a.yaml: document 1: metadata.name is missing"},
		{"twice the same key", "kind: A\nkind: B\n", nil, `crds/a.yaml: document 1: yaml: unmarshal errors: line 2: key "kind" already set in map`},
		{"Starling's", strings.ReplaceAll(strings.ReplaceAll(thingCRD, "things", "modules"), "GROUP", "starling.dev"), nil,
			"crds/a.yaml: document 1: modules.starling.dev has a name of modules.starling.dev, which belongs to Starling itself: leave it out, or rename it"},
		{"a kind of Starling's", strings.ReplaceAll(strings.ReplaceAll(thingCRD, "kind: Thing", "kind: Module"), "GROUP", "starling.dev"), nil,
			"crds/a.yaml: document 1: things.starling.dev has a name of modules.starling.dev, which belongs to Starling itself: leave it out, or rename it"},
		{"list", "- a\n", nil, "crds/a.yaml: document 1: not an object of Kubernetes"},
		{"alias bomb", thingCRD + "---\na: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a,", 40) + "]\n", nil,
			"crds/a.yaml: document 2 is too large: with its aliases it makes more than 400000 values or 32 MiB of text"},
		{"no YAML", "a: b: c\n", nil, "crds/a.yaml: document 1: yaml: mapping values are not allowed in this context"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			found, err := Definitions(File{Path: "crds/a.yaml", Data: []byte(tt.text)})
			var got []string
			for _, c := range found {
				line := c.Object.GetName()
				for _, v := range c.Versions {
					line += " " + v
				}
				if _, ok := c.Object.Object["status"]; ok {
					t.Error("status is applied")
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || errorText(err) != tt.err {
				t.Errorf("error %v\n%s", err, diff)
			}
		})
	}
}
