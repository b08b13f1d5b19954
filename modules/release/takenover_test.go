package release

import (
	"io"
	"net/http"
	"strings"
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

// unread answers reads of one object with 403, while its deletion works.
type unread struct {
	next http.RoundTripper
	path string
}

func (u *unread) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := u.next.RoundTrip(r)
	if err == nil && r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, u.path) {
		resp.Body.Close()
		resp.StatusCode, resp.Body = http.StatusForbidden, io.NopCloser(strings.NewReader("no"))
	}
	return resp, err
}

// An object of which nobody can say whose it is stops neither an upgrade that drops it nor the deletion of others.
func TestAnObjectThatCannotBeReadStopsNothing(t *testing.T) {
	w, f := newSimulatedDrift(t)
	configMap := func(name string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n---\n"
	}
	maps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	web := Target{Module: "web", Name: "web", Namespace: "apps", Chart: chartOf("web", configMap("a")+configMap("b")+configMap("c"))}
	if _, err := w.Reconcile(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	server := f.server
	f.server = &unread{server, "/configmaps/a"}
	web.Chart = chartOf("web", configMap("c"))
	web.Chart.Digest = "2"
	if res, err := w.Reconcile(t.Context(), web); err == nil || !strings.Contains(err.Error(), "cannot be deleted, which is tried again") || res.Action != ActionUpgraded {
		t.Fatal(res.Action, err)
	}
	f.server = server
	if w.there(maps, "apps", "b") || !w.there(maps, "apps", "a") {
		t.Error("b is there, or a has gone unseen")
	}
	f.server = &unread{server, "/configmaps/c"}
	if _, err := w.Uninstall(t.Context(), web.Ref(), 0); err == nil {
		t.Error("the uninstall says nothing of c")
	}
	f.server = server
	if done, err := w.Uninstall(t.Context(), web.Ref(), 0); !done || err != nil {
		t.Error(done, err)
	}
	for _, name := range []string{"a", "b", "c"} {
		if w.there(maps, "apps", name) {
			t.Errorf("%s is there in the end", name)
		}
	}
}
