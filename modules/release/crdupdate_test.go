package release

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/chart"
)

// dials is a definition with these versions, "v1: {…schema of spec…}"; the first one is stored, one with a dash before
// it is not served.
func dials(versions ...string) string {
	out := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: dials.safe.example}\nspec:\n" +
		"  group: safe.example\n  names: {kind: Dial, plural: dials, singular: dial, listKind: DialList}\n  scope: Namespaced\n  versions:\n"
	for i, v := range versions {
		name, spec, _ := strings.Cut(v, ": ")
		name, hidden := strings.CutPrefix(name, "-")
		out += fmt.Sprintf("  - {name: %s, served: %v, storage: %v, schema: {openAPIV3Schema: {type: object, properties: {spec: %s}}}}\n", name, !hidden, i == 0, spec)
	}
	return out
}

// An update of a definition that objects do not survive is refused, with the number of objects. Nothing is refused
// without objects, and of a definition that takes all that it took no object is read.
func TestADefinitionKeepsItsObjects(t *testing.T) {
	const (
		sized   = "{type: object, properties: {size: {type: integer}, name: {type: string}}}"
		unnamed = "{type: object, properties: {size: {type: integer}}}"
		small   = "{type: object, properties: {size: {type: integer, maximum: 2}, name: {type: string}}}"
		ruled   = "{type: object, properties: {size: {type: integer}, name: {type: string}}, x-kubernetes-validations: [{rule: 'self.size < 2', message: is big}]}"
		even    = "{type: object, properties: {size: {type: integer, maximum: 9}, name: {type: string}}}"
		wide    = "{type: object, properties: {size: {type: integer}, name: {type: string}, more: {type: string}}}"
		cluster = "scope: Namespaced/scope: Cluster"
		renamed = "kind: Dial,/kind: Disc,"
	)
	tests := []struct {
		name          string
		before, after string
		edit          string // of after
		objects       []string
		force         bool
		want          string // "" for taken
		unread        bool   // no object is read
		fails         string // says the list of objects
	}{
		{name: "a field less", before: dials("v1: " + sized), after: dials("v1: " + unnamed), objects: []string{"{size: 1, name: a}", "{size: 1}", "{name: b}"},
			want: `crds/0.yaml: CustomResourceDefinition dials.safe.example drops spec.name in version v1, which concerns 2 of 3 objects, the first is apps/d0: change them first, or force it with module(crds = "force")`},
		{name: "a field less that no object has", before: dials("v1: " + sized), after: dials("v1: " + unnamed), objects: []string{"{size: 1}"}},
		{name: "a field less, forced", before: dials("v1: " + sized), after: dials("v1: " + unnamed), objects: []string{"{name: a}"}, force: true},
		{name: "a field less, without objects", before: dials("v1: " + sized), after: dials("v1: " + unnamed)},
		{name: "a field more", before: dials("v1: " + sized), after: dials("v1: " + wide), objects: []string{"{size: 1, name: a}"}, unread: true},
		{name: "objects that cannot be read", before: dials("v1: " + sized), after: dials("v1: " + unnamed), objects: []string{"{name: a}"}, fails: "conversion webhook failed",
			want: `may drop or refuse spec.name in version v1, and nobody can see what its objects have there: `},
		{name: "a stored version goes, and objects cannot be read", before: dials("v1: " + sized), after: dials("v2: " + sized), objects: []string{"{name: a}"}, fails: "conversion webhook failed",
			want: `and nobody can see whether objects are left: `},
		{name: "a limit", before: dials("v1: " + sized), after: dials("v1: " + small), objects: []string{"{size: 1}", "{size: 3}"},
			want: "refuses spec.size (should be less than or equal to 2) in version v1, which concerns 1 of 2 objects, the first is apps/d1: "},
		{name: "a limit that all keep", before: dials("v1: " + sized), after: dials("v1: " + even), objects: []string{"{size: 1}", "{size: 3}"}},
		{name: "a rule", before: dials("v1: " + sized), after: dials("v1: " + ruled), objects: []string{"{size: 1}", "{size: 3}"},
			want: "refuses spec (is big) in version v1, which concerns 1 of 2 objects, the first is apps/d1: "},
		{name: "a version that is not stored", before: dials("v1: "+sized, "v2: "+sized), after: dials("v1: "+sized, "v2: "+unnamed), objects: []string{"{name: a}"},
			want: "drops spec.name in version v2, which concerns 1 of 1 objects"},
		{name: "another version is stored", before: dials("v1: " + sized), after: dials("v2: "+unnamed, "v1: "+sized), objects: []string{"{name: a}"},
			want: "drops spec.name in version v2, which concerns 1 of 1 objects"},
		{name: "another version is stored, and takes all", before: dials("v1: " + sized), after: dials("v2: "+wide, "v1: "+sized), objects: []string{"{name: a}"}, unread: true},
		{name: "another version is stored, and objects are converted", before: dials("v1: " + sized), after: dials("v2: "+unnamed, "v1: "+sized), objects: []string{"{name: a}"}, unread: true,
			edit: "scope: Namespaced/scope: Namespaced\n  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: 'https://a.example'}}}"},
		{name: "a stored version goes", before: dials("v1: " + sized), after: dials("v2: " + sized), objects: []string{"{size: 1}", "{size: 2}"},
			want: "crds/0.yaml: CustomResourceDefinition dials.safe.example drops version v1, in which status.storedVersions says that objects are stored, and objects are left (2, the first is apps/d0): keep it with served: false"},
		{name: "a stored version goes, forced", before: dials("v1: " + sized), after: dials("v2: " + sized), objects: []string{"{size: 1}"}, force: true, want: "must remain in spec.versions"},
		{name: "a stored version goes, without objects", before: dials("v1: " + sized), after: dials("v2: " + sized), want: "must remain in spec.versions"},
		{name: "a version goes that was never stored", before: dials("v1: "+sized, "v2: "+sized), after: dials("v1: " + sized), objects: []string{"{size: 1}"}, unread: true},
		{name: "a version is served no more", before: dials("v1: "+sized, "v2: "+sized), after: dials("v1: "+sized, "-v2: "+sized), objects: []string{"{size: 1}"}, unread: true},
		{name: "a version that is not served", before: dials("v1: "+sized, "-v2: "+sized), after: dials("v1: "+sized, "-v2: "+unnamed), objects: []string{"{name: a}"},
			want: "drops spec.name in version v2"},
		{name: "scope", before: dials("v1: " + sized), after: dials("v1: " + sized), edit: cluster, objects: []string{"{size: 1}"},
			want: "changes spec.scope from Namespaced to Cluster, and objects are left (1, the first is apps/d0): leave it as it is and make another kind"},
		{name: "scope, without objects", before: dials("v1: " + sized), after: dials("v1: " + sized), edit: cluster, want: "field is immutable"},
		{name: "kind", before: dials("v1: " + sized), after: dials("v1: " + sized), edit: renamed, objects: []string{"{size: 1}"}, want: "changes spec.names.kind from Dial to Disc, and objects are left (1,"},
		{name: "short names", before: dials("v1: " + sized), after: dials("v1: " + sized), edit: "kind: Dial,/shortNames: [d], kind: Dial,", objects: []string{"{size: 1}"}, unread: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w, f := newSimulatedDrift(t)
			if err := w.bring(w.Manager, "web", false, tt.before); err != nil {
				t.Fatal(err)
			}
			of := w.client.Resource(schema.GroupVersionResource{Group: "safe.example", Version: "v1", Resource: "dials"}).Namespace("apps")
			for i, spec := range tt.objects {
				obj := map[string]any{}
				if err := yaml.Unmarshal(fmt.Appendf(nil, "{apiVersion: safe.example/v1, kind: Dial, metadata: {name: d%d}, spec: %s}", i, spec), &obj); err != nil {
					t.Fatal(err)
				}
				if _, err := of.Create(t.Context(), &unstructured.Unstructured{Object: obj}, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			w.Manager = f.manager()
			reads, next := 0, f.server
			f.server = answers(func(r *http.Request) (*http.Response, error) {
				if strings.HasSuffix(r.URL.Path, "/dials") && r.Method == http.MethodGet {
					if reads++; tt.fails != "" {
						return nil, errors.New(tt.fails)
					}
				}
				return next.RoundTrip(r)
			})
			old, edited, _ := strings.Cut(tt.edit, "/")
			after := strings.Replace(tt.after, old, edited, 1)
			_, err := w.ApplyCRDs(t.Context(), Ref{Module: "web", Name: "web"}, CRDOptions{Force: tt.force}, []chart.File{{Path: "crds/first.yaml", Data: []byte(other)}, {Path: "crds/0.yaml", Data: []byte(after)}})
			switch {
			case tt.want == "" && err != nil:
				t.Fatal(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n")):
				t.Fatalf("error %v\nwant  %s", err, tt.want)
			}
			if (tt.unread || tt.force) && reads > 0 {
				t.Errorf("objects were listed %d times", reads)
			}
			_, err = w.client.Resource(crdResource()).Get(t.Context(), "others.own.example", metav1.GetOptions{})
			if refused := tt.want != "" && len(tt.objects) > 0 && !tt.force; refused != (err != nil) {
				t.Errorf("the first definition: %v", err)
			}
		})
	}
}

// A definition that is an object of the chart is looked at, too, before there is a revision.
func TestADefinitionInATemplateKeepsItsObjects(t *testing.T) {
	w, _ := newSimulatedDrift(t)
	spec := "{type: object, properties: {size: {type: integer}, name: {type: string}}}"
	target := func(spec string) Target {
		c := chartOf("web", dials("v1: "+spec))
		c.Digest = spec
		return Target{Input: chart.Input{Module: "web", Name: "web", Namespace: "apps", Chart: c, Installs: []builtins.Grant{{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}}}}
	}
	if _, err := w.Reconcile(t.Context(), target(spec)); err != nil {
		t.Fatal(err)
	}
	obj := map[string]any{"apiVersion": "safe.example/v1", "kind": "Dial", "metadata": map[string]any{"name": "a"}, "spec": map[string]any{"name": "a"}}
	of := w.client.Resource(schema.GroupVersionResource{Group: "safe.example", Version: "v1", Resource: "dials"}).Namespace("apps")
	if _, err := of.Create(t.Context(), &unstructured.Unstructured{Object: obj}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	next := target("{type: object}")
	_, err := w.Reconcile(t.Context(), next)
	if err == nil || !strings.Contains(err.Error(), "web/templates/0.yaml: CustomResourceDefinition dials.safe.example drops spec.name in version v1, which concerns 1 of 1 objects, the first is apps/a") {
		t.Fatal(err)
	}
	next.ForceCRDs = true
	if res, err := w.Reconcile(t.Context(), next); err != nil || res.Revision != 2 {
		t.Fatal(res, err)
	}
}
