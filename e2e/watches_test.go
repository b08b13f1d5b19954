package e2e

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/modules/status"
)

const colors = `
def colors(ctx):
    values.set("text", ",".join(ctx.snapshots["lamps"]))

hook(colors, on = [k8s.watch("$NS.example.com/v1", "Lamp", name = "lamps", namespaces = ["$NS"], filter = lambda o: o.spec.color)])
`

// putLamp makes a Lamp as soon as the server takes one.
func (f *fixture) putLamp(name, color string) {
	f.t.Helper()
	group := f.ns + ".example.com"
	lamp := &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/v1", "kind": "Lamp",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"color": color}}}
	f.eventually("Lamp "+name, func() error {
		_, err := shared.Dynamic.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: "lamps"}).
			Namespace(f.ns).Create(f.t.Context(), lamp, metav1.CreateOptions{})
		return err
	})
}

// A kind that is watched is made, deleted with its objects, and made again, twice: each
// time the hook follows, and the release after it.
func TestCRDComesGoesAndComesBack(t *testing.T) {
	t.Parallel()
	f := lampFixture(t, trees(mirror("web", on), probe(), map[string]string{"web/hooks/a.star": colors}))
	f.start()
	f.waitData("web", map[string]string{"text": ""})
	for _, round := range []struct{ one, two string }{{"red", "blue"}, {"green", "white"}} {
		shared.Apply(t, strings.ReplaceAll(lamps("color"), "$NS", f.ns))
		f.putLamp("a", round.one)
		f.waitData("web", map[string]string{"text": round.one})
		f.putLamp("b", round.two)
		f.waitData("web", map[string]string{"text": round.one + "," + round.two})

		name := "lamps." + f.ns + ".example.com"
		if err := shared.Dynamic.Resource(definitions).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		f.waitData("web", map[string]string{"text": ""})
		f.eventually("the definition is gone", func() error {
			_, err := shared.Dynamic.Resource(definitions).Get(t.Context(), name, metav1.GetOptions{})
			if err == nil {
				return fmt.Errorf("it is there")
			}
			if !apierrors.IsNotFound(err) {
				return err
			}
			return nil
		})
		f.eventually("the status says what is not served", func() error {
			h, err := f.hook("web/hooks/a.star:colors")
			if err == nil && len(h.NotServed) == 0 {
				err = fmt.Errorf("%+v", h)
			}
			return err
		})
		f.waitState("web", status.ModuleReady)
	}
	f.waitReady()
	f.probe()
}

// The connections to the server are cut again and again, while things change: the
// process stays, and what the hook has seen in the end is what there is.
func TestStreamsThatAreCut(t *testing.T) {
	t.Parallel()
	f := newFixture(t, trees(mirror("web", on), probe(), map[string]string{"web/hooks/a.star": `
def texts(ctx):
    values.set("text", ",".join(ctx.snapshots["cms"]))

hook(texts, on = [k8s.watch("v1", "ConfigMap", name = "cms", namespaces = ["$NS"], labels = {"e2e": "$NS"}, filter = lambda o: o.data["text"])])
`}))
	l, kube := cluster.NewLine(t, f.kube)
	f.kube = kube
	f.start()
	f.waitData("web", map[string]string{"text": ""})
	for n := range 4 {
		l.Cut()
		f.touch("a", fmt.Sprintf("unseen %d", n))
		f.touch("a", fmt.Sprintf("a%d", n))
		if n%2 == 0 {
			f.touch("b", "b")
		} else {
			f.deleteConfigMap("b")
		}
		shared.Compact(t) // others of this cluster do not notice: the server remembers
		l.Mend()
		f.lead()
		f.waitData("web", map[string]string{"text": fmt.Sprintf([]string{"a%d,b", "a%d"}[n%2], n)})
	}
	f.waitReady()
	f.probe()
	f.eventually("all has settled", f.quiet)
}

// A commit whose third write of four is refused by the API server: what comes before is
// written, what comes after is not, the values stay as they were, and the status says
// how far it came. Once the object fits, the run is repeated and all of it counts.
func TestCommitThatFailsAtItsThirdWrite(t *testing.T) {
	t.Parallel()
	role := mirrors
	role.HooksIn = map[string][]rbacv1.PolicyRule{"$NS": {watches("", "configmaps"), allow("", "configmaps", "get", "create", "patch", "update")}}
	f := newFixture(t, trees(mirror("web", `module(enabled = True, grants = [grant("v1", "ConfigMap", verbs = ["apply"])])`), probe(), map[string]string{"web/hooks/a.star": `
def write(ctx):
    text = ctx.snapshots["cms"][0]
    values.set("text", text)
    for name in ["one", "two", "three", "four"]:
        # An immutable object takes no other data: this is for the server to say.
        k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "$NS"}, "data": {"text": text}})

hook(write, on = [k8s.watch("v1", "ConfigMap", name = "cms", namespaces = ["$NS"], labels = {"e2e": "$NS"}, object_names = ["input"], filter = lambda o: o.data["text"])],
     retry = retry(min = "200ms", max = "2s"))
`}))
	f.touch("input", "first")
	f.start()
	f.waitData("web", map[string]string{"text": "first"})
	for _, name := range []string{"one", "two", "three", "four"} {
		f.waitData(name, map[string]string{"text": "first"})
	}
	f.waitState("web", status.ModuleReady)
	f.waitRevision(f.ns, "web", 1)
	patch(t, "configmaps", f.ns, "three", map[string]any{"immutable": true})

	f.touch("input", "second")
	f.eventually("the status says how far it came", func() error {
		h, err := f.hook("web/hooks/a.star:write")
		if err != nil {
			return err
		}
		return holds(h.LastError, []string{"web/hooks/a.star:7", "ConfigMap " + f.ns + "/three", "immutable", "(2 of 4 written)"})
	})
	f.probe()
	for name, want := range map[string]string{"one": "second", "two": "second", "three": "first", "four": "first", "web": "first"} {
		f.waitData(name, map[string]string{"text": want})
	}
	f.waitRevision(f.ns, "web", 1)

	if err := shared.Client.CoreV1().ConfigMaps(f.ns).Delete(t.Context(), "three", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "two", "three", "four", "web"} {
		f.waitData(name, map[string]string{"text": "second"})
	}
	f.waitRevision(f.ns, "web", 2)
	f.waitState("web", status.ModuleReady)
	h, err := f.hook("web/hooks/a.star:write")
	if err != nil || h.LastError != "" || h.Failures == 0 {
		t.Errorf("%+v, %v", h, err)
	}
}
