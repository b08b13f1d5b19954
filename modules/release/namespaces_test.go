package release

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/chart"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// create makes an object, as others do.
func (w *driftWorld) create(of schema.GroupVersionResource, ns, text string) {
	w.t.Helper()
	list, err := chart.Decode(text)
	if err == nil {
		_, err = w.client.Resource(of).Namespace(ns).Create(w.t.Context(), list[0], metav1.CreateOptions{FieldManager: "somebody"})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

const (
	ownNamespace   = "apiVersion: v1\nkind: Namespace\nmetadata: {name: apps}\n---\n"
	otherNamespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: far}\n---\n"
	farMap         = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: far}\n---\n"
	nearMap        = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n"
	farHook        = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: h, namespace: far, annotations: {helm.sh/hook: post-install}}\n---\n"
	kubeRoot       = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kube-root-ca.crt}\n"
	theDefault     = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: default}\n"
)

var serviceAccounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}

// A Namespace of a chart goes with the release, or with the revision that drops it, unless it is the release's own or
// has objects that would go with it.
func TestNamespacesOfCharts(t *testing.T) {
	theirs := func(annotations string) func(*driftWorld) {
		return func(w *driftWorld) {
			w.create(configMaps, "far", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: theirs, annotations: {"+annotations+"}}\n")
		}
	}
	for name, test := range map[string]struct {
		chart, next string // next "": an uninstall
		before      func(*driftWorld)
		stays       string // the namespaces
	}{
		"uninstall":                   {chart: ownNamespace + otherNamespace + farMap + nearMap, stays: "apps"},
		"with a hook's object":        {chart: otherNamespace + farMap + farHook},
		"with theirs":                 {chart: ownNamespace + otherNamespace + farMap, before: theirs(""), stays: "apps far"},
		"with another release's":      {chart: otherNamespace, before: theirs(helmName + ": other, " + helmNamespace + ": far"), stays: "far"},
		"with one that is kept":       {chart: otherNamespace, before: theirs(helmName + ": web, " + helmNamespace + ": apps, helm.sh/resource-policy: keep"), stays: "far"},
		"dropped":                     {chart: otherNamespace + farMap + nearMap, next: nearMap},
		"dropped alone":               {chart: otherNamespace + farMap, next: farMap, stays: "far"},
		"dropped with theirs":         {chart: otherNamespace + farMap, next: nearMap, before: theirs(""), stays: "far"},
		"dropped, the release's own":  {chart: ownNamespace + nearMap, next: nearMap, stays: "apps"},
		"dropped in deletion, theirs": {chart: otherNamespace, next: nearMap, before: func(w *driftWorld) { theirs("")(w); w.remove(namespaces, "", "far") }},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := newSimulatedDrift(t)
			web := Target{Input: chart.Input{Module: "web", Name: "web", Namespace: "apps", Chart: chartOf("web", test.chart)}}
			web.Installs = []builtins.Grant{{APIVersion: "v1", Kind: "Namespace"}, {APIVersion: "v1", Kind: "ConfigMap", Namespaces: []string{"far"}}}
			if strings.Contains(test.chart, ownNamespace) { // as a person, or an earlier revision, has made it
				web.Adopt = true
			}
			if _, err := w.Reconcile(t.Context(), web); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(test.chart, otherNamespace) {
				w.create(configMaps, "far", kubeRoot)
				w.create(serviceAccounts, "far", theDefault)
			}
			if test.before != nil {
				test.before(w)
			}
			if test.next == "" {
				if done, err := w.Uninstall(t.Context(), web.Ref(), 0); !done || err != nil {
					t.Fatal(done, err)
				}
			} else {
				web.Chart = chartOf("web", test.next)
				web.Chart.Digest = "2"
				if _, err := w.Reconcile(t.Context(), web); err != nil {
					t.Fatal(err)
				}
				rec, err := w.records.get(t.Context(), web.Ref())
				if err != nil || len(rec.Left) > 0 {
					t.Errorf("left are %v, %v", rec.Left, err)
				}
			}
			for _, ns := range []string{"apps", "far"} {
				want := strings.Contains(test.stays, ns) || ns == "apps" && !strings.Contains(test.chart, ownNamespace)
				live, err := w.client.Resource(namespaces).Get(t.Context(), ns, metav1.GetOptions{})
				is := err == nil && live.GetDeletionTimestamp() == nil
				if is != want {
					t.Errorf("%s is there: %t, %v", ns, is, err)
				}
			}
		})
	}
}

