package e2e

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/modules/status"
)

// A module whose folder is gone waits for one that is on its way to its first release, and the REASON names that. A pause
// in the ConfigMap holds it, as long as that stands.
func TestAModuleThatLeavesNamesWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	f := &fixture{t: t, ns: shared.Namespace(t), name: "starling", modules: t.TempDir()}
	late := trees(mirror("late", "module(enabled = True, wait = True)\n"), map[string]string{
		"late/templates/pod.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: late}\nspec: {nodeName: none, containers: [{name: a, image: a}]}\n",
	})
	f.write(trees(mirror("web", on), mirror("shop", on), late))
	f.grantPrinted()
	f.write(map[string]string{"late": ""})
	f.start()
	f.waitReady()
	f.write(late)
	f.waitState("late", status.ModuleReleasing)
	f.write(map[string]string{"shop": ""})
	f.waitState("shop", status.ModuleUninstalling, "no longer in the module tree; waits for module late, which is releasing")
	f.configure(map[string]string{"shopPaused": "true"})
	f.waitState("shop", status.ModulePaused, "no longer in the module tree; paused: its release stays as it is")
	f.write(map[string]string{"late": ""})
	f.waitUninstalled("late")
	f.waitState("shop", status.ModulePaused)
	f.waitRevision(f.ns, "shop", 1)
	f.configure(nil)
	f.waitUninstalled("shop")
}

// A module whose folder is gone leaves by its before_delete hook, with the code that it
// had: while that fails the release stays, and the status says why; then it goes.
func TestARemovedModuleTakesLeave(t *testing.T) {
	t.Parallel()
	f := newFixture(t, trees(mirror("web", on), mirror("shop", `module(enabled = True, grants = [grant("v1", "ConfigMap", verbs = ["apply"])])
`), probe(), map[string]string{"shop/hooks/bye.star": `
def bye(ctx):
    if not ctx.snapshots["cms"]:
        fail("nobody is there")
    k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bye"}})

hook(bye, retry = retry(max = "1s"), on = [
    before_delete(),
    k8s.watch("v1", "ConfigMap", name = "cms", namespaces = ["$NS"], labels = {"e2e": "$NS"}, filter = ["data"], sync = False),
])
`}))
	f.start()
	f.waitReady()
	f.waitRevision(f.ns, "shop", 1)
	f.write(map[string]string{"shop": ""})
	f.waitState("shop", status.ModuleFailed)
	f.waitRevision(f.ns, "shop", 1)
	f.touch("somebody", "x")
	f.waitUninstalled("shop")
	if _, err := shared.Client.CoreV1().ConfigMaps(f.ns).Get(t.Context(), "bye", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	f.waitState("web", status.ModuleReady)
	f.waitRevision(f.ns, "web", 1)
	f.probe()
}
