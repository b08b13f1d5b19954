package release

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/release/owned"
	"github.com/starling-operator/starling/runtime/effect"
)

func replaceGroup(text, group string) string {
	return strings.NewReplacer("GROUP", group, "SCHEMA", gadgetSchema).Replace(text)
}

// newSimulatedDrift is a driftWorld without controllers.
func newSimulatedDrift(t *testing.T) (*driftWorld, *manyFixture) {
	f := newManyFixture(t)
	content := rest.ContentConfig{ContentType: "application/json", AcceptContentTypes: "application/json"}
	client, err := dynamic.NewForConfig(&rest.Config{Host: "http://sim", Transport: f, ContentConfig: content, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	w := &driftWorld{Manager: f.Manager, t: t, client: client, instance: "ops.starling", apps: "apps", group: "drift.example.com"}
	w.serve()
	return w, f
}

// serve makes the kind of custom resources.
func (w *driftWorld) serve() {
	w.t.Helper()
	crd := &unstructured.Unstructured{}
	if err := crd.UnmarshalJSON([]byte(replaceGroup(gadgetCRD, w.group))); err != nil {
		w.t.Fatal(err)
	}
	resource := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	if _, err := w.client.Resource(resource).Create(w.t.Context(), crd, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.ResetDiscovery()
}

func TestDriftCasesSimulated(t *testing.T) {
	w, _ := newSimulatedDrift(t)
	testDriftCases(t, w)
}

func TestDriftOverWritesSimulated(t *testing.T) {
	w, _ := newSimulatedDrift(t)
	testDriftOverWrites(t, w)
}

func TestDriftLeftSimulated(t *testing.T) {
	w, _ := newSimulatedDrift(t)
	testDriftLeft(t, w)
}

// The objects of a release are known after each write, and after a start without a request.
func TestObjectsOfReleasesAreKnown(t *testing.T) {
	w, f := newSimulatedDrift(t)
	target := w.target("red")
	reconcile := func(action string) Result {
		t.Helper()
		res, err := w.Reconcile(t.Context(), target)
		if err != nil || res.Action != action {
			t.Fatalf("%+v, %v", res, err)
		}
		return res
	}
	first := reconcile(ActionInstalled)
	if len(first.Objects.Seen) != 3 || len(first.Objects.Kinds) != 3 || first.Objects.Of == "" {
		t.Errorf("installed: %+v", first.Objects)
	}
	for _, s := range first.Objects.Seen {
		if s.Version == "" || s.Owned == ([16]byte{}) {
			t.Errorf("seen: %+v", s)
		}
	}
	w.Manager = f.manager()
	again := reconcile(ActionUnchanged)
	if again.Objects.Digest != first.Objects.Digest || again.Objects.Of != first.Objects.Of || again.Objects.Seen != nil || len(again.Objects.Kinds) != 3 {
		t.Errorf("unchanged: %+v", again.Objects)
	}
	target.Values = map[string]any{"color": "blue"}
	second := reconcile(ActionUpgraded)
	if second.Objects.Of == first.Objects.Of || len(second.Objects.Seen) != 3 {
		t.Errorf("upgraded: %+v", second.Objects)
	}
	if last, err := w.Last(t.Context(), w.apps, "web"); err != nil || strings.Contains(last.Manifest, effect.ReleasedByLabel) {
		t.Errorf("the stored manifest has the label, or %v", err)
	}
	target.IgnoreDrift = true
	if o := reconcile(ActionUnchanged).Objects; o.Of != "" {
		t.Errorf("not watched: %+v", o)
	}
}

// Objects that an earlier version of Starling has released get the label, without a revision.
func TestRepairOfAllAddsTheLabel(t *testing.T) {
	w, f := newSimulatedDrift(t)
	target := w.target("red")
	target.IgnoreDrift = true
	if _, err := w.Reconcile(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	o := &others{w, configMaps}
	if labels := o.get().GetLabels(); labels[effect.ReleasedByLabel] != "" {
		t.Errorf("labels are %v", labels)
	}
	w.Manager = f.manager()
	target.IgnoreDrift = false
	res, err := w.Reconcile(t.Context(), target)
	if err != nil || res.Action != ActionUnchanged || res.Objects.Digest != "" || res.Objects.Of == "" {
		t.Fatalf("%+v, %v", res, err)
	}
	out := w.repair()
	if len(out.Written) > 0 || len(out.Objects.Seen) != 3 || out.Objects.Digest == "" || o.get().GetLabels()[effect.ReleasedByLabel] != "ops.starling" {
		t.Errorf("%+v, labels are %v", out, o.get().GetLabels())
	}
	w.Manager = f.manager()
	if res, err = w.Reconcile(t.Context(), target); err != nil || res.Objects.Digest != out.Objects.Digest || res.Revision != 1 {
		t.Errorf("%+v, %v", res, err)
	}
}

// An upgrade to values that somebody else has written already owns them: what changes afterwards is seen.
func TestUpgradeOwnsWhatOthersHaveWritten(t *testing.T) {
	w, _ := newSimulatedDrift(t)
	if _, err := w.Reconcile(t.Context(), w.target("red")); err != nil {
		t.Fatal(err)
	}
	o := &others{w, configMaps}
	o.merge(`{"data":{"color":"blue"}}`)
	res, err := w.Reconcile(t.Context(), w.target("blue"))
	if err != nil || res.Action != ActionUpgraded || res.Objects.Digest == "" {
		t.Fatalf("%+v, %v", res, err)
	}
	before := seenOf(t, res.Objects, "configmaps")
	o.merge(`{"data":{"color":"green"}}`)
	if now, _ := owned.Of(o.get().GetManagedFields(), FieldManager, nil); before.Owned.Same(now) {
		t.Error("a change is not seen")
	}
}

func TestRepairReports(t *testing.T) {
	w, _ := newSimulatedDrift(t)
	target := w.target("red")
	if _, err := w.Reconcile(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	report := func(missing bool) {
		t.Helper()
		out, err := w.Repair(t.Context(), RepairTarget{Target: target, Report: true})
		if err != nil || len(out.Written) != 1 || out.Written[0].Kind != "ConfigMap" || seenOf(t, out.Objects, "configmaps").Missing != missing {
			t.Errorf("%+v, %v", out, err)
		}
	}
	o := &others{w, configMaps}
	o.merge(`{"data":{"color":"blue"}}`)
	report(false)
	if color, _, _ := unstructured.NestedString(o.get().Object, "data", "color"); color != "blue" {
		t.Errorf("color is %s", color)
	}
	if err := o.client().Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	report(true)
}

func TestRepairOfNothing(t *testing.T) {
	w, _ := newSimulatedDrift(t)
	target := w.target("red")
	repair := func() Repair {
		t.Helper()
		out, err := w.Repair(t.Context(), RepairTarget{Target: target})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if out := repair(); !out.Lost {
		t.Errorf("without a release: %+v", out)
	}
	if _, err := w.Reconcile(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Repair(t.Context(), RepairTarget{Target: named(target.Ref())}); err == nil || !strings.Contains(err.Error(), "module(installs") {
		t.Errorf("an object that the module does not name: %v", err)
	}
	o := &others{w, configMaps}
	o.merge(`{"metadata":{"annotations":{"meta.helm.sh/release-name":"other"}}}`)
	if _, err := w.Repair(t.Context(), RepairTarget{Target: target}); err == nil || !strings.Contains(err.Error(), "ConfigMap web in namespace apps: it belongs to the helm release other") {
		t.Errorf("an object of another release: %v", err)
	}
	o.merge(`{"metadata":{"annotations":{"meta.helm.sh/release-name":"web"},"finalizers":["example.com/wait"]}}`)
	if err := o.client().Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if out := repair(); out.Waits != "ConfigMap web in namespace apps is being deleted" || out.Objects.Digest != "" {
		t.Errorf("%+v", out)
	}
	o.patch("somebody", types.MergePatchType, `{"metadata":{"finalizers":null}}`)
	if out := repair(); len(out.Written) != 1 || out.Waits != "" {
		t.Errorf("%+v", out)
	}
}

// refusing answers writes to one Secret with an error that quotes a text.
type refusing struct {
	http.RoundTripper
	text string
}

func (r refusing) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodPatch || !strings.HasSuffix(req.URL.Path, "/secrets/web") {
		return r.RoundTripper.RoundTrip(req)
	}
	status := apierrors.NewBadRequest(r.text).ErrStatus
	body, err := json.Marshal(&status)
	if err != nil {
		return nil, err
	}
	header := http.Header{"Content-Type": {"application/json"}}
	return &http.Response{StatusCode: http.StatusBadRequest, Header: header, Body: io.NopCloser(bytes.NewReader(body)), Request: req}, nil
}

// Errors show no secret, nor the part of one at which they are cut.
func TestErrorsOfRepairsShowNoSecret(t *testing.T) {
	w, f := newSimulatedDrift(t)
	target := w.target("red")
	target.Chart = chartOf("web", "apiVersion: v1\nkind: Secret\nmetadata: {name: web}\nstringData: {k: hunter2-and-more}\n")
	if _, err := w.Reconcile(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	(&others{w, schema.GroupVersionResource{Version: "v1", Resource: "secrets"}}).merge(`{"data":{"k":"eA=="}}`)
	server := f.server
	for before := range 20 {
		f.server = refusing{server, strings.Repeat("x", chart.MaxError-before) + "hunter2-and-more and others-know-this"}
		of := named(target.Ref())
		of.Secrets = func() []string { return []string{"others-know-this"} }
		_, err := w.Repair(t.Context(), RepairTarget{Target: of})
		if err == nil || strings.Contains(err.Error(), "hunter") || strings.Contains(err.Error(), "others-know") || !strings.Contains(err.Error(), "Secret web") {
			t.Errorf("%v", err)
		}
	}
}

// The stringData of a Secret is compared as the data that it is, and nothing is written for it.
func TestRepairOfSecrets(t *testing.T) {
	w, f := newSimulatedDrift(t)
	target := w.target("red")
	target.Chart = chartOf("web", "apiVersion: v1\nkind: Secret\nmetadata: {name: web}\ndata: {a: eA==, k: eA==}\nstringData: {k: hunter2}\n")
	if _, err := w.Reconcile(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	server := f.server
	f.server = refusing{server, "written"}
	w.repair()
	f.server = server
	o := &others{w, schema.GroupVersionResource{Version: "v1", Resource: "secrets"}}
	o.merge(`{"data":{"k":"eA=="}}`)
	o.merge(`{"data":{"k":"aHVudGVyMg=="}}`)
	if out := w.repair(); len(out.Written) > 0 {
		t.Errorf("%+v", out)
	}
	before := o.get().GetManagedFields()
	o.merge(`{"data":{"k":"eA=="}}`)
	was, _ := owned.Of(before, FieldManager, nil)
	if now, _ := owned.Of(o.get().GetManagedFields(), FieldManager, nil); was.Same(now) {
		t.Error("a change is not seen")
	}
	if out := w.repair(); len(out.Written) != 1 {
		t.Errorf("%+v", out)
	}
	if k, _, _ := unstructured.NestedString(o.get().Object, "data", "k"); k != "aHVudGVyMg==" {
		t.Errorf("k is %s", k)
	}
}

func TestRepairOfADeletedKind(t *testing.T) {
	w, f := newSimulatedDrift(t)
	testDeletedKind(t, w, f.manager, func() { f.store.Settle() })
}

// nobodyWaits is the Await of a cluster in which no object gets ready and no Job ends.
func nobodyWaits(context.Context, error, time.Duration, func() (bool, error)) error { return nil }

// Hooks of Helm get no label, and Jobs that may have run are not made anew.
func TestRepairLeavesWhatRunsOnce(t *testing.T) {
	w, _ := newSimulatedDrift(t)
	w.o.Await = nobodyWaits
	target := w.target("red")
	pod := `spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}`
	target.Chart = chartOf("web", driftChart,
		"apiVersion: batch/v1\nkind: Job\nmetadata: {name: hook, annotations: {helm.sh/hook: pre-install}}\n"+pod+"}\n",
		"apiVersion: batch/v1\nkind: Job\nmetadata: {name: job}\n"+pod+"}\n",
		"apiVersion: batch/v1\nkind: Job\nmetadata: {name: brief}\n"+pod+", ttlSecondsAfterFinished: 5}\n")
	res, err := w.Reconcile(t.Context(), target)
	if err != nil || len(res.Objects.Seen) != 4 {
		t.Fatalf("%+v, %v", res, err)
	}
	jobs := w.client.Resource(schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}).Namespace(w.apps)
	hook, err := jobs.Get(t.Context(), "hook", metav1.GetOptions{})
	if err != nil || hook.GetLabels()[effect.ReleasedByLabel] != "" {
		t.Errorf("the hook has labels %v, %v", hook.GetLabels(), err)
	}
	for _, name := range []string{"job", "brief"} {
		if err := jobs.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if out := w.repair(); len(out.Written) > 0 || len(out.Objects.Seen) != 2 {
		t.Errorf("of all: %+v", out)
	}
	key := func(name string) Key { return Key{APIVersion: "batch/v1", Kind: "Job", Namespace: w.apps, Name: name} }
	if out := w.repair(key("job"), key("brief")); len(out.Written) != 1 || out.Written[0] != key("job") {
		t.Errorf("of those that had not finished: %+v", out)
	}
}

// The last text of a document keeps the end of its line, as in the object that Helm has made.
func TestRepairKeepsTheLastLine(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	m := &Manager{o: Options{Mapper: resettable{mapper}}}
	const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata:\n  text: |\n    one\n"
	list, _, err := m.storedObjects(Ref{Name: "web", Namespace: "apps"}, "---\n# Source: web/templates/a.yaml\n"+configMap+"---\n# Source: web/templates/b.yaml\n"+configMap)
	if err != nil || len(list) != 2 {
		t.Fatalf("%d objects: %v", len(list), err)
	}
	for _, s := range list {
		if text, _, _ := unstructured.NestedString(s.obj.Object, "data", "text"); text != "one\n" {
			t.Errorf("its text is %q", text)
		}
	}
}

// named is a target that says which release is meant, and no more.
func named(ref Ref) Target {
	return Target{Input: chart.Input{Module: ref.Module, Name: ref.Name, Namespace: ref.Namespace}}
}
