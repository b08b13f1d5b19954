package live

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/typed/core/v1"
)

// A state folder that cannot be written, as on a disk that is full, stops no hook.
func TestHooksRunWithoutAStateFolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, map[string]string{
			"web/module.star": "module(enabled = True, grants = [grant(\"v1\", \"ConfigMap\", verbs = [\"apply\"])])\n",
			"web/hooks/a.star": "def f(ctx):\n    k8s.apply({\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"made\"}})\n\n" +
				"hook(f, on = [startup()])\n",
		})
		if err := os.RemoveAll(filepath.Join(f.dir, "runs")); err != nil {
			t.Fatal(err)
		}
		f.start()
		f.waitReady()
		core, err := v1.NewForConfig(f.driver.o.Client.UnfencedConfig())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := core.ConfigMaps("ops").Get(t.Context(), "made", metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
		f.stop()
		if err := <-f.ended; err != nil {
			t.Error(err)
		}
	})
}
