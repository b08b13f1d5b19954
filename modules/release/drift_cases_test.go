package release

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/release/owned"
	"github.com/starling-operator/starling/runtime/effect"
)

// driftWorld is a cluster, real or simulated, in which others change what a release holds.
type driftWorld struct {
	*Manager
	t      *testing.T
	client dynamic.Interface
	// instance is the value of the label on objects; apps is the namespace of the release.
	instance, apps string
	// group is that of custom resources, which the world serves.
	group string
}

const driftChart = `apiVersion: v1
kind: ConfigMap
metadata: {name: web, labels: {app: web}}
data: {color: "{{ .Values.color }}"{{ if not .Values.bare }}, size: "1"{{ end }}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {there-is-no: such-node}
      containers: [{name: web, image: "web:1", env: [{name: A, value: "1"}, {name: B, value: "1"}]}]
`

const gadgetTemplate = `---
apiVersion: GROUP/{{ .Values.version | default "v1" }}
kind: Gadget
metadata: {name: web}
spec: {count: 1, free: {a: 1, list: [1, 2]}}
`

// gadgetCRD is a kind, in two versions, of which some fields are known and others kept as they come.
const gadgetCRD = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "gadgets.GROUP"},
"spec": {"group": "GROUP", "names": {"kind": "Gadget", "plural": "gadgets", "singular": "gadget", "listKind": "GadgetList"}, "scope": "Namespaced",
"versions": [{"name": "v1", "served": true, "storage": true, "schema": SCHEMA}, {"name": "v2", "served": true, "storage": false, "schema": SCHEMA}]}}`

const gadgetSchema = `{"openAPIV3Schema": {"type": "object", "properties": {
"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"count": {"type": "integer"}}}}}}`

var (
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// driftCase is somebody else's change of an object, and how drift sees it.
type driftCase struct {
	name string
	// of is the resource of the object, which is named web.
	of schema.GroupVersionResource
	do func(o *others)
	// changed: the digest of what Starling owns differs; cleared: nobody knows what it owns.
	changed, cleared, gone bool
	// path is a field of the object, want its value after the repair.
	path []string
	want any
}

// others act on one object.
type others struct {
	w  *driftWorld
	of schema.GroupVersionResource
}

func (o *others) client() dynamic.ResourceInterface {
	return o.w.client.Resource(o.of).Namespace(o.w.apps)
}

func (o *others) get() *unstructured.Unstructured {
	o.w.t.Helper()
	u, err := o.client().Get(o.w.t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		o.w.t.Fatal(err)
	}
	return u
}

func (o *others) patch(manager string, kind types.PatchType, body string, sub ...string) {
	o.w.t.Helper()
	if _, err := o.client().Patch(o.w.t.Context(), "web", kind, []byte(body), metav1.PatchOptions{FieldManager: manager}, sub...); err != nil {
		o.w.t.Fatal(err)
	}
}

func (o *others) merge(body string, sub ...string) {
	o.w.t.Helper()
	o.patch("somebody", types.MergePatchType, body, sub...)
}

// apply is server-side apply of fields of the object.
func (o *others) apply(body string, force bool) error {
	o.w.t.Helper()
	u := o.get()
	var obj map[string]any
	if err := json.Unmarshal([]byte(body), &obj); err != nil {
		o.w.t.Fatal(err)
	}
	obj["apiVersion"], obj["kind"] = u.GetAPIVersion(), u.GetKind()
	data, err := json.Marshal(obj)
	if err != nil {
		o.w.t.Fatal(err)
	}
	_, err = o.client().Patch(o.w.t.Context(), "web", types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: "somebody", Force: &force})
	return err
}

// replace sends the whole object again.
func (o *others) replace(change func(*unstructured.Unstructured)) {
	o.w.t.Helper()
	for {
		u := o.get()
		change(u)
		_, err := o.client().Update(o.w.t.Context(), u, metav1.UpdateOptions{FieldManager: "somebody"})
		if apierrors.IsConflict(err) { // a controller was faster
			continue
		}
		if err != nil {
			o.w.t.Fatal(err)
		}
		return
	}
}

func set(v any, path ...string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(u.Object, v, path...); err != nil {
			panic(err)
		}
	}
}

func driftCases(group string) []driftCase {
	gadgets := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "gadgets"}
	second := gadgets.GroupResource().WithVersion("v2")
	color, replicas := []string{"data", "color"}, []string{"spec", "replicas"}
	return []driftCase{
		{name: "a value is patched", of: configMaps, changed: true, path: color, want: "red",
			do: func(o *others) { o.merge(`{"data":{"color":"blue"}}`) }},
		{name: "an image is patched", of: deployments, changed: true,
			do: func(o *others) {
				o.patch("somebody", types.StrategicMergePatchType, `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:2"}]}}}}`)
			}},
		{name: "a value is removed", of: configMaps, changed: true, path: color, want: "red",
			do: func(o *others) { o.merge(`{"data":{"color":null}}`) }},
		{name: "an element of a list is removed", of: deployments, changed: true,
			do: func(o *others) {
				o.patch("somebody", types.JSONPatchType, `[{"op":"remove","path":"/spec/template/spec/containers/0/env/0"}]`)
			}},
		{name: "a label is removed", of: configMaps, changed: true, path: []string{"metadata", "labels", "app"}, want: "web",
			do: func(o *others) { o.merge(`{"metadata":{"labels":{"app":null}}}`) }},
		{name: "Starling's label is removed", of: configMaps, changed: true,
			do: func(o *others) { o.merge(`{"metadata":{"labels":{"` + effect.ReleasedByLabel + `":null}}}`) }},
		{name: "a value is patched, and given back", of: configMaps, changed: true, path: color, want: "red",
			do: func(o *others) { o.merge(`{"data":{"color":"blue"}}`); o.merge(`{"data":{"color":"red"}}`) }},
		{name: "the same value is patched", of: configMaps,
			do: func(o *others) { o.merge(`{"data":{"color":"red"}}`) }},
		{name: "something is added", of: configMaps, path: []string{"data", "more"}, want: "1",
			do: func(o *others) { o.merge(`{"data":{"more":"1"},"metadata":{"annotations":{"a":"b"}}}`) }},
		{name: "a container is added", of: deployments,
			do: func(o *others) {
				o.patch("somebody", types.StrategicMergePatchType, `{"spec":{"template":{"spec":{"containers":[{"name":"more","image":"more:1"}]}}}}`)
			}},
		{name: "it is replaced with another value", of: configMaps, changed: true, path: color, want: "red",
			do: func(o *others) { o.replace(set("blue", "data", "color")) }},
		{name: "it is replaced with the same values", of: configMaps,
			do: func(o *others) { o.replace(func(*unstructured.Unstructured) {}) }},
		{name: "it is scaled", of: deployments, changed: true, path: replicas, want: int64(2),
			do: func(o *others) { o.merge(`{"spec":{"replicas":5}}`, "scale") }},
		{name: "an autoscaler scales it", of: deployments, path: replicas, want: int64(5),
			do: func(o *others) {
				o.patch("kube-controller-manager", types.MergePatchType, `{"spec":{"replicas":5}}`, "scale")
			}},
		{name: "an autoscaler in another program scales it", of: deployments, path: replicas, want: int64(5),
			do: func(o *others) {
				o.patch("k3s", types.MergePatchType, `{"status":{"collisionCount":1}}`, "status")
				o.patch("k3s", types.MergePatchType, `{"spec":{"replicas":5}}`, "scale")
			}},
		{name: "an autoscaler scales it, and an image is patched", of: deployments, changed: true, path: replicas, want: int64(5),
			do: func(o *others) {
				o.patch("kube-controller-manager", types.MergePatchType, `{"spec":{"replicas":5}}`, "scale")
				o.patch("somebody", types.StrategicMergePatchType, `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:2"}]}}}}`)
			}},
		{name: "its status is written", of: deployments,
			do: func(o *others) { o.merge(`{"status":{"observedGeneration":1}}`, "status") }},
		{name: "another value is applied, and refused", of: configMaps, path: color, want: "red",
			do: func(o *others) {
				if err := o.apply(`{"metadata":{"name":"web"},"data":{"color":"blue"}}`, false); !apierrors.IsConflict(err) {
					o.w.t.Errorf("applied: %v", err)
				}
			}},
		{name: "another value is applied with force", of: configMaps, changed: true, path: color, want: "red",
			do: func(o *others) {
				if err := o.apply(`{"metadata":{"name":"web"},"data":{"color":"blue"}}`, true); err != nil {
					o.w.t.Fatal(err)
				}
			}},
		{name: "the same value is applied", of: configMaps, path: color, want: "red",
			do: func(o *others) {
				if err := o.apply(`{"metadata":{"name":"web"},"data":{"color":"red"}}`, false); err != nil {
					o.w.t.Fatal(err)
				}
			}},
		{name: "an empty list of managed fields is sent", of: configMaps, cleared: true, path: color, want: "red",
			do: func(o *others) { o.merge(`{"metadata":{"managedFields":[]}}`) }},
		{name: "managed fields are cleared", of: configMaps, cleared: true, path: color, want: "red",
			do: func(o *others) { o.merge(`{"metadata":{"managedFields":[{}]}}`) }},
		{name: "managed fields are cleared, and a value is patched", of: configMaps, cleared: true, path: color, want: "red",
			do: func(o *others) {
				o.merge(`{"metadata":{"managedFields":[{}]}}`)
				o.merge(`{"data":{"color":"blue"}}`)
			}},
		{name: "it is deleted", of: configMaps, gone: true, path: color, want: "red",
			do: func(o *others) {
				if err := o.client().Delete(o.w.t.Context(), "web", metav1.DeleteOptions{}); err != nil {
					o.w.t.Fatal(err)
				}
			}},
		{name: "a known field of a custom resource is patched", of: gadgets, changed: true, path: []string{"spec", "count"}, want: int64(1),
			do: func(o *others) { o.merge(`{"spec":{"count":2}}`) }},
		{name: "a free field of a custom resource is patched", of: gadgets, changed: true, path: []string{"spec", "free", "a"}, want: int64(1),
			do: func(o *others) { o.merge(`{"spec":{"free":{"a":2}}}`) }},
		{name: "a list of a custom resource is patched", of: gadgets, changed: true, path: []string{"spec", "free", "list"}, want: []any{int64(1), int64(2)},
			do: func(o *others) { o.merge(`{"spec":{"free":{"list":[1,2,3]}}}`) }},
		{name: "a field of a custom resource is removed", of: gadgets, changed: true, path: []string{"spec", "free", "a"}, want: int64(1),
			do: func(o *others) { o.merge(`{"spec":{"free":{"a":null}}}`) }},
		{name: "a custom resource is patched by another version", of: second, changed: true, path: []string{"spec", "count"}, want: int64(1),
			do: func(o *others) { o.merge(`{"spec":{"count":2}}`) }},
		{name: "the same value is patched by another version", of: second,
			do: func(o *others) { o.merge(`{"spec":{"count":1}}`) }},
		{name: "a field is added to a custom resource", of: gadgets, path: []string{"spec", "free", "b"}, want: int64(2),
			do: func(o *others) { o.merge(`{"spec":{"free":{"b":2}}}`) }},
	}
}

// testDriftCases has others change a release in a namespace of a world, case by case. Starling must
// own something else where one of its values differs, and a repair must give that back, with no revision.
func testDriftCases(t *testing.T, all *driftWorld) {
	for i, c := range driftCases(all.group) {
		t.Run(c.name, func(t *testing.T) {
			w := *all
			w.t, w.apps = t, fmt.Sprintf("%s-%d", all.apps, i)
			namespaces := w.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
			t.Cleanup(func() { _ = namespaces.Delete(context.Background(), w.apps, metav1.DeleteOptions{}) })
			res, err := w.Reconcile(t.Context(), w.target("red"))
			if err != nil || res.Objects.Digest == "" || res.Objects.Digest != DigestOf(res.Objects.Seen, nil) {
				t.Fatalf("%+v, %v", res, err)
			}
			before := seenOf(t, res.Objects, c.of.Resource)
			o := &others{&w, c.of}
			c.do(o)
			u, err := o.client().Get(t.Context(), "web", metav1.GetOptions{})
			if c.gone != apierrors.IsNotFound(err) || err != nil && !c.gone {
				t.Fatal(err)
			}
			if !c.gone {
				now, known := owned.Of(u.GetManagedFields(), FieldManager, nil)
				if known == c.cleared || before.Owned.Same(now) == (c.changed || c.cleared) {
					t.Errorf("owned was %x and is %x, %v", before.Owned, now, known)
				}
			}
			w.repaired(c, before.Key)
			if !c.gone {
				before.Owned, _ = owned.Of(o.get().GetManagedFields(), FieldManager, nil)
				w.seesMore(o, before)
			}
			if again := w.repair(before.Key); len(again.Written) > 0 {
				t.Errorf("once more %v were written", again.Written)
			}
			if last, err := w.Last(context.WithoutCancel(t.Context()), w.apps, "web"); err != nil || last.Version != 1 {
				t.Errorf("the release is %+v, %v", last, err)
			}
		})
	}
}

func (w *driftWorld) target(color string) Target {
	return Target{
		Input: chart.Input{
			Module: "web", Name: "web", Namespace: w.apps, Values: map[string]any{"color": color},
			Chart:    chartOf("web", driftChart, replaceGroup(gadgetTemplate, w.group)),
			Installs: []builtins.Grant{{APIVersion: w.group + "/v1", Kind: "Gadget"}, {APIVersion: w.group + "/v2", Kind: "Gadget"}},
		},
	}
}

func (w *driftWorld) repair(only ...Key) Repair {
	w.t.Helper()
	t := w.target("")
	out, err := w.Repair(w.t.Context(), RepairTarget{Target: t, Only: only})
	if err != nil || out.Lost || out.Waits != "" {
		w.t.Fatalf("%+v, %v", out, err)
	}
	return out
}

// repaired repairs an object and looks whether it is as it should be.
func (w *driftWorld) repaired(c driftCase, key Key) {
	w.t.Helper()
	out := w.repair(key)
	u := (&others{w, c.of}).get()
	if c.path != nil {
		v, _, err := unstructured.NestedFieldCopy(u.Object, c.path...)
		if err != nil || fmt.Sprint(v) != fmt.Sprint(c.want) {
			w.t.Errorf("%v is %v, %v, want %v", c.path, v, err, c.want)
		}
	}
	if u.GetLabels()[effect.ReleasedByLabel] != w.instance {
		w.t.Errorf("labels are %v", u.GetLabels())
	}
	now, known := owned.Of(u.GetManagedFields(), FieldManager, nil)
	if len(out.Objects.Seen) != 1 || !known || !out.Objects.Seen[0].Owned.Same(now) {
		w.t.Errorf("%+v is left, owned is %x", out.Objects, now)
	}
	unharmed := !c.changed && !c.gone && !c.cleared
	if unharmed && len(out.Written) > 0 {
		w.t.Errorf("%v were written", out.Written)
	}
}

// seesMore has somebody change each object once more: a repair must have left it owned.
func (w *driftWorld) seesMore(o *others, before Object) {
	w.t.Helper()
	body := map[string]string{"ConfigMap": `{"data":{"color":"black"}}`, "Deployment": `{"spec":{"template":{"spec":{"nodeSelector":{"there-is-no":"other-node"}}}}}`, "Gadget": `{"spec":{"count":7,"free":{"a":7}}}`}[before.Kind]
	o.merge(body)
	if now, _ := owned.Of(o.get().GetManagedFields(), FieldManager, nil); before.Owned.Same(now) {
		w.t.Errorf("after %s nothing is seen", body)
	}
	w.repair(before.Key)
}

// seenOf is what is known of the object named web of a resource.
func seenOf(t *testing.T, o Objects, resource string) Object {
	t.Helper()
	kind := map[string]string{"configmaps": "ConfigMap", "deployments": "Deployment", "gadgets": "Gadget"}[resource]
	for _, s := range o.Seen {
		if s.Kind == kind {
			return s
		}
	}
	t.Fatalf("%s is not in %+v", kind, o)
	return Object{}
}
