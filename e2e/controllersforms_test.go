package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The API server keeps each of these children in another form than the controller writes. The next part comes all the
// same, a part that is not wanted any more goes, and once all is done nobody writes, another process least of all.
func TestAnotherFormIsNoChange(t *testing.T) {
	t.Parallel()
	f := &fixture{t: t, ns: shared.Namespace(t), name: "starling", modules: t.TempDir()}
	read := func(file string) string {
		t.Helper()
		data, err := os.ReadFile("../runtime/testrunner/testdata/controllers/forms/" + file)
		if err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(string(data), "example.org/", f.ns+".example.com/")
	}
	files := map[string]string{"forms/module.star": read("module.star"), "forms/hooks/forms.star": read("hooks/forms.star")}
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
