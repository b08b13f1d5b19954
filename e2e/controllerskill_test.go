package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Starling is killed at each write in the life of a parent: as its children are made, changed, one
// after the other where they roll, and deleted, before the write reaches the API server or before its
// answer is here. The next process leads to the same end with the same objects, and nothing is left of a
// parent that is gone.
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
	accounts   = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
)

// family has a Service as the parent of two children, one after the other, and of two that come to a new
// state one by one. It sets a field of a ConfigMap that somebody else has made.
const family = `
def family(ctx, o):
    def child(kind, suffix = "", **fields):
        return dict({"apiVersion": "v1", "kind": kind, "metadata": {"name": o.metadata.name + suffix}}, **fields)

    odd = o.spec.ports[0].port % 2 == 1

    return [
        part(child("ConfigMap", data = {"port": str(o.spec.ports[0].port)}), name = "first"),
        part(child("ResourceQuota", spec = {"hard": {"pods": str(o.spec.ports[0].port)}}), ready = "exists", after = ["first"]),
        rolling([part(child("ServiceAccount", "-%d" % i, automountServiceAccountToken = odd)) for i in range(2)]),
        set_fields("v1", "ConfigMap", "theirs", fields = {"data": {"port": str(o.spec.ports[0].port)}}),
    ]

def cleanup(ctx, o):
    if not ctx.children:
        fail("it is asked again")

controller("family", k8s.watch("v1", "Service", namespaces = ["$NS"], labels = {"family": "true"}), family,
           owns = [owns("v1", "ConfigMap"), owns("v1", "ResourceQuota"), owns("v1", "ServiceAccount"), owns("v1", "ConfigMap", fields = True)],
           cleanup = cleanup)
`

func testKilledInTheLifeOfAParent(t *testing.T, after bool) {
	ns := shared.Namespace(t)
	f := &fixture{t: t, ns: ns, name: "starling", modules: t.TempDir()}
	f.write(map[string]string{"family/module.star": "module(enabled = True)\n", "family/hooks/family.star": family})
	f.grantPrinted()
	r := newRelay(t, f)
	f.start()
	f.waitReady()
	shared.Apply(t, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: theirs, namespace: %s}\ndata: {own: \"1\"}\n", ns))
	theirs := func(port string) error {
		o, err := shared.Client.CoreV1().ConfigMaps(ns).Get(t.Context(), "theirs", metav1.GetOptions{})
		if err == nil && (o.Data["port"] != port || o.Data["own"] != "1" || (len(o.Annotations) > 0) != (port != "")) {
			err = fmt.Errorf("the object of somebody else has %q and %q", o.Data, o.Annotations)
		}
		return err
	}
	parent := func(port int) {
		shared.Apply(t, fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: p, namespace: %s, labels: {family: \"true\"}}\nspec: {ports: [{name: web, port: %d}]}\n", ns, port))
	}
	children := []struct {
		of   schema.GroupVersionResource
		name string
		path []string
	}{
		{configMaps, "p", []string{"data", "port"}}, {quotas, "p", []string{"spec", "hard", "pods"}},
		{accounts, "p-0", []string{"automountServiceAccountToken"}}, {accounts, "p-1", []string{"automountServiceAccountToken"}},
	}
	uids := map[string]types.UID{}
	follows := func(port int) func() error {
		return func() error {
			for _, c := range children {
				o, err := shared.Dynamic.Resource(c.of).Namespace(ns).Get(t.Context(), c.name, metav1.GetOptions{})
				if err != nil {
					return err
				}
				want := fmt.Sprint(port)
				if c.of == accounts {
					want = fmt.Sprint(port%2 == 1)
				}
				if got, _, _ := unstructured.NestedFieldNoCopy(o.Object, c.path...); fmt.Sprint(got) != want {
					return fmt.Errorf("%s %s has %v", c.of.Resource, c.name, got)
				}
				key := c.of.Resource + "/" + c.name
				if port == 1 {
					uids[key] = o.GetUID()
				} else if uids[key] != o.GetUID() {
					t.Errorf("%s was made anew", key)
				}
			}
			if err := theirs(fmt.Sprint(port)); err != nil {
				return err
			}
			return r.rests(300 * time.Millisecond)
		}
	}
	gone := func() error {
		for _, what := range []schema.GroupVersionResource{services, configMaps, quotas, accounts} {
			list, err := shared.Dynamic.Resource(what).Namespace(ns).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				return err
			}
			for _, o := range list.Items {
				if strings.HasPrefix(o.GetName(), "p") {
					return fmt.Errorf("%s %s is there", what.Resource, o.GetName())
				}
			}
		}
		if err := theirs(""); err != nil {
			return err
		}
		return r.rests(300 * time.Millisecond)
	}
	remove := func() {
		if err := shared.Dynamic.Resource(services).Namespace(ns).Delete(t.Context(), "p", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	phases := []struct {
		change func()
		ends   func() error
		known  map[string]bool // writes at which a process was killed
	}{{func() { parent(1) }, follows(1), map[string]bool{}}, {func() { parent(2) }, follows(2), map[string]bool{}}, {remove, gone, map[string]bool{}}}
	for killed := true; killed; {
		killed = false
		for _, phase := range phases {
			before := r.killNew(phase.known, after, f.process.Kill, phase.change)
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
	for _, write := range []string{"PATCH resourcequotas/", "PATCH serviceaccounts/", "PATCH configmaps/theirs", "DELETE resourcequotas/", "DELETE serviceaccounts/"} { // side by side: in any order
		if !slices.ContainsFunc(r.at, func(at string) bool { return strings.HasPrefix(at, write) }) {
			t.Errorf("no process was killed at %s", write)
		}
	}
}
