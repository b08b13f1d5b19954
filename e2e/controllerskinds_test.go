package e2e

import (
	"context"
	"errors"
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

// lit gives each Lamp a ConfigMap. Of one with n = 13 it never comes to an end.
const lit = `
def lit(ctx, o):
    for i in range(10000000 if o.spec.n == 13 else 0):
        for j in range(10000000):
            pass
    return [part({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": o.metadata.name}, "data": {"n": str(o.spec.n)}})]

controller("lit", k8s.watch("$NS.example.com/VERSION", "Lamp", namespaces = ["$NS"]), lit, timeout = "1s",
           owns = [owns("v1", "ConfigMap")])
`

// followed gives a Service with a label a ConfigMap.
const followed = `
def followed(ctx, o):
    return [part({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": o.metadata.name}})]

controller("followed", k8s.watch("v1", "Service", namespaces = ["$NS"], labels = {"followed": "true"}), followed, owns = [owns("v1", "ConfigMap")])
`

// The kind of parents comes to another version, is not served for a while, and goes: children stay
// until their parents are deleted, and the controller of another kind goes on. So do the others when
// desired does not come to an end for one of the parents.
func TestKindsOfParentsChange(t *testing.T) {
	t.Parallel()
	f := &fixture{t: t, ns: shared.Namespace(t), name: "starling", modules: t.TempDir()}
	definition := "lamps." + f.ns + ".example.com"
	t.Cleanup(func() {
		err := shared.Dynamic.Resource(definitions).Delete(context.Background(), definition, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	hook := func(version string) string { return strings.ReplaceAll(lit, "VERSION", version) }
	f.write(map[string]string{
		"light/module.star": `module(enabled = True)
crd("$NS.example.com/v1", "Lamp", {"n": field("integer", default = 1)})
`,
		"light/hooks/lit.star":      hook("v1"),
		"other/module.star":         "module(enabled = True)\n",
		"other/hooks/followed.star": followed,
	})
	f.grantPrinted()
	f.start()
	f.waitReady()
	client := func(version string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: f.ns + ".example.com", Version: version, Resource: "lamps"}
	}
	apply := func(version, name string, n int) {
		t.Helper()
		shared.Apply(t, fmt.Sprintf("{apiVersion: %s.example.com/%s, kind: Lamp, metadata: {name: %s, namespace: %s}, spec: {\"n\": %d}}", f.ns, version, name, f.ns, n))
	}
	child := func(name string) (*unstructured.Unstructured, error) {
		return shared.Dynamic.Resource(configMaps).Namespace(f.ns).Get(t.Context(), name, metav1.GetOptions{})
	}
	has := func(name, n string) {
		t.Helper()
		f.eventually("the child of "+name+" has n = "+n, func() error {
			o, err := child(name)
			if err != nil {
				return err
			}
			if got, _, _ := unstructured.NestedString(o.Object, "data", "n"); got != n {
				return fmt.Errorf("it has %q", got)
			}
			return nil
		})
	}
	served := func(version string, is bool) {
		t.Helper()
		f.eventually(fmt.Sprintf("%s is served %t", version, is), func() error {
			o, err := shared.Dynamic.Resource(definitions).Get(t.Context(), definition, metav1.GetOptions{})
			if err != nil {
				return err
			}
			versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
			for _, v := range versions {
				if m := v.(map[string]any); m["name"] == version {
					m["served"] = is
				}
			}
			if err := unstructured.SetNestedSlice(o.Object, versions, "spec", "versions"); err != nil {
				return err
			}
			_, err = shared.Dynamic.Resource(definitions).Update(t.Context(), o, metav1.UpdateOptions{FieldManager: "somebody"})
			return err
		})
	}
	notServed := func(want string) {
		t.Helper()
		f.eventually("the status says what is not served", func() error {
			h, err := f.hook("light/lit")
			if got := strings.Join(h.NotServed, " "); err == nil && got != want {
				err = fmt.Errorf("it says %q", got)
			}
			return err
		})
	}
	shared.Apply(t, fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: p, namespace: %s, labels: {followed: \"true\"}}\nspec: {ports: [{name: web, port: 1}]}\n", f.ns))
	others := func() {
		t.Helper()
		f.eventually("the child of another controller is there", func() error { _, err := child("p"); return err })
		if err := shared.Dynamic.Resource(configMaps).Namespace(f.ns).Delete(t.Context(), "p", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		f.eventually("it comes back", func() error { _, err := child("p"); return err })
	}

	apply("v1", "a", 1)
	has("a", "1")
	apply("v1", "slow", 13)
	f.eventually("the slow one says why nothing is done", func() error {
		o, err := shared.Dynamic.Resource(client("v1")).Namespace(f.ns).Get(t.Context(), "slow", metav1.GetOptions{})
		if err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		return holds(fmt.Sprint(conditions), []string{"Failing", "limit"})
	})
	apply("v1", "a", 2)
	has("a", "2")
	if _, err := child("slow"); !apierrors.IsNotFound(err) {
		t.Errorf("the slow one has a child: %v", err)
	}
	apply("v1", "slow", 3)
	has("slow", "3")
	first, err := child("a")
	if err != nil {
		t.Fatal(err)
	}

	f.write(map[string]string{
		"light/module.star": `module(enabled = True)
crd("$NS.example.com/v2", "Lamp", {"n": field("integer", default = 1)}, versions = {"v1": {"spec": {"n": "integer"}}})
`,
		"light/hooks/lit.star": hook("v2"),
	})
	f.eventually("the child names its parent as it is now", func() error {
		o, err := child("a")
		if err != nil {
			return err
		}
		if owners := o.GetOwnerReferences(); o.GetUID() != first.GetUID() || len(owners) != 1 || owners[0].APIVersion != f.ns+".example.com/v2" {
			return fmt.Errorf("it is %v", o)
		}
		return nil
	})
	apply("v2", "a", 4)
	has("a", "4")
	others()

	deletes := f.metric("starling_api_requests_total", `verb="delete"`)
	served("v2", false)
	notServed(f.ns + ".example.com/v2/Lamp")
	others()
	time.Sleep(3 * time.Second) // longer than a failed run waits for its next try
	others()
	// Whether the child is there says nothing: the garbage collector of Kubernetes deletes it when it has not yet
	// seen the kind of the parent, and does not find the parent in the version that is not served.
	if more := f.metric("starling_api_requests_total", `verb="delete"`) - deletes; more != 0 {
		t.Errorf("Starling deletes while nobody knows the parents: %v requests", more)
	}
	if _, err := shared.Dynamic.Resource(client("v1")).Namespace(f.ns).Patch(t.Context(), "a", types.MergePatchType, []byte(`{"spec": {"n": 5}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	served("v2", true)
	notServed("")
	has("a", "5")

	if err := shared.Dynamic.Resource(definitions).Delete(t.Context(), definition, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.eventually("parents and children go with the kind", func() error {
		_, kind := shared.Dynamic.Resource(definitions).Get(t.Context(), definition, metav1.GetOptions{})
		_, a := child("a")
		_, slow := child("slow")
		for _, err := range []error{kind, a, slow} {
			if !apierrors.IsNotFound(err) {
				return errors.Join(errors.New("it is there"), err)
			}
		}
		return nil
	})
	notServed(f.ns + ".example.com/v2/Lamp")
	others()
	f.restart()
	f.waitReady()
	apply("v2", "a", 6)
	has("a", "6")
	others()
}
