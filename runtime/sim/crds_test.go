package sim

import (
	"testing"
	"testing/fstest"
	"time"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/effect"
)

// A definition that somebody has removed comes back with the module's next pass, and when
// the module goes off and on.
func TestACRDThatWasRemovedIsAppliedAgain(t *testing.T) {
	read, err := tree.Read(fstest.MapFS{
		"web/module.star":                {Data: []byte("module(enabled = True)\n")},
		"web/Chart.yaml":                 {Data: []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n")},
		"web/values.yaml":                {Data: []byte("color: red\n")},
		"web/templates/a.yaml":           {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {color: '{{ .Values.color }}'}\n")},
		"web/crds/gadgets.yaml":          {Data: []byte(gadgetCRD)},
		"web/openapi/config-values.yaml": {Data: []byte("type: object\nproperties: {color: {type: string}}\n")},
	}, tree.Options{})
	w := world(t, read, err)
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, err := w.List("apiextensions.k8s.io/v1", "CustomResourceDefinition", nil, "", "")
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	crd := effect.Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: list[0]["metadata"].(map[string]any)["name"].(string)}
	back := func(after string) {
		t.Helper()
		if obj, err := w.Get(crd); err != nil || obj == nil {
			t.Errorf("after %s it is not there: %v", after, err)
		}
		if err := w.Delete(crd); err != nil {
			t.Fatal(err)
		}
	}
	back("the start")
	w.say(t, map[string]string{"web": "color: blue"})
	w.wait(t, time.Minute) // it had not gone yet
	w.wantModule(t, status.ModuleReady, "")
	back("a change of values")
	w.say(t, map[string]string{"webEnabled": "false"})
	w.say(t, nil)
	w.wait(t, time.Minute)
	w.wantModule(t, status.ModuleReady, "")
	back("off and on")
}

const gadgetCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  names: {kind: Gadget, plural: gadgets}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`
