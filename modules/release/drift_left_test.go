package release

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/modules/release/owned"
)

const leftChart = `apiVersion: v1
kind: ConfigMap
metadata: {name: web{{ if not .Values.bare }}, annotations: {a.io/x: ours}{{ end }}}
data: {color: "{{ .Values.color }}"}
---
apiVersion: v1
kind: Secret
metadata: {name: web}
stringData: {password: "{{ .Values.color }}", color: "{{ .Values.color }}"}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: web, annotations: {color: "{{ .Values.color }}"}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  {{ if not .Values.bare }}replicas: {{ .Values.replicas | default 2 }}{{ end }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {color: "{{ .Values.color }}"}}
    spec:
      nodeSelector: {there-is-no: such-node}
      containers:
      - {name: web, image: "web:1", args: ["{{ .Values.color }}"]}
      {{ if .Values.side }}- {name: side, image: "side:1", args: ["{{ .Values.color }}"]}{{ end }}
`

const leftGadget = `---
apiVersion: GROUP/v1
kind: Gadget
metadata: {name: web}
spec: {count: 1, free: {color: "{{ .Values.color }}", list: [{name: a, size: 1, color: "{{ .Values.color }}"}, {name: b, size: 1}]}}
`

// left is what ignore names in testDriftLeft.
var left = []string{
	"Deployment.apps/web spec.replicas", "spec.template.spec.containers[*].image", `ConfigMap metadata.annotations["a.io/x"]`,
	"Gadget spec.free.list[name=a].size", "Secret data.password", "ServiceAccount",
}

