package hostile

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Somebody who may read and patch ConfigMaps applies marks of children to other objects, under the field manager of the
// controller: nothing is deleted or taken over.
func TestMarksBySomebodyWhoMayPatch(t *testing.T) {
	a := newArena(t)
	other := shared.Namespace(t)
	a.write(map[string]string{
		"kids/module.star": "module(enabled = True)\n",
		"kids/hooks/kids.star": `
def kids(ctx, o):
    return [part({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": n, "namespace": o.metadata.namespace}, "data": {"by": "starling"}}) for n in o.metadata.annotations["names"].split()]

controller("kids", k8s.watch("v1", "ServiceAccount", labels = "parent"), kids, owns = [owns("v1", "ConfigMap")])
`,
	})
	shared.Apply(t, fmt.Sprintf(`
apiVersion: v1
kind: ServiceAccount
metadata: {name: p, namespace: %[1]s, labels: {parent: "true"}, annotations: {names: "one two"}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: theirs, namespace: %[2]s}
data: {by: them}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: early, namespace: %[1]s}
data: {by: them}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]s-patch}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, patch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s-patch}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s-patch}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: mallory}]
`, a.ns, other))
	a.start()
	ctx := context.Background()
	get := func(namespace, name string) (*corev1.ConfigMap, error) {
		return shared.Client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	}
	var one *corev1.ConfigMap
	a.eventually("the children are there", func() (err error) {
		if one, err = get(a.ns, "one"); err == nil {
			_, err = get(a.ns, "two")
		}
		return err
	})

	as := rest.CopyConfig(shared.Config)
	as.Impersonate.UserName = "mallory"
	mallory, err := kubernetes.NewForConfig(as)
	if err != nil {
		t.Fatal(err)
	}
	forge := func(from *corev1.ConfigMap, namespace, name string) {
		t.Helper()
		annotations := map[string]string{}
		for key, text := range from.Annotations {
			annotations[key] = strings.ReplaceAll(text, from.Namespace+"/"+from.Name, namespace+"/"+name)
		}
		text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
			"name": name, "namespace": namespace, "labels": from.Labels, "annotations": annotations,
		}})
		if err != nil {
			t.Fatal(err)
		}
		force := true
		_, err = mallory.CoreV1().ConfigMaps(namespace).Patch(ctx, name, types.ApplyPatchType, text,
			metav1.PatchOptions{FieldManager: from.ManagedFields[0].Manager, Force: &force})
		if err != nil {
			t.Fatal(err)
		}
	}
	want := func(names string, there, gone []string) {
		t.Helper()
		shared.Apply(t, fmt.Sprintf(`
apiVersion: v1
kind: ServiceAccount
metadata: {name: p, namespace: %s, labels: {parent: "true"}, annotations: {names: %q}}
`, a.ns, names))
		a.eventually("children of "+names, func() error {
			for _, name := range there {
				if _, err := get(a.ns, name); err != nil {
					return err
				}
			}
			for _, name := range gone {
				if _, err := get(a.ns, name); !apierrors.IsNotFound(err) {
					return fmt.Errorf("%s: %v", name, err)
				}
			}
			return nil
		})
	}
	forge(one, other, "theirs")
	forge(one, a.ns, "early")
	want("one three", []string{"three"}, []string{"two"})
	shared.Apply(t, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: two, namespace: %s}\ndata: {by: them}\n", a.ns))
	forge(one, a.ns, "two")
	want("one four", []string{"four"}, []string{"three"}) // all that would go goes in this look
	want("one five early", []string{"five"}, nil)
	for _, o := range []struct{ namespace, name string }{{other, "theirs"}, {a.ns, "early"}, {a.ns, "two"}} {
		if cm, err := get(o.namespace, o.name); err != nil || cm.Data["by"] != "them" {
			t.Errorf("%s: %v, %v", o.name, cm.Data, err)
		}
	}
	a.stop()
}
