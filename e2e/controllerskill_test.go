package e2e

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Starling is killed at each write in the life of a parent: as its children are made, changed and
// deleted, before the write reaches the API server or before its answer is here. The next process
// leads to the same end, and nothing is left of a parent that is gone.
func TestKilledInTheLifeOfAParent(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("written %t", after), func(t *testing.T) {
			t.Parallel()
			testKilledInTheLifeOfAParent(t, after)
		})
	}
}

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	quotas     = schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}
	services   = schema.GroupVersionResource{Version: "v1", Resource: "services"}
)

// family has a Service as the parent of two children, one after the other.
const family = `
def family(ctx, o):
    def child(kind, **fields):
        return dict({"apiVersion": "v1", "kind": kind, "metadata": {"name": o.metadata.name}}, **fields)

    return [
        part(child("ConfigMap", data = {"port": str(o.spec.ports[0].port)}), name = "first"),
        part(child("ResourceQuota", spec = {"hard": {"pods": str(o.spec.ports[0].port)}}), ready = "exists", after = ["first"]),
    ]

controller("family", k8s.watch("v1", "Service", namespaces = ["$NS"], labels = {"family": "true"}), family,
           owns = [owns("v1", "ConfigMap"), owns("v1", "ResourceQuota")])
`

func testKilledInTheLifeOfAParent(t *testing.T, after bool) {
	ns := shared.Namespace(t)
	f := &fixture{t: t, ns: ns, name: "starling", modules: t.TempDir()}
	f.write(map[string]string{"family/module.star": "module(enabled = True)\n", "family/hooks/family.star": family})
	f.grantPrinted()
	r := newRelay(t, f)
	f.start()
	f.waitReady()
	parent := func(port int) {
		shared.Apply(t, fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: p, namespace: %s, labels: {family: \"true\"}}\nspec: {ports: [{name: web, port: %d}]}\n", ns, port))
	}
	read := func(what schema.GroupVersionResource, path ...string) (string, error) {
		o, err := shared.Dynamic.Resource(what).Namespace(ns).Get(t.Context(), "p", metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		var v any = o.Object
		for _, key := range path {
			m, _ := v.(map[string]any)
			v = m[key]
		}
		return fmt.Sprint(v), nil
	}
	follows := func(port string) func() error {
		return func() error {
			text, err := read(configMaps, "data", "port")
			hard, other := read(quotas, "spec", "hard", "pods")
			if err := errors.Join(err, other); err != nil || text != port || hard != port {
				return fmt.Errorf("the children have %s and %s: %w", text, hard, err)
			}
			return r.rests(300 * time.Millisecond)
		}
	}
	gone := func() error {
		for _, what := range []schema.GroupVersionResource{services, configMaps, quotas} {
			if _, err := read(what); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%s p is there: %v", what.Resource, err)
			}
		}
		return r.rests(300 * time.Millisecond)
	}
	remove := func() {
		if err := shared.Dynamic.Resource(services).Namespace(ns).Delete(t.Context(), "p", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for n, killed := 1, true; killed; n++ {
		killed = false
		for _, phase := range []struct {
			change func()
			ends   func() error
		}{{func() { parent(1) }, follows("1")}, {func() { parent(2) }, follows("2")}, {remove, gone}} {
			before := r.killAt(n, after, f.process.Kill, phase.change)
			f.eventually("the change is carried out, or the process is killed", func() error {
				if r.killed.Load() > before {
					return nil
				}
				return phase.ends()
			})
			if r.spare() > before {
				killed = true
				f.process.Kill()
				f.freeLease()
				f.start()
				f.waitReady()
			}
			f.eventually("the change is carried out", phase.ends)
		}
	}
	t.Logf("killed at %q", r.at)
	if !slices.Contains(r.at, "PATCH resourcequotas/p") || !slices.Contains(r.at, "DELETE configmaps/p") {
		t.Error("no process was killed at the writes of the children")
	}
}