// testDriftLeft has others write what a release leaves to them: upgrades leave it, too, and what they have left is no
// drift, until it is ignored no more.
func testDriftLeft(t *testing.T, w *driftWorld) {
	target := w.target("red")
	target.Chart = chartOf("web", leftChart, replaceGroup(leftGadget, w.group))
	for _, text := range left {
		i, err := owned.ParseIgnore(text)
		if err != nil {
			t.Fatal(err)
		}
		target.Ignore = append(target.Ignore, i)
	}
	gadgets := schema.GroupVersionResource{Group: w.group, Version: "v1", Resource: "gadgets"}
	secrets, accounts := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	var objects Objects
	var undone map[Key][]owned.Edit
	release := func(action string, values map[string]any) {
		t.Helper()
		target.Values = values
		res, err := w.Reconcile(t.Context(), target)
		if err != nil || res.Action != action || res.Objects.Digest == "" {
			t.Fatalf("%+v, %v", res, err)
		}
		objects, undone = res.Objects, res.Undone
	}
	// is looks at what upgrades leave, and at what they do not.
	is := func(what, color string, want string) {
		t.Helper()
		d, g := (&others{w, deployments}).get().Object, (&others{w, gadgets}).get().Object
		containers, _, _ := unstructured.NestedSlice(d, "spec", "template", "spec", "containers")
		first, _ := containers[0].(map[string]any)
		list, _, _ := unstructured.NestedSlice(g, "spec", "free", "list")
		element, _ := list[0].(map[string]any)
		replicas, _, _ := unstructured.NestedFieldNoCopy(d, "spec", "replicas")
		account, secret := (&others{w, accounts}).get(), (&others{w, secrets}).get().Object
		password, _, _ := unstructured.NestedString(secret, "data", "password")
		got := []any{replicas, first["image"], (&others{w, configMaps}).get().GetAnnotations()["a.io/x"], element["size"], password, account.GetAnnotations()["color"]}
		if text := fmt.Sprint(got); text != "["+want+"]" {
			t.Errorf("%s: got %s, want [%s]", what, text, want)
		}
		data, _, _ := unstructured.NestedString((&others{w, configMaps}).get().Object, "data", "color")
		other, _, _ := unstructured.NestedString(secret, "data", "color")
		if args := fmt.Sprint(first["args"]); data != color || args != "["+color+"]" || element["color"] != color || len(other) == 0 || len(list) != 2 {
			t.Errorf("%s: %s, %s, %v, %v", what, data, args, list, other)
		}
	}
	repair := func() Repair {
		t.Helper()
		out, err := w.Repair(t.Context(), RepairTarget{Target: target})
		if err != nil || out.Lost || out.Waits != "" || out.Objects.Digest == "" {
			t.Fatalf("%+v, %v", out, err)
		}
		return out
	}
	// calm says that the release is as Starling has left it.
	calm := func(what string) {
		t.Helper()
		for _, of := range []schema.GroupVersionResource{configMaps, deployments, gadgets} {
			before := seenOf(t, objects, of.Resource)
			if now, known := owned.Of((&others{w, of}).get().GetManagedFields(), FieldManager, ignoredOf(target.Ignore, before)); !known || !before.Owned.Same(now) {
				t.Errorf("%s: %s differs", what, of.Resource)
			}
		}
		if out := repair(); len(out.Written) > 0 || out.Objects.Digest != objects.Digest {
			t.Errorf("%s: a repair wrote %v; digests %s, %s", what, out.Written, out.Objects.Digest, objects.Digest)
		}
		for _, e := range (&others{w, deployments}).get().GetManagedFields() {
			if e.Manager == FieldManager && strings.Contains(e.FieldsV1.String(), "f:replicas") {
				t.Errorf("%s: Starling owns the replicas", what)
			}
		}
	}

	release(ActionInstalled, map[string]any{"color": "red"})
	is("installed", "red", "2 web:1 ours 1 cmVk red")
	(&others{w, deployments}).patch("autoscaler", types.MergePatchType, `{"spec":{"replicas":5}}`, "scale")
	(&others{w, deployments}).patch("somebody", types.StrategicMergePatchType, `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:9"}]}}}}`)
	(&others{w, configMaps}).merge(`{"metadata":{"annotations":{"a.io/x":"theirs"}}}`)
	(&others{w, gadgets}).merge(`{"spec":{"free":{"list":[{"name":"b","size":1},{"name":"a","size":7,"color":"red"}]}}}`)
	(&others{w, gadgets}).merge(`{"spec":{"free":{"list":[{"name":"a","size":7,"color":"red"},{"name":"b","size":1}]}}}`)
	(&others{w, secrets}).merge(`{"data":{"password":"dGhlaXJz"}}`)
	(&others{w, accounts}).merge(`{"metadata":{"annotations":{"color":"theirs"}}}`)
	repair()
	is("repaired", "red", "5 web:9 theirs 7 dGhlaXJz theirs")

	release(ActionUpgraded, map[string]any{"color": "green", "replicas": 3})
	is("upgraded", "green", "5 web:9 theirs 7 dGhlaXJz theirs")
	calm("upgraded")
	release(ActionUpgraded, map[string]any{"color": "green", "bare": true})
	is("out of the chart", "green", "5 web:9 theirs 7 dGhlaXJz theirs")
	calm("out of the chart")

	// A container that the chart has anew is made, and made anew, with its image.
	release(ActionUpgraded, map[string]any{"color": "green", "side": true})
	side := func(what string) {
		t.Helper()
		containers, _, _ := unstructured.NestedSlice((&others{w, deployments}).get().Object, "spec", "template", "spec", "containers")
		for _, c := range containers {
			if c, _ := c.(map[string]any); c["name"] == "side" && c["image"] == "side:1" {
				return
			}
		}
		t.Errorf("%s: %v", what, containers)
	}
	side("a new container")
	(&others{w, deployments}).patch("somebody", types.StrategicMergePatchType, `{"spec":{"template":{"spec":{"containers":[{"name":"side","$patch":"delete"}]}}}}`)
	repair()
	side("a container that is made anew")
	is("with a container", "green", "5 web:9 theirs 7 dGhlaXJz theirs")

	// An annotation that somebody has taken away stays so; an object that is made anew is the chart's.
	(&others{w, configMaps}).merge(`{"metadata":{"annotations":{"a.io/x":null}}}`)
	release(ActionUpgraded, map[string]any{"color": "blue", "side": true})
	is("taken away", "blue", "5 web:9  7 dGhlaXJz theirs")
	for _, of := range []schema.GroupVersionResource{deployments, accounts} {
		if err := (&others{w, of}).client().Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	release(ActionUpgraded, map[string]any{"color": "white", "side": true})
	is("made anew", "white", "2 web:1  7 dGhlaXJz white")

	target.Ignore = nil
	(&others{w, deployments}).patch("autoscaler", types.MergePatchType, `{"spec":{"replicas":5}}`, "scale")
	repair()
	is("ignored no more", "white", "2 web:1 ours 1 d2hpdGU= white")

	// Replicas of an autoscaler, until the chart says another number. They are not told while they stay with it, and told
	// as they are taken back: so are those of somebody who is none, each time.
	scale := func(n int, by string) {
		(&others{w, deployments}).patch(by, types.MergePatchType, fmt.Sprintf(`{"spec":{"replicas":%d}}`, n), "scale")
	}
	told := func(what string, by ...string) {
		t.Helper()
		var got []string
		for _, edits := range undone {
			for _, e := range edits {
				got = append(got, e.Path.String()+" of "+e.By)
			}
		}
		if len(by) == 0 && len(got) > 0 || len(by) > 0 && (len(got) != 1 || got[0] != "spec.replicas of "+by[0]) {
			t.Errorf("%s: told of %q, want %q", what, got, by)
		}
	}
	scale(4, "kube-controller-manager")
	release(ActionUpgraded, map[string]any{"color": "black"})
	is("autoscaled", "black", "4 web:1 ours 1 YmxhY2s= black")
	told("autoscaled")
	calm("autoscaled")
	release(ActionUpgraded, map[string]any{"color": "grey"})
	is("autoscaled still", "grey", "4 web:1 ours 1 Z3JleQ== grey")
	told("autoscaled still")
	release(ActionUpgraded, map[string]any{"color": "black", "replicas": 3})
	is("another number", "black", "3 web:1 ours 1 YmxhY2s= black")
	told("another number", "kube-controller-manager")
	for _, color := range []string{"grey", "black"} {
		scale(9, "autoscaler")
		release(ActionUpgraded, map[string]any{"color": color, "replicas": 3})
		told("somebody else scales it", "autoscaler")
	}
	is("somebody else", "black", "3 web:1 ours 1 YmxhY2s= black")
	scale(6, "kube-controller-manager")
	release(ActionUpgraded, map[string]any{"color": "black", "bare": true})
	is("no number", "black", "6 web:1  1 YmxhY2s= black")
	told("no number")
	release(ActionUpgraded, map[string]any{"color": "black", "replicas": 1})
	is("a number at last", "black", "1 web:1 ours 1 YmxhY2s= black")
}

func ignoredOf(list []owned.Ignore, o Object) []owned.Path {
	paths, _ := owned.Ignored(list, o.APIVersion, o.Kind, o.Name)
	return paths
}
