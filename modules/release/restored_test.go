package release

import (
	"fmt"
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/modules/chart"
)

// A backup that is restored, and somebody who clears managedFields, make one writer of all fields: fields of others
// stay, and fields that leave the chart go.
func TestFieldsOfOthersOutliveTheirWriters(t *testing.T) {
	for name, lose := range map[string]func(o *others){
		"cleared": func(o *others) { o.merge(`{"metadata":{"managedFields":[{}]}}`) },
		"restored": func(o *others) {
			saved := o.get()
			o.remove()
			for _, field := range []string{"uid", "resourceVersion", "managedFields", "creationTimestamp"} {
				unstructured.RemoveNestedField(saved.Object, "metadata", field)
			}
			if _, err := o.client().Create(t.Context(), saved, metav1.CreateOptions{FieldManager: "backup"}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for _, repaired := range []int{0, 1, 2} {
			t.Run(fmt.Sprintf("%s, %d repairs", name, repaired), func(t *testing.T) {
				w, _ := newSimulatedDrift(t)
				target := Target{Input: chart.Input{Module: "web", Name: "web", Namespace: w.apps, Values: map[string]any{"more": true},
					Chart: chartOf("web", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {color: red{{ if .Values.more }}, more: x{{ end }}}\n")}}
				if _, err := w.Reconcile(t.Context(), target); err != nil {
					t.Fatal(err)
				}
				o := &others{w, configMaps}
				want := func(data map[string]string) {
					t.Helper()
					if got, _, _ := unstructured.NestedStringMap(o.get().Object, "data"); !maps.Equal(got, data) {
						t.Errorf("got %v, want %v", got, data)
					}
				}
				o.patch("filler", types.MergePatchType, `{"data":{"filled":"by others"}}`)
				lose(o)
				for range repaired {
					o.merge(`{"data":{"color":"theirs"}}`)
					if _, err := w.Repair(t.Context(), RepairTarget{Target: named(target.Ref())}); err != nil {
						t.Fatal(err)
					}
					want(map[string]string{"color": "red", "more": "x", "filled": "by others"})
				}
				target.Values = map[string]any{"more": false}
				if _, err := w.Reconcile(t.Context(), target); err != nil {
					t.Fatal(err)
				}
				want(map[string]string{"color": "red", "filled": "by others"})
			})
		}
	}
}

// Helm reads the annotation in any case, with space around it.
func TestObjectsThatAreKept(t *testing.T) {
	for policy, stays := range map[string]bool{"keep": true, "Keep": true, " keep ": true, "delete": false, "": false} {
		for _, uninstall := range []bool{true, false} {
			w, _ := newSimulatedDrift(t)
			web := Target{Input: chart.Input{Module: "web", Name: "web", Namespace: "apps", Chart: chartOf("web",
				fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: {helm.sh/resource-policy: %q}}\n", policy))}}
			if _, err := w.Reconcile(t.Context(), web); err != nil {
				t.Fatal(err)
			}
			var err error
			if uninstall {
				_, err = w.Uninstall(t.Context(), web.Ref(), 0)
			} else {
				web.Chart = chartOf("web", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n")
				_, err = w.Reconcile(t.Context(), web)
			}
			if is := w.there(configMaps, "apps", "a"); err != nil || is != stays {
				t.Errorf("%q, uninstall %t: it stays: %t, %v", policy, uninstall, is, err)
			}
		}
	}
}
