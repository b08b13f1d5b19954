package release

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/release/owned"
)

// An object whose version is served no more is put right, and made anew, in another version that has its fields. No
// reconcile is asked for.
func TestARepairInAnotherVersion(t *testing.T) {
	w, _ := newSimulatedDrift(t)
	v2 := schema.GroupVersionResource{Group: w.group, Version: "v2", Resource: "gadgets"}
	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	web := Target{Input: chart.Input{Module: "web", Name: "web", Namespace: "apps", Installs: []builtins.Grant{{APIVersion: w.group + "/v1", Kind: "Gadget"}, {APIVersion: w.group + "/v2", Kind: "Gadget"}}}}
	web.Chart = chartOf("web", "apiVersion: "+w.group+"/v1\nkind: Gadget\nmetadata: {name: a}\nspec: {count: 1}\n---\n"+nearMap)
	if _, err := w.Reconcile(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	spec := `{"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"count": {"type": "integer"}}}}}}`
	define := func(v2 string) {
		w.patch(crds, "", "gadgets."+w.group, `{"spec": {"versions": [{"name": "v1", "served": false, "storage": false, "schema": `+spec+`}, {"name": "v2", "served": true, "storage": true, "schema": `+v2+`}]}}`)
	}
	define(spec)
	count := func() int64 {
		t.Helper()
		live, err := w.client.Resource(v2).Namespace("apps").Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		n, _, _ := unstructured.NestedInt64(live.Object, "spec", "count")
		return n
	}
	repair := func(gone ...Key) Repair {
		t.Helper()
		out, err := w.Repair(t.Context(), RepairTarget{Target: web, Only: gone, Gone: gone})
		if err != nil || out.Lost {
			t.Errorf("lost: %t, %v", out.Lost, err)
		}
		return out
	}
	uid := w.uid(v2, "apps", "a")
	w.patch(v2, "apps", "a", `{"spec": {"count": 2}}`)
	if out := repair(); len(out.Written) != 1 || out.Written[0].APIVersion != w.group+"/v2" || out.Objects.Digest == "" || count() != 1 || w.uid(v2, "apps", "a") != uid {
		t.Errorf("%+v, count %d", out, count())
	}
	if out := repair(); len(out.Written) > 0 {
		t.Errorf("again: %+v", out)
	}
	w.remove(v2, "apps", "a")
	repair(Key{APIVersion: w.group + "/v1", Kind: "Gadget", Namespace: "apps", Name: "a"})
	if count() != 1 {
		t.Error("it is made in another way")
	}
	define(strings.ReplaceAll(spec, "count", "size"))
	w.patch(v2, "apps", "a", `{"spec": {"size": 2}}`)
	out, err := w.Repair(t.Context(), RepairTarget{Target: web})
	if err == nil || !strings.Contains(err.Error(), "Gadget a in namespace apps") || !strings.Contains(err.Error(), "the version of the chart is served no more: write apiVersion: "+w.group+"/v2") || out.Lost || len(out.Failed) != 1 {
		t.Errorf("%+v, %v", out, err)
	}
}

// A caBundle that somebody fills in where the chart has none is left, and told once, with who has written it.
func TestWhatIsLeftIsToldOnce(t *testing.T) {
	w, _ := newSimulatedDrift(t)
	hooks := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}
	key := Key{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration", Name: "gate"}
	web := Target{Input: chart.Input{Module: "web", Name: "web", Namespace: "apps", Installs: []builtins.Grant{{APIVersion: key.APIVersion, Kind: key.Kind}}}}
	hook := func(bundle string) string {
		return `[{"name": "a.example.org", "admissionReviewVersions": ["v1"], "sideEffects": "None", "clientConfig": {"url": "https://a.example.org/", "caBundle": "` + bundle + `"}}]`
	}
	web.Chart = chartOf("web", "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: gate}\nwebhooks: "+hook("dGV4dA==")+"\n")
	if _, err := w.Reconcile(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	const path = "webhooks[name=a.example.org].clientConfig.caBundle"
	for i, bundle := range []string{"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1BPT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=", "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1RPT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="} {
		w.patch(hooks, "", "gate", `{"webhooks": `+hook(bundle)+`}`)
		out, err := w.Repair(t.Context(), RepairTarget{Target: web, Only: []Key{key}})
		if left := out.Left[key]; err != nil || len(out.Written) > 0 || len(left) != 1-i || i == 0 && (left[0].Path.String() != path || left[0].By != "somebody") {
			t.Errorf("%d: %+v, %v", i, out, err)
		}
	}
	ignore, err := owned.ParseIgnore("ValidatingWebhookConfiguration/gate " + path)
	if err != nil {
		t.Fatal(err)
	}
	w.Manager.told.Clear()
	web.Ignore = []owned.Ignore{ignore}
	if out, err := w.Repair(t.Context(), RepairTarget{Target: web}); err != nil || len(out.Left)+len(out.Written) > 0 {
		t.Errorf("%+v, %v", out, err)
	}
}

// mutating changes what is written, as a webhook of the API server does.
type mutating struct{ next http.RoundTripper }

func (m mutating) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil && strings.Contains(r.URL.Path, "/configmaps") {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		text = bytes.ReplaceAll(text, []byte(`"size":"1"`), []byte(`"size":"9"`))
		r = r.Clone(r.Context())
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	}
	return m.next.RoundTrip(r)
}

// A field that a policy of the cluster changes as it is written is told with the line that leaves it so, and nobody
// fights for it.
func TestAPolicyThatChangesWhatIsWritten(t *testing.T) {
	w, f := newSimulatedDrift(t)
	f.server = mutating{f.server}
	web := Target{Input: chart.Input{Module: "web", Name: "web", Namespace: "apps", Chart: chartOf("web", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {size: \"1\", other: x}\n")}}
	const want = `ConfigMap a in namespace apps: data.size is not as the chart has it: a policy or webhook of the cluster changes what is written; to leave it so: module(ignore = ["ConfigMap/a data.size"])`
	res, err := w.Reconcile(t.Context(), web)
	if err != nil || len(res.Unknown) != 1 || res.Unknown[0] != want {
		t.Errorf("%q, %v", res.Unknown, err)
	}
	for range 2 {
		if out, err := w.Repair(t.Context(), RepairTarget{Target: named(web.Ref())}); err != nil || len(out.Written) > 0 {
			t.Errorf("%+v, %v", out, err)
		}
	}
	ignore, err := owned.ParseIgnore("ConfigMap/a data.size")
	if err != nil {
		t.Fatal(err)
	}
	web.Ignore, web.Chart = []owned.Ignore{ignore}, with(web.Chart, "templates/b.yaml", strings.Replace(nearMap, "name: a", "name: b", 1))
	if res, err := w.Reconcile(t.Context(), web); err != nil || len(res.Unknown) > 0 {
		t.Errorf("%q, %v", res.Unknown, err)
	}
}