// A hook deletes what hooks of its release have made, and nothing else.
func TestAHookDeletesWhatTheReleaseMade(t *testing.T) {
	const hook = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: {helm.sh/hook: \"pre-install,pre-upgrade\"}}\ndata: {of: %s}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: of-%s}\n"
	target := func(module, of string) Target {
		c := chartOf(module, fmt.Sprintf(hook, of, module))
		c.Digest = module + of
		return Target{Input: chart.Input{Module: module, Name: module, Namespace: "apps", Chart: c}}
	}
	data := func(w *driftWorld) string {
		live, err := w.client.Resource(configMaps).Namespace("apps").Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		of, _, _ := unstructured.NestedString(live.Object, "data", "of")
		return of
	}
	for name, test := range map[string]struct{ annotations, err string }{
		"nobody's":              {"", "belongs to no helm release"},
		"a release's":           {helmName + ": other, " + helmNamespace + ": apps", "belongs to the helm release other"},
		"some hook's":           {"helm.sh/hook: pre-install", "belongs to no helm release"},
		"of the release itself": {helmName + ": web, " + helmNamespace + ": apps", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := newSimulatedDrift(t)
			w.create(namespaces, "", "apiVersion: v1\nkind: Namespace\nmetadata: {name: apps}\n")
			w.create(configMaps, "apps", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: {"+test.annotations+"}}\ndata: {of: others}\n")
			_, err := w.Reconcile(t.Context(), target("web", "one"))
			if test.err == "" {
				if err != nil || data(w) != "one" {
					t.Error(data(w), err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), `ConfigMap "a" in namespace apps is there already and `+test.err) || data(w) != "others" {
				t.Error(data(w), err)
			}
		})
	}
	w, _ := newSimulatedDrift(t)
	for _, of := range []string{"one", "two"} {
		if _, err := w.Reconcile(t.Context(), target("web", of)); err != nil || data(w) != of {
			t.Fatal(data(w), err)
		}
	}
	if done, err := w.Uninstall(t.Context(), Ref{"web", "web", "apps"}, 0); !done || err != nil || data(w) != "two" {
		t.Fatal(done, err)
	}
	if _, err := w.Reconcile(t.Context(), target("web", "three")); err != nil || data(w) != "three" {
		t.Fatal(err)
	}
	_, err := w.Reconcile(t.Context(), target("other", "four"))
	if err == nil || !strings.Contains(err.Error(), "belongs to a hook of release apps/web") || data(w) != "three" {
		t.Error(data(w), err)
	}
}

// A Namespace of a hook that has objects is not made anew.
func TestANamespaceOfAHookStays(t *testing.T) {
	w, _ := newSimulatedDrift(t)
	const text = "apiVersion: v1\nkind: Namespace\nmetadata: {name: far, labels: {of: %s}, annotations: {helm.sh/hook: \"pre-install,pre-upgrade\"}}\n"
	uid := ""
	for _, of := range []string{"one", "two", "three"} {
		web := Target{Input: chart.Input{Module: "web", Name: "web", Namespace: "apps", Chart: chartOf("web", fmt.Sprintf(text, of))}}
		web.Chart.Digest, web.Installs = of, []builtins.Grant{{APIVersion: "v1", Kind: "Namespace"}}
		if _, err := w.Reconcile(t.Context(), web); err != nil {
			t.Fatal(err)
		}
		live, err := w.client.Resource(namespaces).Get(t.Context(), "far", metav1.GetOptions{})
		if err != nil || live.GetLabels()["of"] != of || uid != "" && uid != string(live.GetUID()) {
			t.Error(of, live, err)
		}
		if uid = string(live.GetUID()); of == "one" {
			w.create(configMaps, "far", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: theirs}\n")
		}
	}
}

// An upgrade leaves an object that another release has taken over, and says so before it writes anything.
func TestAnUpgradeRefusesWhatAnotherReleaseHas(t *testing.T) {
	w, f := newSimulatedDrift(t)
	web := Target{Input: chart.Input{Module: "web", Name: "web", Namespace: "apps", Chart: chartOf("web", nearMap)}}
	if _, err := w.Reconcile(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	w.patch(configMaps, "apps", "a", `{"metadata": {"annotations": {"`+helmName+`": "other"}}}`)
	web.Chart = chartOf("web", strings.Replace(nearMap, "metadata:", "data: {a: b}\nmetadata:", 1)+strings.Replace(nearMap, "name: a", "name: b", 1))
	web.Chart.Digest = "2"
	writes := len(f.writes)
	_, err := w.Reconcile(t.Context(), web)
	if err == nil || !strings.Contains(err.Error(), `ConfigMap "a" in namespace apps is there already and belongs to the helm release other`) {
		t.Error(err)
	}
	if w.there(configMaps, "apps", "b") {
		t.Errorf("something was written: %v", f.writes[writes:])
	}
}

func (w *driftWorld) patch(of schema.GroupVersionResource, ns, name, patch string) {
	w.t.Helper()
	if _, err := w.client.Resource(of).Namespace(ns).Patch(w.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "somebody"}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *driftWorld) remove(of schema.GroupVersionResource, ns, name string) {
	w.t.Helper()
	if err := w.client.Resource(of).Namespace(ns).Delete(w.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// A Namespace stays where nobody may look what is in it, and people are told which right is missing.
func TestANamespaceThatNobodyMayLookInto(t *testing.T) {
	w, f := newSimulatedDrift(t)
	whole := f.server
	f.server = answers(func(r *http.Request) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Path, "/namespaces/far/pods") {
			return &http.Response{StatusCode: http.StatusForbidden, Body: http.NoBody, Request: r}, nil
		}
		return whole.RoundTrip(r)
	})
	why, err := w.inhabited(t.Context(), w.target("").Ref(), "far", true)
	if err != nil || !strings.HasPrefix(why, "nobody may look whether it has objects of kind Pod: give the ServiceAccount of Starling the verb list") {
		t.Error(why, err)
	}
}
