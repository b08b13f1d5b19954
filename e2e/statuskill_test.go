package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// told has each Lamp with a child and a status.
const told = `
def told(ctx, o):
    return [part({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": o.metadata.name}, "data": {"n": str(o.spec.n)}})]

controller("told", k8s.watch("$NS.example.com/v1", "Lamp", namespaces = ["$NS"]), told, owns = [owns("v1", "ConfigMap")],
           status = lambda ctx, o: {"n": o.spec.n})
`

// Starling is killed at each write of the status of a parent, before it reaches the API server or before its
// answer is here. The next process has the status say what is, and makes no child anew.
func TestKilledAtTheWriteOfAStatus(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("written %t", after), func(t *testing.T) {
			t.Parallel()
			testKilledAtTheWriteOfAStatus(t, after)
		})
	}
}

func testKilledAtTheWriteOfAStatus(t *testing.T, after bool) {
	ns := shared.Namespace(t)
	f := &fixture{t: t, ns: ns, name: "starling", modules: t.TempDir()}
	t.Cleanup(func() {
		err := shared.Dynamic.Resource(definitions).Delete(context.Background(), "lamps."+ns+".example.com", metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	f.write(map[string]string{
		"light/module.star": `module(enabled = True)
crd("$NS.example.com/v1", "Lamp", {"n": "integer"}, status = {"n": "integer"})
`,
		"light/hooks/told.star": told,
	})
	f.grantPrinted()
	r := newKiller(t, f, func(path string) bool { return strings.HasSuffix(path, "/lamps/p/status") })
	f.start()
	f.waitReady()
	lamps := shared.Dynamic.Resource(schema.GroupVersionResource{Group: ns + ".example.com", Version: "v1", Resource: "lamps"}).Namespace(ns)
	children := shared.Dynamic.Resource(configMaps).Namespace(ns)
	var uid types.UID
	follows := func(n int64) error {
		child, err := children.Get(t.Context(), "p", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if n == 1 {
			uid = child.GetUID()
		} else if uid != child.GetUID() {
			t.Error("the child was made anew")
		}
		o, err := lamps.Get(t.Context(), "p", metav1.GetOptions{})
		if err != nil {
			return err
		}
		status, _, _ := unstructured.NestedMap(o.Object, "status")
		if status["n"] != n || status["observedGeneration"] != o.GetGeneration() {
			return fmt.Errorf("of generation %d the status is %v", o.GetGeneration(), status)
		}
		conditions, _, _ := unstructured.NestedSlice(status, "conditions")
		for _, c := range conditions {
			if m, _ := c.(map[string]any); m["type"] == "Ready" && m["status"] == "True" {
				return r.Rests(300 * time.Millisecond)
			}
		}
		return fmt.Errorf("the conditions are %v", conditions)
	}
	for at, killed := 1, true; killed; at++ {
		killed = false
		for _, n := range []int64{1, 2} {
			before := r.KillAt(at, after, func() {
				shared.Apply(t, fmt.Sprintf("{apiVersion: %[1]s.example.com/v1, kind: Lamp, metadata: {name: p, namespace: %[1]s}, spec: {\"n\": %[2]d}}", ns, n))
			})
			f.eventually("the change is carried out, or the process is killed", func() error {
				if r.Killed() > before {
					return nil
				}
				return follows(n)
			})
			if r.Spare() > before {
				killed = true
				f.process.Kill()
				f.freeLease()
				f.start()
				f.waitReady()
			}
			f.eventually("the status says what is", func() error { return follows(n) })
		}
		if err := lamps.Delete(t.Context(), "p", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		f.eventually("the parent goes with its child", func() error {
			for what, get := range map[string]func() error{
				"the parent": func() error { _, err := lamps.Get(t.Context(), "p", metav1.GetOptions{}); return err },
				"the child":  func() error { _, err := children.Get(t.Context(), "p", metav1.GetOptions{}); return err },
			} {
				if err := get(); !apierrors.IsNotFound(err) {
					return fmt.Errorf("%s is there: %v", what, err)
				}
			}
			return nil
		})
	}
	t.Logf("killed at %q", r.At())
	if len(r.At()) < 2 {
		t.Errorf("%d processes were killed, want one after each change at least", len(r.At()))
	}
}
