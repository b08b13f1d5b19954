package release

import (
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/modules/release/owned"
	"github.com/starling-operator/starling/runtime/effect"
)

// released is a world in which the release of [driftChart] is there.
func released(t *testing.T) (*driftWorld, *manyFixture) {
	t.Helper()
	w, f := newSimulatedDrift(t)
	if _, err := w.Reconcile(t.Context(), w.target("red")); err != nil {
		t.Fatal(err)
	}
	return w, f
}

func (o *others) color() string {
	o.w.t.Helper()
	color, _, _ := unstructured.NestedString(o.get().Object, "data", "color")
	return color
}

// While somebody's helm works on a release nothing of it is put right: helm makes its revision first,
// and the one before stays deployed until the end. One that is pending for an hour was cut off.
func TestNoRepairWhileSomebodyUpgrades(t *testing.T) {
	w, _ := released(t)
	o, target := &others{w, configMaps}, w.target("red")
	key := Key{APIVersion: "v1", Kind: "ConfigMap", Namespace: w.apps, Name: "web"}
	secrets := w.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(w.apps)
	second, err := secrets.Get(t.Context(), helm.Key("web", 1), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	second.SetName(helm.Key("web", 2))
	second.SetUID("")
	second.SetResourceVersion("")
	second.SetManagedFields(nil)
	labels := second.GetLabels()
	labels["version"], labels["status"] = "2", "pending-upgrade"
	second.SetLabels(labels)
	if _, err := secrets.Create(t.Context(), second, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	repair := func(only ...Key) Repair {
		t.Helper()
		out, err := w.Repair(t.Context(), RepairTarget{Target: target, Only: only})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	o.merge(`{"data":{"color":"of helm"}}`)
	for _, only := range [][]Key{{key}, nil} {
		if out := repair(only...); out.Lost || !strings.Contains(out.Waits, "revision 2 of release web in namespace apps is pending-upgrade") || o.color() != "of helm" {
			t.Errorf("%+v, color %s", out, o.color())
		}
	}
	if _, err := secrets.Patch(t.Context(), second.GetName(), types.MergePatchType, []byte(`{"metadata":{"labels":{"status":"deployed"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if out := repair(key); len(out.Written) != 1 || out.Waits != "" || o.color() != "red" {
		t.Errorf("%+v, color %s", out, o.color())
	}
	if known, _ := w.current.Load(target.Ref()); known.(deployed).number != 2 {
		t.Errorf("revision %+v is known", known)
	}
}

// A repair names the fields that it has put right, each with its last writer; of an object that was gone, none.
func TestARepairNamesFields(t *testing.T) {
	w, _ := released(t)
	o, target := &others{w, configMaps}, w.target("red")
	key := Key{APIVersion: "v1", Kind: "ConfigMap", Namespace: w.apps, Name: "web"}
	repair := func() (fields []string) {
		t.Helper()
		out, err := w.Repair(t.Context(), RepairTarget{Target: target, Only: []Key{key}})
		if err != nil || len(out.Written) != 1 || o.color() != "red" {
			t.Fatalf("%v: %+v, color %s", err, out, o.color())
		}
		for _, e := range out.Edits[key] {
			fields = append(fields, e.Path.String()+" by "+e.By)
		}
		return fields
	}
	o.merge(`{"data":{"color":"blue"}}`)
	o.patch("zed", types.MergePatchType, `{"data":{"color":"green"},"metadata":{"labels":{"app.kubernetes.io/managed-by":"zed"}}}`)
	o.patch("argo", types.MergePatchType, `{"data":{"theirs":"stays"}}`)
	if got, want := repair(), []string{`data.color by zed`, `metadata.labels["app.kubernetes.io/managed-by"] by zed`}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	o.merge(`{"data":{"color":null}}`)
	if got, want := repair(), []string{"data.color by "}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	o.remove()
	if got := repair(); got != nil {
		t.Errorf("got %q", got)
	}
}

// A revision says which fields others had changed since the one before, and who it was, when it fails, too. A change of
// the chart itself does not count, and neither does a field that others have added.
func TestARevisionNamesWhatItTakesBack(t *testing.T) {
	w, _ := released(t)
	o := &others{w, configMaps}
	key := Key{APIVersion: "v1", Kind: "ConfigMap", Namespace: w.apps, Name: "web"}
	step := func(color, more string) string {
		t.Helper()
		target := w.target(color)
		target.Chart = with(target.Chart, "templates/more.yaml", more)
		res, err := w.Reconcile(t.Context(), target)
		if (err != nil) != (more != "") {
			t.Fatalf("%+v, %v", res, err)
		}
		edits, is := res.Undone[key]
		if len(res.Undone) > 1 || !is && len(res.Undone) > 0 {
			t.Errorf("%v", res.Undone)
		}
		return fmt.Sprint(is, edits)
	}
	quiet := fmt.Sprint(false, []owned.Edit(nil))
	o.patch("argo", types.MergePatchType, `{"data":{"theirs":"stays"}}`)
	if got := step("blue", ""); got != quiet {
		t.Error(got)
	}
	o.patch("zed", types.MergePatchType, `{"data":{"color":"green"}}`)
	if got := step("red", "apiVersion: v1\nkind: Secret\nmetadata: {name: -}\n"); got != "true [{data.color zed}]" {
		t.Error(got)
	}
	if got := step("red", ""); got != quiet {
		t.Error(got)
	}
	o.merge(`{"data":{"color":null}}`)
	if got := step("blue", ""); got != "true [{data.color }]" {
		t.Error(got)
	}
	o.remove()
	if got := step("red", ""); got != "true []" {
		t.Error(got)
	}
}

// An object that takes the name of another one before the write of a repair is left alone.
func TestARepairWritesNoOtherObject(t *testing.T) {
	for _, name := range []string{"edited", "gone", "seen to be gone"} {
		t.Run(name, func(t *testing.T) {
			w, f := released(t)
			o, target := &others{w, configMaps}, w.target("red")
			key := Key{APIVersion: "v1", Kind: "ConfigMap", Namespace: w.apps, Name: "web"}
			want := RepairTarget{Target: target, Only: []Key{key}}
			if o.merge(`{"data":{"color":"blue"}}`); name != "edited" {
				o.remove()
			}
			if name == "seen to be gone" {
				want.Gone = want.Only
			}
			server, swapped := f.server, false
			f.server = roundTripper(func(r *http.Request) (*http.Response, error) {
				if r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/configmaps") && !swapped {
					if swapped = true; name == "edited" {
						o.remove()
					}
					o.make(map[string]any{"meta.helm.sh/release-name": "other"})
				}
				return server.RoundTrip(r)
			})
			out, err := w.Repair(t.Context(), want)
			if !swapped || err == nil || len(out.Written) > 0 || o.color() != "theirs" {
				t.Errorf("%+v, %v, color %s", out, err, o.color())
			}
			if _, err := w.Repair(t.Context(), want); err == nil || !strings.Contains(err.Error(), "it belongs to the helm release other") {
				t.Errorf("once more: %v", err)
			}
		})
	}
}

// A field that somebody takes away between the read and the write of a repair is put right by the same repair:
// nobody owns it then, so no digest would tell.
func TestARepairPutsRightWhatGoesMeanwhile(t *testing.T) {
	for _, times := range []int{1, 2} {
		w, f := released(t)
		o, target := &others{w, configMaps}, w.target("red")
		key := Key{APIVersion: "v1", Kind: "ConfigMap", Namespace: w.apps, Name: "web"}
		takes := []string{`{"data":{"color":null}}`, `{"metadata":{"labels":{"` + effect.ReleasedByLabel + `":null}}}`}
		o.merge(takes[1])
		server, taken, busy := f.server, 0, false
		f.server = roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/configmaps") && taken < times && !busy {
				busy = true
				o.merge(takes[taken%2])
				taken, busy = taken+1, false
			}
			return server.RoundTrip(r)
		})
		out, err := w.Repair(t.Context(), RepairTarget{Target: target, Only: []Key{key}})
		if err != nil || o.color() != "red" || o.get().GetLabels()[effect.ReleasedByLabel] == "" {
			t.Errorf("%d times: %+v, %v, color %q, labels %v", times, out, err, o.color(), o.get().GetLabels())
		}
	}
}

// The same in an upgrade.
func TestAnUpgradeNotesWhatGoesMeanwhile(t *testing.T) {
	w, f := released(t)
	o, server, busy := &others{w, configMaps}, f.server, false
	f.server = roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/configmaps/web") && !busy {
			busy = true
			o.merge(`{"metadata":{"labels":{"app":null}}}`)
		}
		return server.RoundTrip(r)
	})
	res, err := w.Reconcile(t.Context(), w.target("blue"))
	if err != nil || !busy || res.Action != ActionUpgraded || res.Objects.Digest == "" {
		t.Errorf("taken away is %t: %+v, %v", busy, res, err)
	}
	if out := w.repair(); len(out.Written) != 0 || o.get().GetLabels()["app"] != "web" {
		t.Errorf("%+v, labels %v", out, o.get().GetLabels())
	}
}

func (o *others) remove() {
	o.w.t.Helper()
	if err := o.client().Delete(o.w.t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		o.w.t.Fatal(err)
	}
}

// make makes a ConfigMap of somebody's.
func (o *others) make(annotations map[string]any) {
	o.w.t.Helper()
	theirs := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"color": "theirs"},
		"metadata": map[string]any{"name": "web", "annotations": annotations},
	}}
	if _, err := o.client().Create(o.w.t.Context(), theirs, metav1.CreateOptions{FieldManager: "somebody"}); err != nil {
		o.w.t.Fatal(err)
	}
}

// An object that is seen to be gone is not looked at, unless somebody has made it anew.
func TestRequestsOfARepair(t *testing.T) {
	w, f := released(t)
	o, target := &others{w, configMaps}, w.target("red")
	key := Key{APIVersion: "v1", Kind: "ConfigMap", Namespace: w.apps, Name: "web"}
	server := f.server
	var mu sync.Mutex
	var requests []string
	f.server = roundTripper(func(r *http.Request) (*http.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		requests = append(requests, r.Method+" "+path.Base(r.URL.Path))
		return server.RoundTrip(r)
	})
	repair := func(want ...string) {
		t.Helper()
		requests = nil
		out, err := w.Repair(t.Context(), RepairTarget{Target: target, Only: []Key{key}, Gone: []Key{key}})
		got := slices.Sorted(slices.Values(requests))
		if err != nil || len(out.Written) != 1 || o.color() != "red" {
			t.Errorf("%+v, %v, color %s", out, err, o.color())
		}
		want = append([]string{"GET " + helm.Key("web", 1), "GET " + helm.Key("web", 2)}, want...)
		if !slices.Equal(got, want) {
			t.Errorf("requests %q, want %q", got, want)
		}
	}
	o.remove()
	repair("PATCH web")
	o.remove()
	o.make(nil)
	repair("GET web", "PATCH web", "PATCH web")
	refuses, refused := server, true // as a quota, before it says that the object is there
	server = roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPatch && !refused {
			refused, r.URL.Path = true, "/api/v1/namespaces/apps/no-such-kind"
		}
		return refuses.RoundTrip(r)
	})
	o.merge(`{"data":{"color":"blue"},"metadata":{"labels":{"` + effect.ReleasedByLabel + `":null}}}`)
	refused = false
	repair("GET web", "PATCH web", "PATCH web")
}

// An object that the chart has renamed is not made again under its old name, whoever edits or deletes
// it meanwhile.
func TestNoRepairOfWhatTheChartHasNoMore(t *testing.T) {
	w, _ := released(t)
	o, target := &others{w, configMaps}, w.target("red")
	key := Key{APIVersion: "v1", Kind: "ConfigMap", Namespace: w.apps, Name: "web"}
	o.merge(`{"data":{"color":"blue"}}`)
	target.Chart = chartOf("web", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: renamed}\ndata: {color: red}\n")
	if _, err := w.Reconcile(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	for _, gone := range [][]Key{nil, {key}} {
		out, err := w.Repair(t.Context(), RepairTarget{Target: named(target.Ref()), Only: []Key{key}, Gone: gone})
		if _, there := o.client().Get(t.Context(), "web", metav1.GetOptions{}); err != nil || len(out.Written) > 0 || !apierrors.IsNotFound(there) {
			t.Errorf("%+v, %v; the object is there: %v", out, err, there)
		}
	}
}
