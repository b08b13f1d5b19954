package release

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/effect"
)

func (w *driftWorld) there(of schema.GroupVersionResource, ns, name string) bool {
	_, err := w.client.Resource(of).Namespace(ns).Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		w.t.Fatal(err)
	}
	return err == nil
}

func (w *driftWorld) uid(of schema.GroupVersionResource, ns, name string) string {
	w.t.Helper()
	live, err := w.client.Resource(of).Namespace(ns).Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return string(live.GetUID())
}

// module(adopt = True) takes objects over from nobody who still has them.
func TestAdoptLeavesWhatOthersHave(t *testing.T) {
	cm := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: apps}\n"
	for name, meta := range map[string]struct {
		annotations map[string]string
		owners      []metav1.OwnerReference
		label       string
		manager     string // applies it
		err         string
	}{
		"nobody":                                {},
		"a release that is gone":                {annotations: map[string]string{helmName: "gone", helmNamespace: "apps"}},
		"another release":                       {annotations: map[string]string{helmName: "victim", helmNamespace: "apps"}, err: "it is of release victim in namespace apps"},
		"a controller":                          {owners: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", UID: "u", Controller: new(bool)}}, err: "it belongs to ReplicaSet r"},
		"a parent":                              {annotations: map[string]string{"starling.dev/parent": "apps/p", "starling.dev/parent-uid": "u"}, err: "it is a child of apps/p"},
		"a hook of another module":              {annotations: map[string]string{effect.MadeByAnnotation: "ops/starling/other"}, err: "it is made by a hook"},
		"a hook of this module":                 {annotations: map[string]string{effect.MadeByAnnotation: "ops/starling/thief"}},
		"another instance":                      {label: "ops.second", err: "it belongs to the starling instance of ops.second"},
		"another module's hook, without a mark": {manager: effect.Manager("victim/hooks/a.star:f"), err: "a hook of module victim has made it"},
		"its own hook, without a mark":          {manager: effect.Manager("thief/hooks/a.star:f")},
		"a hook of a module that is gone":       {manager: effect.Manager("gone/hooks/a.star:f")},
	} {
		t.Run(name, func(t *testing.T) {
			w, f := newSimulatedDrift(t)
			victim := Target{Input: chart.Input{Module: "victim", Name: "victim", Namespace: "apps", Chart: chartOf("victim", cm)}}
			if _, err := w.Reconcile(t.Context(), victim); err != nil {
				t.Fatal(err)
			}
			if name != "another release" {
				victim.Chart = chartOf("victim", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n")
				victim.Chart.Digest = "2"
				if _, err := w.Reconcile(t.Context(), victim); err != nil {
					t.Fatal(err)
				}
				for i := range meta.owners {
					*meta.owners[i].Controller = true
				}
				o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"of": "others"}}}
				o.SetName("a")
				o.SetAnnotations(meta.annotations)
				o.SetOwnerReferences(meta.owners)
				if meta.label != "" {
					o.SetLabels(map[string]string{effect.InstanceLabel: meta.label})
				}
				if meta.manager != "" {
					_, err := w.client.Resource(configMaps).Namespace("apps").Apply(t.Context(), "a", o, metav1.ApplyOptions{FieldManager: meta.manager})
					if err != nil {
						t.Fatal(err)
					}
				} else if _, err := w.client.Resource(configMaps).Namespace("apps").Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			thief := Target{Input: chart.Input{Module: "thief", Name: "thief", Namespace: "apps", Chart: chartOf("thief", cm)}, Adopt: true}
			w.o.Folders = func() []*tree.Module { return []*tree.Module{{Name: "thief"}, {Name: "victim"}, {Name: "other"}} }
			writes := len(f.writes)
			_, err := w.Reconcile(t.Context(), thief)
			if meta.err == "" && err != nil || meta.err != "" && (err == nil || !strings.Contains(err.Error(), meta.err)) {
				t.Error(err)
			}
			if meta.err != "" && len(f.writes) != writes {
				t.Errorf("a revision was made for a release that is refused: %v", f.writes[writes:])
			}
		})
	}
}

