package e2e

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Of two changes, some milliseconds apart, the second one comes while the run fails that the first one has brought about.
// It is acted on at once all the same, though the next try would come in an hour: by a hook, by one object of a hook, and
// by a controller that cannot write another child.
func TestAChangeThatComesWhileARunFails(t *testing.T) {
	t.Parallel()
	f := &fixture{t: t, ns: shared.Namespace(t), name: "starling", modules: t.TempDir()}
	f.write(map[string]string{
		"web/module.star": "module(enabled = True, grants = [grant(\"v1\", \"ConfigMap\", verbs = [\"apply\"])])\n",
		"web/hooks/a.star": `
LATE = retry(min = "100ms", max = "1h", factor = 100)

def cm(name, v):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "$NS"}, "data": {"v": v}}

def write(name, v):
    k8s.apply(cm(name, v))
    k8s.apply(cm("frozen", v))

def all(ctx):
    for v in ctx.snapshots["in"]:
        write("all", v)

def each(ctx):
    write("each", ctx.object)

def owner(ctx, o):
    def account(name):
        return part({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "annotations": {"v": o.data.v}}})

    return [account("owned"), account("taken")]

hook(all, on = [k8s.watch("v1", "ConfigMap", name = "in", namespaces = ["$NS"], object_names = ["in"], filter = lambda o: o.data.v)], retry = LATE)
hook(each, on = [k8s.watch("v1", "ConfigMap", name = "in", namespaces = ["$NS"], object_names = ["in"], filter = lambda o: o.data.v)],
     for_each = "in", retry = LATE)
controller("owner", k8s.watch("v1", "ConfigMap", namespaces = ["$NS"], object_names = ["in"]), owner, owns = [owns("v1", "ServiceAccount")], retry = LATE)
`,
	})
	f.grantPrinted()
	shared.Apply(t, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: frozen, namespace: %s}, immutable: true}", f.ns))
	shared.Apply(t, fmt.Sprintf("{apiVersion: v1, kind: ServiceAccount, metadata: {name: taken, namespace: %s}}", f.ns))
	shared.Apply(t, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: in, namespace: %s}, data: {v: \"0\"}}", f.ns))
	f.start()
	maps := shared.Client.CoreV1().ConfigMaps(f.ns)
	n := 0
	change := func() {
		t.Helper()
		n++
		if _, err := maps.Patch(t.Context(), "in", types.MergePatchType, fmt.Appendf(nil, `{"data":{"v":"%d"}}`, n), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	seen := func() error {
		is := map[string]string{}
		for _, name := range []string{"all", "each"} {
			got, err := maps.Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			is[name] = got.Data["v"]
		}
		got, err := shared.Client.CoreV1().ServiceAccounts(f.ns).Get(t.Context(), "owned", metav1.GetOptions{})
		if err != nil {
			return err
		}
		is["owned"] = got.Annotations["v"]
		for _, v := range is {
			if v != fmt.Sprint(n) {
				return fmt.Errorf("not all is as of change %d: %v", n, is)
			}
		}
		return nil
	}
	f.eventually("the first state is written", seen)
	// rests says that the last try is over for longer than the least wait, and that the next one is far away. A change
	// brings a next one about that is near.
	rests := func() error {
		h, err := f.hook("web/hooks/a.star:all")
		switch {
		case err != nil:
			return err
		case h.NextTry == nil, time.Until(*h.NextTry) < 2*time.Second:
		case time.Until(*h.NextTry) < 10*time.Minute:
			change()
		case time.Since(*h.LastRun) > 100*time.Millisecond:
			return nil
		}
		return fmt.Errorf("%+v", h)
	}
	for reads := range 15 { // a millisecond or two each
		f.eventually("it rests", rests)
		change()
		for range reads {
			if _, err := maps.Get(t.Context(), "in", metav1.GetOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		change()
		f.eventually(fmt.Sprintf("change %d, %d reads after the one before", n, reads), seen)
	}
}
