package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// ofControllers reads a file of a module below testdata/controllers, with its groups in the test's own.
func (f *fixture) ofControllers(file string) string {
	f.t.Helper()
	data, err := os.ReadFile("../runtime/testrunner/testdata/controllers/" + file)
	if err != nil {
		f.t.Fatal(err)
	}
	text := strings.ReplaceAll(string(data), "example.org/", f.ns+".example.com/")
	return strings.ReplaceAll(text, "elsewhere.org/", f.ns+".elsewhere.com/")
}

// The API server keeps each of these children in another form than the controller writes. The next part comes all the
// same, a part that is not wanted any more goes, and once all is done nobody writes, another process least of all.
func TestAnotherFormIsNoChange(t *testing.T) {
	t.Parallel()
	f := &fixture{t: t, ns: shared.Namespace(t), name: "starling", modules: t.TempDir()}
	files := map[string]string{"forms/module.star": f.ofControllers("forms/module.star"), "forms/hooks/forms.star": f.ofControllers("forms/hooks/forms.star")}
	f.write(files)
	var forms []string
	for _, line := range strings.Split(files["forms/hooks/forms.star"], "\n") {
		if name, is := strings.CutPrefix(line, `    "`); is && strings.Contains(name, `": `) {
			forms = append(forms, name[:strings.Index(name, `"`)])
		}
	}
	if len(forms) < 10 {
		t.Fatal(forms)
	}
	f.grantPrinted()
	f.start()
	f.waitReady()
	apply := func(i int, extra bool) {
		t.Helper()
		shared.Apply(t, fmt.Sprintf("{apiVersion: %s.example.com/v1, kind: Shape, metadata: {name: n%d, namespace: %s}, spec: {form: %q, extra: %v}}", f.ns, i, f.ns, forms[i], extra))
	}
	maps := shared.Dynamic.Resource(configMaps).Namespace(f.ns)
	for i := range forms {
		apply(i, true)
	}
	for i, form := range forms {
		f.eventually("what comes after "+form, func() error {
			_, err := maps.Get(t.Context(), fmt.Sprintf("n%d-second", i), metav1.GetOptions{})
			return err
		})
		f.eventually("the extra part of "+form, func() error {
			_, err := maps.Get(t.Context(), fmt.Sprintf("n%d-extra", i), metav1.GetOptions{})
			return err
		})
		apply(i, false)
	}
	for i, form := range forms {
		f.eventually("the extra part of "+form+" is gone", func() error {
			if _, err := maps.Get(t.Context(), fmt.Sprintf("n%d-extra", i), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is there: %v", err)
			}
			return nil
		})
	}
}

// A child of a kind with a status that tells is not ready before it does: of a kind of the tree, and of one that
// somebody else has defined, which the schemas of the API server tell.
func TestAChildIsNotReadyBeforeItSaysSo(t *testing.T) {
	t.Parallel()
	f := &fixture{t: t, ns: shared.Namespace(t), name: "starling", modules: t.TempDir()}
	group := f.ns + ".elsewhere.com"
	shared.Apply(t, fmt.Sprintf(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: foreigns.%s}, spec: {
  group: %s, scope: Namespaced, names: {kind: Foreign, plural: foreigns}, versions: [{name: v1, served: true, storage: true, subresources: {status: {}},
  schema: {openAPIV3Schema: {type: object, properties: {status: {type: object, properties: {conditions: {type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}}}}}]}}`, group, group))
	t.Cleanup(func() {
		if err := shared.Dynamic.Resource(definitions).Delete(context.Background(), "foreigns."+group, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	f.eventually("the schema of Foreign", func() error {
		text, err := shared.Client.Discovery().RESTClient().Get().AbsPath("/openapi/v3/apis/" + group + "/v1").DoRaw(t.Context())
		if err == nil && !strings.Contains(string(text), `"kind":"Foreign"`) {
			err = fmt.Errorf("it is not there")
		}
		return err
	})
	f.write(map[string]string{"reports/module.star": f.ofControllers("reports/module.star"), "reports/hooks/reports.star": f.ofControllers("reports/hooks/reports.star")})
	f.grantPrinted()
	f.start()
	f.waitReady()
	shared.Apply(t, fmt.Sprintf("{apiVersion: %s.example.com/v1, kind: Whole, metadata: {name: w, namespace: %s}, spec: {a: foreign}}", f.ns, f.ns))
	maps := shared.Dynamic.Resource(configMaps).Namespace(f.ns)
	there := func(name string) func() error {
		return func() error {
			_, err := maps.Get(t.Context(), name, metav1.GetOptions{})
			return err
		}
	}
	f.eventually("what comes after Mute", there("after-mute"))
	halves := shared.Dynamic.Resource(schema.GroupVersionResource{Group: f.ns + ".example.com", Version: "v1", Resource: "halfs"}).Namespace(f.ns)
	foreigns := shared.Dynamic.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: "foreigns"}).Namespace(f.ns)
	wholes := shared.Dynamic.Resource(schema.GroupVersionResource{Group: f.ns + ".example.com", Version: "v1", Resource: "wholes"}).Namespace(f.ns)
	says := func(text string) func() error {
		return func() error {
			o, err := wholes.Get(t.Context(), "w", metav1.GetOptions{})
			if err != nil {
				return err
			}
			if conditions := fmt.Sprint(o.Object["status"]); !strings.Contains(conditions, text) {
				return fmt.Errorf("%s", conditions)
			}
			return nil
		}
	}
	tell := func(of dynamic.ResourceInterface, name, status string) {
		t.Helper()
		if _, err := of.Patch(t.Context(), name, types.MergePatchType, []byte(`{"status": `+status+`}`), metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
	}
	f.eventually("the parent waits", says("Half "+f.ns+"/half is not ready: its controller has not seen generation 1 yet"))
	for _, name := range []string{"after-half", "after-foreign"} {
		if err := there(name)(); !apierrors.IsNotFound(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	tell(halves, "half", `{"observedGeneration": 1}`)
	f.eventually("what comes after Half", there("after-half"))
	f.eventually("the parent waits", says("Foreign "+f.ns+"/foreign is not ready: its controller has not seen generation 1 yet"))
	if err := there("after-foreign")(); !apierrors.IsNotFound(err) {
		t.Error(err)
	}
	tell(foreigns, "foreign", `{"conditions": [{"type": "Any", "status": "True"}]}`)
	f.eventually("what comes after Foreign", there("after-foreign"))
}