// An object that comes in the place of one that was looked at is not deleted.
func TestADeletionIsOfTheObjectThatWasLookedAt(t *testing.T) {
	w, f := newSimulatedDrift(t)
	cm := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	web := Target{Input: chart.Input{Module: "web", Name: "web", Namespace: "apps", Chart: chartOf("web", cm)}}
	if _, err := w.Reconcile(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	server := f.server
	f.server = &replacing{server, "/configmaps/a", func() {
		f.server = server
		maps := w.client.Resource(configMaps).Namespace("apps")
		if err := maps.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		theirs := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "data": map[string]any{"of": "others"}}}
		if _, err := maps.Create(t.Context(), theirs, metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
	}}
	if done, err := w.Uninstall(t.Context(), web.Ref(), 0); err != nil || !done || !w.there(configMaps, "apps", "a") {
		t.Errorf("the object of others is gone, or the release is not, %t, %v", done, err)
	}
}

// An object that somebody takes over, or keeps, after it was looked at is not deleted; any other change is none.
func TestADeletionIsOfTheObjectAsItWasSeen(t *testing.T) {
	cm := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	for name, test := range map[string]struct {
		annotations string
		stays       map[bool]bool // in an uninstall, in an upgrade
	}{
		"taken over": {`{"meta.helm.sh/release-name": "other"}`, map[bool]bool{true: true, false: true}},
		"kept":       {`{"helm.sh/resource-policy": "keep"}`, map[bool]bool{false: true}}, // Helm's own look at an uninstall is at the manifest
		"touched":    {`{"x": "y"}`, nil},
	} {
		for _, uninstall := range []bool{true, false} {
			w, f := newSimulatedDrift(t)
			web := Target{Input: chart.Input{Module: "web", Name: "web", Namespace: "apps", Chart: chartOf("web", cm)}}
			if _, err := w.Reconcile(t.Context(), web); err != nil {
				t.Fatal(err)
			}
			server := f.server
			f.server = &replacing{server, "/configmaps/a", func() {
				f.server = server
				patch := []byte(`{"metadata": {"annotations": ` + test.annotations + `}}`)
				if _, err := w.client.Resource(configMaps).Namespace("apps").Patch(t.Context(), "a", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
					t.Error(err)
				}
			}}
			var err error
			if uninstall {
				_, err = w.Uninstall(t.Context(), web.Ref(), 0)
			} else {
				web.Chart = chartOf("web", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n")
				web.Chart.Digest = "2"
				_, err = w.Reconcile(t.Context(), web)
			}
			if err != nil || f.server != server {
				t.Errorf("%s: %v", name, err)
			}
			if is := w.there(configMaps, "apps", "a"); is != test.stays[uninstall] {
				t.Errorf("%s, uninstall %t: it stays: %t", name, uninstall, is)
			}
		}
	}
}

// replacing calls between as an object has been read.
type replacing struct {
	next    http.RoundTripper
	path    string
	between func()
}

func (r *replacing) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.next.RoundTrip(req)
	if err == nil && req.Method == http.MethodGet && strings.HasSuffix(req.URL.Path, r.path) {
		r.between()
	}
	return resp, err
}

