package e2e

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/effect"
)

// heals has somebody change or delete all objects of the releases, and waits until they are as
// want has them. Jobs and claims are left alone: one that has gone is no drift, the other holds
// data.
func (f *fixture) heals(want map[string]string) {
	f.t.Helper()
	changed, deleted := 0, 0
	for _, resource := range corpusKinds {
		if resource.Resource == "jobs" || resource.Resource == "persistentvolumeclaims" {
			continue
		}
		client := shared.Dynamic.Resource(resource)
		list, err := client.List(f.t.Context(), metav1.ListOptions{LabelSelector: effect.ReleasedByLabel})
		if err != nil && !apierrors.IsNotFound(err) {
			f.t.Fatal(err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			if !ofCorpus(o) {
				continue
			}
			api := client.Namespace(o.GetNamespace())
			if data := otherwise(f.t, o); data != nil {
				_, err = api.Patch(f.t.Context(), o.GetName(), types.StrategicMergePatchType, data, metav1.PatchOptions{FieldManager: "somebody"})
				changed++
			} else {
				err = api.Delete(f.t.Context(), o.GetName(), metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})
				deleted++
			}
			if err != nil && !apierrors.IsNotFound(err) {
				f.t.Fatal(err)
			}
		}
	}
	f.t.Logf("somebody has changed %d objects, and deleted %d", changed, deleted)
	if changed < 10 || deleted < 30 {
		f.t.Errorf("%d objects were changed and %d deleted: too few", changed, deleted)
	}
	f.eventually("all is as it was", func() error {
		if diff := cmp.Diff(want, snapshot(f.t)); diff != "" {
			return fmt.Errorf("(-before +now)\n%s", diff)
		}
		return nil
	})
	for module := range corpus {
		cluster.Eventually(f.t, soon, module+" shows no drift", func() error {
			m, err := f.module(module)
			if err == nil && len(m.Drifted) > 0 {
				err = fmt.Errorf("%+v", m.Drifted)
			}
			return err
		})
		f.waitState(module, status.ModuleReady)
		f.waitRevision(corpusNamespace(module), module, 2)
	}
}

// otherwise is a patch that changes fields of a chart's object; nil for kinds that are deleted.
func otherwise(t *testing.T, o *unstructured.Unstructured) []byte {
	t.Helper()
	var change map[string]any
	switch o.GetKind() {
	case "ConfigMap":
		if o.Object["immutable"] == true {
			return nil
		}
		data, _, err := unstructured.NestedStringMap(o.Object, "data")
		if err != nil {
			t.Fatal(err)
		}
		for key := range data {
			data[key] = "somebody's"
		}
		change = map[string]any{"data": data}
	case "Deployment":
		containers, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		if err != nil {
			t.Fatal(err)
		}
		var other []any
		for _, c := range containers {
			other = append(other, map[string]any{"name": c.(map[string]any)["name"], "image": "somebody:1"})
		}
		change = map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": other}}}}
	default:
		return nil
	}
	text, err := json.Marshal(change)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
