package e2e

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const looksUp = `
def told(ctx, o):
    """Names of the Services of an application, and whether its time is over."""
    app = o.metadata.labels.app
    names = [s["name"] for s in ctx.reads.services.by("app", app)]
    until = o.metadata.get("annotations", {}).get("until", "2000-01-01T00:00:00Z")
    data = {
        "services": " ".join(names),
        "until": until,
        "over": str(ctx.reached(until)),
        "first": str(ctx.reads.services.get("$NS/first") != None),
        "color": values.get("color", ""),
    }
    return [part({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": o.metadata.name}, "data": data})]

controller(
    "told",
    k8s.watch("v1", "ServiceAccount", namespaces = ["$NS"], labels = "app"),
    told,
    owns = [owns("v1", "ConfigMap")],
    reads = {"services": k8s.watch("v1", "Service", namespaces = ["$NS"], filter = lambda o: {"name": o.metadata.name}, index = {"app": "metadata.labels.app"})},
)
`

// A controller follows the objects that it looks up, times and values, and a restart changes nothing of that.
// Parents that have looked elsewhere do not run.
func TestLookups(t *testing.T) {
	t.Parallel()
	f := &fixture{t: t, ns: shared.Namespace(t), name: "starling", modules: t.TempDir()}
	f.write(map[string]string{"lookups/module.star": "module(enabled = True)\n", "lookups/hooks/told.star": looksUp})
	f.grantPrinted()
	account := func(name, app, until string) {
		shared.Apply(t, fmt.Sprintf("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: %q, namespace: %s, labels: {app: %q}, annotations: {until: %q}}\n", name, f.ns, app, until))
	}
	service := func(name, app string) {
		shared.Apply(t, fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: %q, namespace: %s, labels: {app: %q}}\nspec: {ports: [{port: 80}]}\n", name, f.ns, app))
	}
	told := func(name string, want ...string) {
		t.Helper()
		f.eventually(fmt.Sprintf("%s tells of %q", name, want), func() error {
			cm, err := shared.Client.CoreV1().ConfigMaps(f.ns).Get(t.Context(), name, metav1.GetOptions{})
			if err == nil {
				got := []string{cm.Data["services"], cm.Data["over"], cm.Data["first"], cm.Data["color"]}
				if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
					err = fmt.Errorf("it tells of %q", got)
				}
			}
			return err
		})
	}
	account("x", "x", "2000-01-01T00:00:00Z")
	account("y", "y", "2000-01-01T00:00:00Z")
	f.start()
	f.waitReady()
	told("x", "", "True", "False", "")
	told("y", "", "True", "False", "")
	service("second", "x")
	told("x", "second", "True", "False", "")
	service("first", "x")
	told("x", "first second", "True", "True", "")
	told("y", "", "True", "True", "")
	f.restart()
	service("first", "y")
	told("x", "second", "True", "True", "")
	told("y", "first", "True", "True", "")

	runs := f.waitRuns("lookups/told", 1)
	service("third", "z")
	service("second", "y")
	told("y", "first second", "True", "True", "")
	told("x", "", "True", "True", "")
	if more := f.waitRuns("lookups/told", 1) - runs; more > 8 {
		t.Errorf("%d runs for two parents whose Services moved", more)
	}
	f.configure(map[string]string{"lookups": "color: blue\n"})
	told("x", "", "True", "True", "blue")

	// Nothing but the clock tells that a time is over, if it was not when it was seen. A machine that sees it later than
	// that gets more time.
	over := ""
	for wait := 3 * time.Second; over != "False"; wait *= 3 {
		if wait > soon {
			t.Fatalf("a time is over as soon as it is seen: it says %q", over)
		}
		until := time.Now().Add(wait).UTC().Format(time.RFC3339)
		account("x", "x", until)
		f.eventually("x has seen its time", func() error {
			cm, err := shared.Client.CoreV1().ConfigMaps(f.ns).Get(t.Context(), "x", metav1.GetOptions{})
			if err == nil && cm.Data["until"] != until {
				err = fmt.Errorf("it has seen %s", cm.Data["until"])
			}
			over = cm.Data["over"]
			return err
		})
		told("x", "", "True", "True", "blue")
	}
}
