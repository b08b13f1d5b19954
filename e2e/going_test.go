package e2e

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/modules/status"
)

// People are told of an object that its finalizers keep, and no longer once it has gone: one that goes while the module
// rests, one that a start finds so, and one that an upgrade meets.
func TestObjectsThatGoAreTold(t *testing.T) {
	t.Parallel()
	f := withObjects(t, shared.Namespace(t), "starling", mirror("go-web", on))
	f.start()
	f.waitState("go-web", status.ModuleReady)
	maps := shared.Client.CoreV1().ConfigMaps(f.ns)
	finalizers := func(list string) {
		t.Helper()
		if _, err := maps.Patch(t.Context(), "go-web", types.MergePatchType, []byte(`{"metadata":{"finalizers":`+list+`}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for name, meanwhile := range map[string]func(){
		"at rest":    func() {},
		"a start":    func() { f.stop(); f.start() },
		"an upgrade": func() { f.configure(map[string]string{"goWeb": "text: one"}) },
	} {
		finalizers(`["e2e.starling.dev/hold"]`)
		if err := maps.Delete(t.Context(), "go-web", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		f.waitCondition("go-web", "Ready", "True", "is being deleted")
		meanwhile()
		f.waitCondition("go-web", "Ready", "True", "is being deleted")
		finalizers("[]")
		f.eventually(name+": nothing is told of it", func() error {
			if row := f.row("go-web"); row["Message"] != "" {
				return fmt.Errorf("%v", row)
			}
			return nil
		})
	}
}
