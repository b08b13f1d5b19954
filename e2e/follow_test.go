package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/modules/status"
)

// The main job: a hook sees the cluster and sets a value, the release follows; a node
// is added and goes, and the release follows again.
func TestReleaseFollowsNodes(t *testing.T) {
	t.Parallel()
	role := mirrors
	role.Hooks = []rbacv1.PolicyRule{watches("", "nodes")}
	f := newFixture(t, trees(mirror("web", on), map[string]string{
		"web/hooks/nodes.star": `
def names(ctx):
    values.set("text", ",".join(ctx.snapshots["nodes"]))

hook(names, on = [k8s.watch("v1", "Node", name = "nodes", labels = {"e2e": "$NS"},
                            filter = lambda o: o.metadata.name)])
`,
	}), role)
	f.start()
	f.waitRevision(f.ns, "web", 1)
	f.waitData("web", map[string]string{"text": ""})

	shared.AddNode(t, f.ns, map[string]string{"e2e": f.ns})
	f.waitData("web", map[string]string{"text": f.ns})
	f.waitRevision(f.ns, "web", 2)

	if err := shared.Client.CoreV1().Nodes().Delete(t.Context(), f.ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.waitData("web", map[string]string{"text": ""})
	f.waitRevision(f.ns, "web", 3)
}

// examples/quickstart promises: one replica per ready node, the greeting in a
// ConfigMap, off by a word in the user's config.
func TestQuickstart(t *testing.T) {
	t.Parallel()
	f := example(t, "quickstart")
	ownNamespaces(t, "hello")
	f.start()
	f.waitReady()
	f.waitState("hello", status.ModuleReady)
	f.waitHello([]string{"fake-0"}, "Hello from Starling")

	shared.AddNode(t, "quickstart", map[string]string{"kubernetes.io/os": "linux"})
	f.waitHello([]string{"fake-0", "quickstart"}, "Hello from Starling")

	f.configure(map[string]string{"hello": "greeting: Good morning"})
	f.waitHello([]string{"fake-0", "quickstart"}, "Good morning")

	f.configure(map[string]string{"helloEnabled": "false"})
	f.waitState("hello", status.ModuleOff, "helloEnabled: false")
	noRelease(t, "hello", "hello")
}

// waitHello waits until the release of quickstart shows these nodes, perhaps among
// nodes of other tests, and this greeting.
func (f *fixture) waitHello(nodes []string, greeting string) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("hello shows %v and %q", nodes, greeting), func() error {
		data, err := configMap(f.t, "hello", "hello")
		if err != nil {
			return err
		}
		shown := strings.Split(data["nodes"], "\n")
		for _, name := range nodes {
			if !slices.Contains(shown, name) {
				return fmt.Errorf("the nodes shown are %v", shown)
			}
		}
		if data["greeting"] != greeting {
			return fmt.Errorf("the greeting is %q", data["greeting"])
		}
		d, err := shared.Client.AppsV1().Deployments("hello").Get(f.t.Context(), "hello", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got := int(*d.Spec.Replicas); got != len(shown) {
			return fmt.Errorf("%d replicas for %v", got, shown)
		}
		return nil
	})
}

// ownNamespaces waits until an earlier run of the test has left these namespaces, which
// Starling makes and never deletes, and deletes them when the test ends.
func ownNamespaces(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		cluster.Eventually(t, 5*soon, "namespace "+name+" is free", func() error {
			ns, err := shared.Client.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			if err == nil {
				err = fmt.Errorf("it is %s", ns.Status.Phase)
			}
			return err
		})
	}
	t.Cleanup(func() {
		for _, name := range names {
			err := shared.Client.CoreV1().Namespaces().Delete(context.Background(), name, metav1.DeleteOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				t.Error(err)
			}
		}
	})
}
