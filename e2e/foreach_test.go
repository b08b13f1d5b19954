package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/modules/status"
)

var websites = schema.GroupVersionResource{Group: "starling.dev", Version: "v1", Resource: "websites"}

// examples/per-object promises: the parts and the status of each Website follow it,
// what it does not need any more goes, and so does its route before it does itself.
func TestPerObject(t *testing.T) {
	t.Parallel()
	ownNamespaces(t, "websites")
	t.Cleanup(func() {
		_ = shared.Dynamic.Resource(definitions).Delete(context.Background(), "websites.starling.dev", metav1.DeleteOptions{})
	})
	shared.Apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: websites}\n") // where its routes are watched
	f := example(t, "per-object")
	f.start()
	f.waitReady()

	ns := shared.Namespace(t)
	sites := shared.Dynamic.Resource(websites).Namespace(ns)
	site := func(replicas int) string {
		return fmt.Sprintf("apiVersion: starling.dev/v1\nkind: Website\nmetadata: {name: blog, namespace: %s}\nspec: {host: blog.example.com, replicas: %d, page: hello}\n", ns, replicas)
	}
	shared.Apply(t, site(2))
	f.eventually("the status tells of the website", func() error {
		o, err := sites.Get(t.Context(), "blog", metav1.GetOptions{})
		if err != nil {
			return err
		}
		return holds(fmt.Sprint(o.Object["status"]), []string{"url:http://blog.example.com", "0 of 2 replicas are ready", "observedGeneration:1"})
	})
	d, err := shared.Client.AppsV1().Deployments(ns).Get(t.Context(), "blog", metav1.GetOptions{})
	if err != nil || *d.Spec.Replicas != 2 || len(d.OwnerReferences) != 1 || d.OwnerReferences[0].Kind != "Website" {
		t.Fatalf("the deployment is %+v, %v", d, err)
	}

	// A patch, as an update may meet the hook's next apply of the same Deployment.
	ready := []byte(`{"status": {"replicas": 2, "readyReplicas": 2, "availableReplicas": 2}}`)
	if _, err := shared.Client.AppsV1().Deployments(ns).Patch(t.Context(), "blog", types.MergePatchType, ready, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	f.eventually("the status follows the deployment", func() error {
		o, err := sites.Get(t.Context(), "blog", metav1.GetOptions{})
		if err != nil {
			return err
		}
		return holds(fmt.Sprint(o.Object["status"]), []string{"2 of 2 replicas are ready", "status:True"})
	})

	// The route is in another namespace, and names its website.
	routes := shared.Client.CoreV1().ConfigMaps("websites")
	if err := routes.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "starling.dev/example=per-object"}); err != nil {
		t.Fatal(err)
	}
	f.eventually("a deleted route is back", func() error {
		if n := f.routes(ns + "-blog"); n != 1 {
			return fmt.Errorf("%d routes", n)
		}
		return nil
	})

	f.nothingToPlan()
	shared.Apply(t, site(0))
	f.eventually("a website without replicas has no deployment", func() error {
		if _, err := shared.Client.AppsV1().Deployments(ns).Get(t.Context(), "blog", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %v", err)
		}
		return nil
	})
	if n := f.routes(ns + "-blog"); n != 1 {
		t.Errorf("%d routes", n)
	}
	if err := sites.Delete(t.Context(), "blog", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.eventually("the route and then the website go", func() error {
		if _, err := sites.Get(t.Context(), "blog", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %v", err)
		}
		return nil
	})
	if n := f.routes(ns + "-blog"); n != 0 {
		t.Error("the website went before its route")
	}
}

