package e2e

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/modules/status"
)

// A definition that somebody deletes, and that a finalizer keeps for a while, is applied again soon after it has gone,
// and then its objects: one that a release needs, and one that changes in the tree meanwhile.
func TestADefinitionOnItsWayOut(t *testing.T) {
	t.Parallel()
	f := lampFixture(t, trees(mirror("light", `module(enabled = True, installs = [grant("$NS.example.com/v1", "Lamp")])`), map[string]string{
		"light/crds/lamps.yaml":    lamps("color"),
		"light/templates/cm.yaml":  "",
		"light/templates/lamp.yml": "apiVersion: $NS.example.com/v1\nkind: Lamp\nmetadata: {name: desk, namespace: {{ .Release.Namespace }}}\nspec: {color: red}\n",
	}))
	f.start()
	f.waitRevision(f.ns, "light", 1)
	f.waitState("light", status.ModuleReady)
	crds, name := shared.Dynamic.Resource(definitions), "lamps."+f.ns+".example.com"
	patch := func(finalizers string) {
		t.Helper()
		if _, err := crds.Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":`+finalizers+`}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name  string
		do    func()
		state status.ModuleState
		says  string
	}{
		{"a release needs it", func() {}, status.ModuleReady, "CustomResourceDefinition " + name + " is being deleted"},
		{"the tree changes", func() { f.write(map[string]string{"light/crds/lamps.yaml": lamps("color", "shade")}) },
			status.ModuleFailed, "CustomResourceDefinition " + name + " is being deleted; it is applied again once it is gone"},
	} {
		before, err := crds.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		patch(`["example.org/holds", "customresourcecleanup.apiextensions.k8s.io"]`)
		if err := crds.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		c.do()
		f.waitState("light", c.state, c.says)
		time.Sleep(20 * time.Second) // tries would come seldom by then
		patch(`[]`)
		gone := time.Now()
		f.eventually("the definition and the object are back", func() error {
			now, err := crds.Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if now.GetUID() == before.GetUID() {
				return errors.New("it is the same one still")
			}
			_, err = f.lamp("desk")
			return err
		})
		t.Logf("%s: all is back %s after the definition has gone", c.name, time.Since(gone).Round(100*time.Millisecond))
		f.waitState("light", status.ModuleReady)
	}
}
