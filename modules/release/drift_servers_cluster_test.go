//go:build e2e

package release

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/release/owned"
	simrest "github.com/starling-operator/starling/runtime/sim/rest"
	"github.com/starling-operator/starling/runtime/sim/store"
)

// make makes an object of a kind without a namespace, for the time of the test.
func (w *driftWorld) make(resource schema.GroupVersionResource, text string) {
	w.t.Helper()
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON([]byte(text)); err != nil {
		w.t.Fatal(err)
	}
	client := w.client.Resource(resource).Namespace(u.GetNamespace())
	if _, err := client.Create(w.t.Context(), u, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = client.Delete(context.Background(), u.GetName(), metav1.DeleteOptions{}) })
}

// sizeWebhook sets data.size of each ConfigMap that says so to 9, at each write.
func sizeWebhook(rw http.ResponseWriter, r *http.Request) {
	var review struct {
		Request struct {
			UID    string         `json:"uid"`
			Object map[string]any `json:"object"`
		} `json:"request"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	response := map[string]any{"uid": review.Request.UID, "allowed": true}
	if when, _, _ := unstructured.NestedString(review.Request.Object, "data", "when"); when != "" {
		response["patchType"] = "JSONPatch"
		response["patch"] = base64.StdEncoding.EncodeToString([]byte(`[{"op":"replace","path":"/data/size","value":"9"}]`))
	}
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
}

// The API server notes nothing of what a webhook changes on the way: the field stays Starling's when
// the write was somebody else's. A repair compares values, and a webhook that changes them again has
// the last word.
func TestDriftByWebhooks(t *testing.T) {
	t.Parallel()
	w, _ := newRealDrift(t)
	server := httptest.NewTLSServer(http.HandlerFunc(sizeWebhook))
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	w.make(schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"},
		fmt.Sprintf(`{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": {"name": %q}, "webhooks": [{
			"name": "size.example.com", "clientConfig": {"url": %q, "caBundle": %q}, "admissionReviewVersions": ["v1"], "sideEffects": "None",
			"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": %q}},
			"rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE", "UPDATE"]}]}]}`,
			w.apps, server.URL, base64.StdEncoding.EncodeToString(ca), w.apps))
	res, err := w.Reconcile(t.Context(), w.target("red"))
	if err != nil || res.Objects.Digest == "" {
		t.Fatalf("%+v, %v", res, err)
	}
	o := &others{w, configMaps}
	before := seenOf(t, res.Objects, "configmaps")
	want := func(size string, same bool) {
		t.Helper()
		u := o.get()
		now, _ := owned.Of(u.GetManagedFields(), FieldManager, nil)
		if got, _, _ := unstructured.NestedString(u.Object, "data", "size"); got != size || before.Owned.Same(now) != same {
			t.Errorf("size is %s, owned was %x and is %x", got, before.Owned, now)
		}
	}
	repair := func(written int) {
		t.Helper()
		out := w.repair(before.Key)
		if len(out.Written) != written {
			t.Errorf("%+v", out)
		}
		before = seenOf(t, out.Objects, "configmaps")
	}
	eventually(t, "the webhook is in force", func() bool {
		o.merge(`{"data":{"when":"now"}}`)
		size, _, _ := unstructured.NestedString(o.get().Object, "data", "size")
		return size == "9"
	})
	want("9", true) // not seen
	repair(0)       // the webhook answers the same
	want("9", true)
	o.merge(`{"data":{"color":"blue"}}`)
	want("9", false)
	repair(1)
	want("9", true)
	o.merge(`{"data":{"when":null}}`)
	want("9", true)
	repair(1)
	want("1", true)
}

// unmanaged answers from a simulated API server whose objects have no managed fields.
type unmanaged struct{ next *simrest.Server }

func (s unmanaged) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	rec := httptest.NewRecorder()
	s.next.ServeHTTP(rec, r)
	var body map[string]any
	if err := json.Unmarshal(rec.Body.Bytes(), &body); err != nil {
		rw.WriteHeader(rec.Code)
		_, _ = rw.Write(rec.Body.Bytes())
		return
	}
	if meta, is := body["metadata"].(map[string]any); is {
		delete(meta, "managedFields")
	}
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(rec.Code)
	_ = json.NewEncoder(rw).Encode(body)
}

// An aggregated API server that keeps no managed fields tells nothing of changes: a repair
// compares the values.
func TestDriftOfAggregatedAPIs(t *testing.T) {
	t.Parallel()
	w, f := newRealDrift(t)
	group := f.ns + ".aggregated.example.com"
	backend := store.New(store.Options{Builtins: store.NewBuiltins(), MakeNamespaces: true})
	server := httptest.NewUnstartedServer(unmanaged{simrest.New(simrest.Options{Store: backend})})
	// A controller of the cluster may watch the kind, as long as it is answered.
	server.Config.BaseContext = func(net.Listener) context.Context { return t.Context() }
	server.StartTLS()
	t.Cleanup(server.Close)
	crd := strings.NewReplacer("gadgets", "gears", "gadget", "gear", "Gadget", "Gear").Replace(replaceGroup(gadgetCRD, group))
	post, err := server.Client().Post(server.URL+"/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "application/json", strings.NewReader(crd))
	if err != nil || post.StatusCode != http.StatusCreated {
		t.Fatalf("%v, %v", post, err)
	}
	post.Body.Close()
	port := server.URL[strings.LastIndexByte(server.URL, ':')+1:]
	w.make(schema.GroupVersionResource{Version: "v1", Resource: "services"},
		fmt.Sprintf(`{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "aggregated", "namespace": %q}, "spec": {"type": "ExternalName", "externalName": "localhost"}}`, f.ns))
	w.make(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"},
		fmt.Sprintf(`{"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": %q}, "spec": {"group": %q, "version": "v1", "groupPriorityMinimum": 100,
			"versionPriority": 100, "insecureSkipTLSVerify": true, "service": {"namespace": %q, "name": "aggregated", "port": %s}}}`, "v1."+group, group, f.ns, port))
	eventually(t, "the kind is served", func() bool {
		resources, err := f.kube.Discovery().ServerResourcesForGroupVersion(group + "/v1")
		return err == nil && len(resources.APIResources) > 0
	})
	w.ResetDiscovery()
	target := Target{Input: chart.Input{Module: "web", Name: "web", Namespace: w.apps, Installs: []builtins.Grant{{APIVersion: group + "/v1", Kind: "Gear"}},
		Chart: chartOf("web", "apiVersion: "+group+"/v1\nkind: Gear\nmetadata: {name: web}\nspec: {count: 1}\n")}}
	res, err := w.Reconcile(t.Context(), target)
	if err != nil || len(res.Objects.Seen) != 1 || res.Objects.Seen[0].Owned != (owned.Digest{}) || res.Objects.Seen[0].Version == "" {
		t.Fatalf("%+v, %v", res, err)
	}
	gears := &others{w, schema.GroupVersionResource{Group: group, Version: "v1", Resource: "gears"}}
	for _, change := range []string{`{"spec":{"count":2}}`, `{"spec":{"more":2}}`} {
		gears.merge(change)
		out, err := w.Repair(t.Context(), RepairTarget{Target: target, Only: []Key{res.Objects.Seen[0].Key}})
		if err != nil || len(out.Written) != 1 && strings.Contains(change, "count") || len(out.Objects.Seen) != 1 || out.Objects.Seen[0].Version == res.Objects.Seen[0].Version {
			t.Errorf("%+v, %v", out, err)
		}
		if count, _, _ := unstructured.NestedInt64(gears.get().Object, "spec", "count"); count != 1 {
			t.Errorf("count is %d", count)
		}
	}
}