func (f *fixture) routes(part string) (n int) {
	f.t.Helper()
	list, err := shared.Client.CoreV1().ConfigMaps("websites").List(f.t.Context(), metav1.ListOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	for i := range list.Items {
		if strings.Contains(list.Items[i].Name, part) {
			n++
		}
	}
	return n
}

// eachConfigMap is a module with one run for each ConfigMap of its namespace that has the label.
func eachConfigMap(name string) map[string]string {
	return map[string]string{
		name + "/module.star": `module(enabled = True, namespace = "$NS", grants = [grant("v1", "ConfigMap", verbs = ["apply", "delete", "finalize"])])`,
		name + "/hooks/each.star": `
def each(ctx):
    if ctx.object["mode"] == "bad":
        fail("malformed", permanent = True)
    n = ctx.state.get("n", 0) + 1
    ctx.state.set("n", n)
    log.info("saw", key = ctx.key, n = n)
    k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "copy-" + ctx.object["name"]}, "data": {"n": str(n)}})

def gone(ctx):
    k8s.delete("v1", "ConfigMap", "copy-" + ctx.object["name"])

hook(each, on = [
    k8s.watch("v1", "ConfigMap", name = "cms", namespaces = ["$NS"], labels = {"each": "true"},
              filter = lambda o: {"name": o.metadata.name, "mode": o.get("data.mode", "")}),
], for_each = "cms", cleanup = gone)
`,
	}
}

func eachRole(ns string) least {
	return least{HooksIn: map[string][]rbacv1.PolicyRule{ns: {allow("", "configmaps", "get", "list", "watch", "create", "patch", "delete")}},
		Hooks: []rbacv1.PolicyRule{allow("", "configmaps", "list")}}
}

// One run an object: a malformed one stops nobody else, finalizers hold what is not
// cleaned up, through a kill, and go with the module.
func TestForEach(t *testing.T) {
	t.Parallel()
	ns := shared.Namespace(t)
	f := (&fixture{t: t, ns: ns}).beside("starling", eachConfigMap("each"), eachRole(ns))
	configMaps := shared.Client.CoreV1().ConfigMaps(ns)
	make := func(name, mode string) {
		t.Helper()
		shared.Apply(t, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s, labels: {each: \"true\"}}\ndata: {mode: %q}\n", name, ns, mode))
	}
	finalizers := func(name string) []string {
		o, err := configMaps.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return []string{err.Error()}
		}
		return o.Finalizers
	}
	gone := func(name string) error {
		if _, err := configMaps.Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s is there: %v", name, err)
		}
		return nil
	}
	make("a", "")
	make("b", "bad")
	f.start()
	f.waitData("copy-a", map[string]string{"n": "1"})
	make("c", "")
	f.waitData("copy-c", map[string]string{"n": "1"})
	f.waitState("each", status.ModuleReady)
	f.eventually("the hook tells of three objects, of which one fails", func() error {
		h, err := f.hook("each/hooks/each.star:each")
		if err == nil && (h.Objects == nil || *h.Objects != 3 || *h.Failing != 1 || !strings.HasPrefix(h.LastError, ns+"/b: ")) {
			err = fmt.Errorf("it is %+v", h)
		}
		return err
	})
	if got := finalizers("a"); len(got) != 1 || !strings.HasPrefix(got[0], "starling.dev/each-") {
		t.Errorf("finalizers %v", got)
	}
	if got := finalizers("b"); len(got) != 0 {
		t.Errorf("finalizers %v of what never had a good run", got)
	}

	// Killed; one object changes, one goes meanwhile, and the state is remembered.
	f.process.Kill()
	make("a", "other")
	if err := configMaps.Delete(t.Context(), "c", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if len(finalizers("c")) != 1 {
		t.Fatal("c went without its cleanup")
	}
	f.start()
	f.waitData("copy-a", map[string]string{"n": "2"})
	f.eventually("c goes, and what was made for it", func() error {
		if err := gone("c"); err != nil {
			return err
		}
		return gone("copy-c")
	})

	// One that loses the label is cleaned up, and is without the finalizer.
	patch(t, "configmaps", ns, "a", map[string]any{"metadata": map[string]any{"labels": map[string]any{"each": nil}}})
	f.eventually("a is let go", func() error {
		if got := finalizers("a"); len(got) > 0 {
			return fmt.Errorf("finalizers %v", got)
		}
		return gone("copy-a")
	})

	// With Starling gone for good, `starling detach` lets go of what it holds.
	make("d", "")
	f.waitData("copy-d", map[string]string{"n": "1"})
	f.standby.Kill()
	f.process.Kill()
	if out, _ := f.detach(); !strings.Contains(out, "ConfigMap "+ns+"/d: finalizer starling.dev/each-") || len(finalizers("d")) > 0 {
		t.Errorf("detach: %s", out)
	}
	f.start()
	f.eventually("one that is started again holds it again", func() error {
		if len(finalizers("d")) != 1 {
			return fmt.Errorf("finalizers %v", finalizers("d"))
		}
		return nil
	})
	f.configure(map[string]string{"eachEnabled": "false"})
	f.waitState("each", status.ModuleOff)
	f.eventually("finalizers go with the module", func() error {
		if got := finalizers("d"); len(got) > 0 {
			return fmt.Errorf("finalizers %v", got)
		}
		return nil
	})
}