// A module is renamed, with adopt = True: the new one waits for the objects, then the old one is uninstalled.
func TestAnUninstallLeavesWhatAnotherReleaseHas(t *testing.T) {
	w, _ := newSimulatedDrift(t)
	pvc := "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: db}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
	pvcs := schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	old := Target{Input: chart.Input{Module: "old", Name: "old", Namespace: "apps", Chart: chartOf("old", pvc)}}
	if _, err := w.Reconcile(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	renamed := Target{Input: chart.Input{Module: "renamed", Name: "renamed", Namespace: "apps", Chart: chartOf("renamed", pvc)}, Adopt: true}
	uid := w.uid(pvcs, "apps", "db")
	refused := "PersistentVolumeClaim db in namespace apps is not taken over, as it is of release old in namespace apps: take it out there, or leave it out here"
	if _, err := w.Reconcile(t.Context(), renamed); err == nil || err.Error() != refused {
		t.Fatal(err)
	}
	if done, err := w.Uninstall(t.Context(), old.Ref(), 0); !done || err != nil {
		t.Fatal(done, err)
	}
	if _, err := w.Reconcile(t.Context(), renamed); err != nil {
		t.Fatal(err)
	}
	if w.uid(pvcs, "apps", "db") != uid {
		t.Error("the object is another one")
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
	a := Target{Input: chart.Input{Module: "a", Name: "a", Namespace: "apps", Chart: chartOf("a", pvc+"---\n"+cm)}}
	if _, err := w.Reconcile(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	b := Target{Input: chart.Input{Module: "b", Name: "b", Namespace: "apps", Chart: chartOf("b", pvc)}, Adopt: true}
	uid := w.uid(pvcs, "apps", "db")
	if _, err := w.Reconcile(t.Context(), b); err == nil || !strings.Contains(err.Error(), "it is of release a") {
		t.Fatal(err)
	}
	a.Chart = chartOf("a", cm)
	a.Chart.Digest = "2"
	if res, err := w.Reconcile(t.Context(), a); err != nil || res.Action != ActionUpgraded {
		t.Fatal(res, err)
	}
	if _, err := w.Reconcile(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if w.uid(pvcs, "apps", "db") != uid {
		t.Error("the object is another one")
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
	web := Target{Input: chart.Input{Module: "web", Name: "web", Namespace: "apps", Chart: chartOf("web", configMap("a")+configMap("b")+configMap("c"))}}
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

// An uninstall that was cut off is brought to its end, which waits for no object that others have.
func TestNobodyWaitsForTheEndOfWhatOthersHave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := newSimulatedDrift(t)
		web := Target{Input: chart.Input{Module: "web", Name: "web", Namespace: "apps", Chart: chartOf("web", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")}}
		if _, err := w.Reconcile(t.Context(), web); err != nil {
			t.Fatal(err)
		}
		patch := func(of schema.GroupVersionResource, name, patch string) {
			t.Helper()
			if _, err := w.client.Resource(of).Namespace("apps").Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		patch(configMaps, "a", `{"metadata": {"annotations": {"`+helmName+`": "other"}}}`)
		patch(secretsResource(), helm.Key("web", 1), `{"metadata": {"labels": {"status": "uninstalling"}}}`)
		began := time.Now()
		web.Chart = chartOf("web", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n")
		if res, err := w.Reconcile(t.Context(), web); err != nil || res.Action != ActionInstalled || time.Since(began) > time.Minute {
			t.Errorf("after %s: %+v, %v", time.Since(began), res, err)
		}
		if !w.there(configMaps, "apps", "a") || !w.there(configMaps, "apps", "b") {
			t.Error("an object is missing")
		}
	})
}

// stuck has writes of some objects wait until nobody waits for them.
type stuck struct {
	next http.RoundTripper
	path string
}

func (s *stuck) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && strings.Contains(r.URL.Path, s.path) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return s.next.RoundTrip(r)
}

// The error of a first revision whose time is over in a write says that no other one takes its place.
func TestAFirstRevisionThatIsLateIsNotRolledBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, f := newSimulatedDrift(t)
		f.server = &stuck{f.server, "/namespaces/apps/configmaps"}
		web := Target{Input: chart.Input{Module: "web", Name: "web", Namespace: "apps", Chart: chartOf("web", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")}, Rollback: true, Timeout: time.Minute}
		_, err := w.Reconcile(t.Context(), web)
		if err == nil || !strings.HasSuffix(err.Error(), "; there is no deployed revision to go back to") {
			t.Error(err)
		}
	})
}
