package e2e

import (
	"os"
	"path/filepath"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/inputs"
)

// counting is a module with a hook per object that fails at first, and one that takes requests.
const counting = `
def each(ctx):
    if ctx.attempt == 1:
        fail("not yet")
    ctx.state.set("seen", 1.0)

hook(each, on = [k8s.watch("v1", "ConfigMap", name = "cms", namespaces = ["$NS"], labels = {"e2e": "$NS"}, filter = ["data"])],
     for_each = "cms", retry = retry(min = "100ms"))

def take(ctx):
    values.set("text", ctx.request.json["text"])
    k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "taken"}, "data": {"text": ctx.request.body}})
    return reply(201, {})

hook(take, on = [http.receive("/take", public = True)])
`

// The inputs of a process, handled again by another engine, have the same actions.
func TestRecordedInputsHaveTheSameActions(t *testing.T) {
	t.Parallel()
	shop := trees(mirror("shop", `module(enabled = True, grants = [grant("v1", "ConfigMap", verbs = ["apply"])])`), map[string]string{
		"shop/hooks/a.star": counting,
	})
	f := newFixture(t, trees(mirror("web", on), map[string]string{"web/hooks/a.star": seen("first")}, shop, probe()), least{
		Releases: mirrors.Releases,
		HooksIn:  map[string][]rbacv1.PolicyRule{"$NS": {watches("", "configmaps"), allow("", "configmaps", "create", "patch")}},
	}).alone("the file is that of one")
	file := filepath.Join(t.TempDir(), "inputs")
	f.start("--record-inputs", file, "--receive-address", "127.0.0.1:0")
	f.waitReady()
	f.waitData("web", map[string]string{"text": "first 0"})
	f.probe()
	f.waitData("web", map[string]string{"text": "first 1"})
	f.touch("another", "text")
	f.waitRuns("shop/hooks/a.star:each", 2)
	f.waitAnswer(201, "/take", `{"text": "taken"}`, "")
	f.waitData("shop", map[string]string{"text": "taken"})

	f.configure(map[string]string{"web": "text: 7"}) // no text: refused
	f.waitConfig(status.ConfigOK, "must be a string")
	f.configure(map[string]string{"web": "text: configured\n"})
	f.write(map[string]string{"web/hooks/a.star": "def seen("}) // held
	f.waitReloadFailed("web")
	f.write(map[string]string{"web/hooks/a.star": seen("second")})
	f.waitData("web", map[string]string{"text": "second 2"})
	f.write(map[string]string{"shop": ""})
	f.probe()
	if code := f.process.Stop(); code != 0 {
		t.Fatalf("stopped with exit code %d", code)
	}

	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the file may be read by others: %v, %v", info, err)
	}
	recorded, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer recorded.Close()
	again, err := inputs.Replay(t.Context(), recorded)
	if err != nil || again.Cut || again.Inputs < 30 || again.Actions < 30 {
		t.Errorf("%+v, %v", again, err)
	}
	t.Logf("%+v in %d KiB", again, info.Size()>>10)
}
