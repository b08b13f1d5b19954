package sim

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
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

// Of two definitions of one name that differ one counts, and nobody writes it over and over.
func TestTwoModulesWithOneCRD(t *testing.T) {
	files := fstest.MapFS{}
	for _, m := range []string{"a", "b"} {
		files[m+"/module.star"] = &fstest.MapFile{Data: []byte("module(enabled = True, namespace = '" + m + "')\n")}
		files[m+"/Chart.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v2\nname: " + m + "\nversion: 1.0.0\n")}
		files[m+"/templates/a.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {color: '{{ .Values.color }}'}\n")}
		files[m+"/crds/gadgets.yaml"] = &fstest.MapFile{Data: []byte(strings.Replace(gadgetCRD, "{type: object}", "{type: object, description: 'of "+m+"'}", 1))}
		files[m+"/charts/sub/Chart.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v2\nname: sub\nversion: 1.0.0\n")}
		files[m+"/charts/sub/crds/gadgets.yaml"] = &fstest.MapFile{Data: []byte(strings.Replace(gadgetCRD, "{type: object}", "{type: object, description: 'of the subchart'}", 1))}
	}
	read, err := tree.Read(files, tree.Options{})
	w := world(t, read, err)
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	crd := effect.Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "gadgets.example.com"}
	standing := func() any {
		t.Helper()
		obj, err := w.Get(crd)
		if err != nil || obj == nil {
			t.Fatal("it is not there", err)
		}
		schema, _ := object.Get(obj, []string{"spec", "versions"})
		if text := fmt.Sprint(schema); !strings.Contains(text, "of a") {
			t.Errorf("it is %s", text)
		}
		return obj["metadata"].(map[string]any)["generation"]
	}
	before := standing()
	for _, color := range []string{"red", "blue"} {
		w.say(t, map[string]string{"a": "color: " + color, "b": "color: " + color})
	}
	if after := standing(); after != before {
		t.Errorf("generation %v, was %v", after, before)
	}
	w.wantModule(t, status.ModuleReady, "")
	// One that is removed comes back, in either order.
	if err := w.Delete(crd); err != nil {
		t.Fatal(err)
	}
	w.say(t, map[string]string{"b": "color: green"})
	w.wait(t, time.Minute)
	w.say(t, map[string]string{"a": "color: green"})
	w.wait(t, time.Minute)
	standing()
	w.Stop()
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	standing()
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