// A version of a kind may be switched off while finalizers are on its objects: they go with the module all the same,
// and hold no namespace for ever.
func TestFinalizersGoAfterTheirVersion(t *testing.T) {
	t.Parallel()
	ns := shared.Namespace(t)
	t.Cleanup(func() {
		_ = shared.Dynamic.Resource(definitions).Delete(context.Background(), "lamps."+ns+".example.com", metav1.DeleteOptions{})
	})
	group := ns + ".example.com"
	f := (&fixture{t: t, ns: ns}).beside("starling", map[string]string{
		"each/module.star": `module(enabled = True, grants = [grant("$NS.example.com/v1", "Lamp", verbs = ["finalize"])])`,
		"each/hooks/each.star": `
def each(ctx):
    ctx.state.set("seen", True)

hook(each, on = [k8s.watch("$NS.example.com/v1alpha1", "Lamp", name = "lamps", namespaces = ["$NS"], filter = ["spec"])],
     for_each = "lamps", cleanup = lambda ctx: None)
`,
	}, least{
		HooksIn: map[string][]rbacv1.PolicyRule{ns: {allow(group, "lamps", "get", "list", "watch", "patch")}},
		Hooks:   []rbacv1.PolicyRule{allow(group, "lamps", "list")},
	})
	define := func(served bool) {
		t.Helper()
		v1 := lamps("color")
		old := strings.Replace(strings.Replace(v1[strings.Index(v1, "  - name: v1"):], "name: v1", "name: v1alpha1", 1), "storage: true", "storage: false", 1)
		shared.Apply(t, strings.ReplaceAll(v1+strings.Replace(old, "served: true", fmt.Sprint("served: ", served), 1), "$NS", ns))
	}
	define(true)
	shared.Apply(t, fmt.Sprintf("{apiVersion: %s/v1, kind: Lamp, metadata: {name: desk, namespace: %s}, spec: {color: blue}}", group, ns))
	held := func(want int) {
		t.Helper()
		f.eventually(fmt.Sprintf("%d finalizers", want), func() error {
			o, err := shared.Dynamic.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: "lamps"}).Namespace(ns).Get(t.Context(), "desk", metav1.GetOptions{})
			if err == nil && len(o.GetFinalizers()) != want {
				err = fmt.Errorf("finalizers %v", o.GetFinalizers())
			}
			return err
		})
	}
	f.start()
	held(1)
	define(false)
	f.eventually("the status says what is not served", func() error {
		h, err := f.hook("each/hooks/each.star:each")
		if err == nil && len(h.NotServed) == 0 {
			err = fmt.Errorf("%+v", h)
		}
		return err
	})
	f.configure(map[string]string{"eachEnabled": "false"})
	f.waitState("each", status.ModuleOff)
	held(0)
}
