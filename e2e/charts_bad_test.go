package e2e

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/modules/status"
)

// A chart of which Helm, or the API server, makes no release is its module's concern: the
// module says why, all that is released stays, and others go on.
func TestChartsThatCannotBeReleased(t *testing.T) {
	t.Parallel()
	const things = "module(enabled = True, installs = [grant(\"nobody.example/v1\", \"Thing\"), grant(\"apiextensions.k8s.io/v1\", \"CustomResourceDefinition\")])\n"
	const thing = "apiVersion: nobody.example/v1\nkind: Thing\nmetadata: {name: a}\n"
	const refused = "the cluster does not serve kind Thing of nobody.example/v1; its CustomResourceDefinition belongs into crds/"
	bad := []struct {
		module, template string
		says             []string
	}{
		{"twice", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: twice}\n", []string{"twice/templates/cm.yaml:3: ConfigMap twice", "is in twice/templates/bad.yaml too"}},
		{"unserved", thing, []string{refused}},
		{"defines", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.nobody.example}\n---\n" + thing, []string{"CustomResourceDefinition things.nobody.example: what is there cannot be read"}},
		{"taken", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: healthy}\n", []string{`ConfigMap "healthy"`, "belongs to the helm release healthy"}},
	}
	healthy := trees(mirror("healthy", on), mirror("many", on), mirror("unserved", things), mirror("defines", things), mirror("twice", on), mirror("taken", on), probe())
	f := newFixture(t, healthy)
	f.start()
	for _, b := range bad {
		f.waitRevision(f.ns, b.module, 1)
	}

	files := map[string]string{
		"healthy/values.yaml":      "text: new\n",
		"many/templates/many.yaml": "{{ range until 5000 }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: many-{{ . }}}\n{{ end }}",
	}
	for _, b := range bad {
		files[b.module+"/templates/bad.yaml"] = b.template
		files[b.module+"/values.yaml"] = "text: bad\n"
	}
	f.write(files)
	for _, b := range bad {
		f.waitState(b.module, status.ModuleFailed, b.says...)
		f.waitRevision(f.ns, b.module, 1)
		f.waitData(b.module, map[string]string{"text": "plain"})
	}
	f.waitData("healthy", map[string]string{"text": "new"})
	for _, last := range []string{"many-999", "many-4999"} { // by name, or by place
		cluster.Eventually(t, 3*soon, "Helm has made 5,000 objects, one after the other", func() error {
			_, err := shared.Client.CoreV1().ConfigMaps(f.ns).Get(t.Context(), last, metav1.GetOptions{})
			return err
		})
	}
	f.waitRevision(f.ns, "many", 2)
	list, err := shared.Client.CoreV1().ConfigMaps(f.ns).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) < 5000 {
		t.Errorf("%d ConfigMaps are there: %v", len(list.Items), err)
	}
	f.probe()

	for _, b := range bad {
		f.write(map[string]string{b.module + "/templates/bad.yaml": ""})
	}
	for _, b := range bad {
		f.waitData(b.module, map[string]string{"text": "bad"})
		f.waitState(b.module, status.ModuleReady)
		f.waitRevision(f.ns, b.module, 2)
	}
	f.waitRevision(f.ns, "healthy", 2)
}
