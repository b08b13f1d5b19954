package chart

import (
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/releaseutil"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/starling-operator/starling/modules/tree"
)

// Each row of the table is about something that is said, by Helm, the template engine, or libraries of the API server.
func TestEachRowIsSaid(t *testing.T) {
	const schema = `{"type": "object", "properties": {"text": {"pattern": "^[0-9]+$"}}}`
	said := []string{
		"2 errors occurred:\n\t* pods \"a\" is forbidden\n\t* pods \"b\" is forbidden\n\n", // by webhooks of others
	}
	render := func(c *tree.Chart) {
		values := map[string]any{"text": "a {{ nope }}", "list": []any{}, "map": map[string]any{}}
		out, err := (*Renderer)(nil).Render(t.Context(), Input{Module: "web", Name: "web", Namespace: "apps", Chart: c, Values: values},
			How{Caps: chartutil.DefaultCapabilities, Revision: 1}, nil)
		if err != nil {
			out.Err = err.Error()
		}
		said = append(said, out.Err)
	}
	for _, text := range []string{
		"{{ if }}", "{{ nope }}", "{{ .Values.db.host }}", `{{ include "none" . }}`, `{{ template "none" . }}`, "{{ values }}", "{{ if true }}",
		"{{ tpl .Values.text . }}", "{{ upper .Values.map }}", "{{ upper .Values.list }}", "{{ .Values.text.a }}", "{{ toYamll . }}",
	} {
		render(chartOf("web", text))
	}
	withSchema := chartOf("web", "a: b")
	withSchema.Files = append(withSchema.Files, tree.File{Path: "values.schema.json", Data: []byte(schema)})
	render(withSchema)
	_, _, err := releaseutil.SortManifests(map[string]string{"web/templates/a.yaml": "a: b: c"}, nil, releaseutil.InstallOrder)
	said = append(said, errorText(err), errorText((&chart.Metadata{APIVersion: "v2", Name: "web"}).Validate()))

	kind := appsv1.SchemeGroupVersion.WithKind("Deployment")
	said = append(said, apierrors.NewInvalid(kind.GroupKind(), "web", field.ErrorList{
		field.Invalid(field.NewPath("spec", "selector"), map[string]any{"a": "b"}, "field is immutable"),
	}).Error())
	const wrong = `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": "two"}}`
	_, _, err = scheme.Codecs.UniversalDeserializer().Decode([]byte(wrong), nil, nil)
	said = append(said, errorText(err))
	types, known := applyconfigurations.NewTypeConverter(scheme.Scheme), scheme.Scheme
	fields, err := managedfields.NewDefaultFieldManager(types, known, known, known, kind, kind.GroupVersion(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	patch := &unstructured.Unstructured{}
	if err := patch.UnmarshalJSON([]byte(wrong)); err != nil {
		t.Fatal(err)
	}
	_, err = fields.Apply(&appsv1.Deployment{}, patch, "web", true)
	said = append(said, errorText(err))

	found := map[int]bool{}
	for _, text := range said {
		for i := range rewordings() {
			better := rewordings()[i : i+1].Rewrite(text)
			found[i] = found[i] || better != text
			text = better
		}
	}
	for i, row := range rewordings() {
		if !found[i] {
			t.Errorf("nothing says what this row is about; make something say it, or leave it out: %s", row.Text)
		}
	}
}
