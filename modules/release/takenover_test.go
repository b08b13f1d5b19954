package release

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func (w *driftWorld) there(of schema.GroupVersionResource, ns, name string) bool {
	_, err := w.client.Resource(of).Namespace(ns).Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		w.t.Fatal(err)
	}
	return err == nil
}

// A module is renamed, with adopt = True: the new one takes the objects over, then the old one is uninstalled.
func TestAnUninstallLeavesWhatAnotherReleaseHas(t *testing.T) {
	w, _ := newSimulatedDrift(t)
	pvc := "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: db}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
	pvcs := schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	old := Target{Module: "old", Name: "old", Namespace: "apps", Chart: chartOf("old", pvc)}
	if _, err := w.Reconcile(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	renamed := Target{Module: "renamed", Name: "renamed", Namespace: "apps", Chart: chartOf("renamed", pvc), Adopt: true}
	if _, err := w.Reconcile(t.Context(), renamed); err != nil {
		t.Fatal(err)
	}
	if done, err := w.Uninstall(t.Context(), old.Ref(), 0); !done || err != nil {
		t.Fatal(done, err)
	}
	if !w.there(pvcs, "apps", "db") {
		t.Error("the uninstall of the old module has deleted an object of the new one")
	}
}

// An object moves from one module to another one, which takes it over first.
func TestAnUpgradeLeavesWhatAnotherReleaseHas(t *testing.T) {
	w, _ := newSimulatedDrift(t)
	pvc := "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: db}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
	cm := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	pvcs := schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	a := Target{Module: "a", Name: "a", Namespace: "apps", Chart: chartOf("a", pvc+"---\n"+cm)}
	if _, err := w.Reconcile(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	b := Target{Module: "b", Name: "b", Namespace: "apps", Chart: chartOf("b", pvc), Adopt: true}
	if _, err := w.Reconcile(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	a.Chart = chartOf("a", cm)
	a.Chart.Digest = "2"
	if res, err := w.Reconcile(t.Context(), a); err != nil || res.Action != ActionUpgraded {
		t.Fatal(res, err)
	}
	if !w.there(pvcs, "apps", "db") {
		t.Error("the upgrade of a has deleted an object of b")
	}
}
