package release

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/effect"
)

// definition is that of Thing, whose objects have these fields.
func thing(fields ...string) string {
	props := ""
	for _, f := range fields {
		props += f + ": {type: string}, "
	}
	return strings.NewReplacer("GROUP", "own.example", "x-kubernetes-preserve-unknown-fields: true", "properties: {"+props+"}").Replace(thingCRD)
}

func (w *driftWorld) bring(m *Manager, module string, adopt bool, definitions ...string) error {
	w.t.Helper()
	var files []chart.File
	for i, d := range definitions {
		files = append(files, chart.File{Path: fmt.Sprintf("crds/%d.yaml", i), Data: []byte(d)})
	}
	_, err := m.ApplyCRDs(w.t.Context(), Ref{Module: module, Name: module}, CRDOptions{Adopt: adopt}, files)
	return err
}

// fields are those of the definition that is there.
func (w *driftWorld) fields() string {
	w.t.Helper()
	live, err := w.client.Resource(crdResource()).Get(w.t.Context(), "things.own.example", metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	versions, _, _ := unstructured.NestedSlice(live.Object, "spec", "versions")
	props, _, _ := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties")
	return strings.Join(slices.Sorted(maps.Keys(props)), " ")
}

func (w *driftWorld) define(manager, text string, annotations map[string]string, apply bool) {
	w.t.Helper()
	found, err := chart.Definitions(chart.File{Data: []byte(text)})
	if err != nil {
		w.t.Fatal(err)
	}
	object := found[0].Object
	object.SetAnnotations(annotations)
	crds := w.client.Resource(crdResource())
	if apply {
		_, err = crds.Apply(w.t.Context(), object.GetName(), object, metav1.ApplyOptions{FieldManager: manager, Force: true})
	} else {
		_, err = crds.Create(w.t.Context(), object, metav1.CreateOptions{FieldManager: manager})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// A definition that moves to a module that had another one of that name all along is applied then.
func TestADefinitionMoves(t *testing.T) {
	for name, leave := range map[string]func(w *driftWorld) error{
		"to others":          func(w *driftWorld) error { return w.bring(w.Manager, "a", false, thing("blue")+"---\n"+other) },
		"from the tree":      func(w *driftWorld) error { return w.bring(w.Manager, "a", false) },
		"with its module":    func(w *driftWorld) error { return w.ForgetCRDs(w.t.Context(), "a") },
		"to one of the same": func(w *driftWorld) error { return w.bring(w.Manager, "a", false, other) },
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := newSimulatedDrift(t)
			for _, m := range []struct{ module, field string }{{"a", "red"}, {"b", "blue"}, {"c", "green"}} {
				if err := w.bring(w.Manager, m.module, false, thing(m.field)); err != nil {
					t.Fatal(err)
				}
			}
			if got := w.fields(); got != "red" {
				t.Fatalf("the definition of a comes first: %s", got)
			}
			if err := leave(w); err != nil {
				t.Fatal(err)
			}
			if got := w.fields(); got != "blue" {
				t.Errorf("after a has it no more the definition has %s", got)
			}
			if err := w.bring(w.Manager, "b", false); err != nil || name != "to others" && w.fields() != "green" {
				t.Errorf("after b has it no more the definition has %s, %v", w.fields(), err)
			}
		})
	}
}

var other = strings.NewReplacer("things", "others", "Thing", "Other", "thing", "other").Replace(thing("red"))

// A definition of somebody else is not replaced without a line in module.star, and from nobody who is still there.
func TestADefinitionOfOthersStays(t *testing.T) {
	helm := map[string]string{helmName: "theirs", helmNamespace: "apps"}
	tests := []struct {
		name    string
		there   func(w *driftWorld, f *manyFixture)
		adopt   bool
		err     string
		changed bool
	}{
		{"kubectl", func(w *driftWorld, _ *manyFixture) { w.define("kubectl-create", thing("red"), nil, false) }, false,
			"CustomResourceDefinition things.own.example is there, differs, and belongs to kubectl-create: leave out one of the two or, once nobody needs that one, take it over with module(adopt = True)", false},
		{"kubectl, with the line", func(w *driftWorld, _ *manyFixture) { w.define("kubectl-create", thing("red"), nil, false) }, true, "", true},
		{"the same", func(w *driftWorld, _ *manyFixture) { w.define("kubectl-create", thing("blue"), nil, false) }, false, "", false},
		{"applied", func(w *driftWorld, _ *manyFixture) { w.define("flux", thing("red"), nil, true) }, false, "belongs to flux", false},
		{"of an earlier version of Starling", func(w *driftWorld, _ *manyFixture) { w.define("starling", thing("red"), nil, true) }, false, "", true},
		{"of an earlier version, which has replaced one", func(w *driftWorld, _ *manyFixture) {
			w.define("kubectl-create", thing("white"), nil, false)
			w.define("starling", thing("red"), nil, true)
		}, false, "", true},
		{"in the name of Starling, by kubectl", func(w *driftWorld, _ *manyFixture) { w.define("starling", thing("red"), nil, false) }, false, "belongs to starling", false},
		{"changed by hand", func(w *driftWorld, _ *manyFixture) {
			if err := w.bring(w.Manager, "web", false, thing("white")); err != nil {
				w.t.Fatal(err)
			}
			w.patchVersions("kubectl-edit", thing("red"))
		}, false, "", true},
		{"taken over by another who applies it", func(w *driftWorld, _ *manyFixture) {
			if err := w.bring(w.Manager, "web", false, thing("white")); err != nil {
				w.t.Fatal(err)
			}
			w.define("flux", thing("red"), nil, true)
		}, false, "belongs to flux", false},
		{"of a release that is there", func(w *driftWorld, f *manyFixture) {
			w.define("helm", thing("red"), helm, false)
			theirs := Target{Input: chart.Input{Module: "theirs", Name: "theirs", Namespace: "apps", Chart: chartOf("theirs", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")}}
			if _, err := f.manager().Reconcile(w.t.Context(), theirs); err != nil {
				w.t.Fatal(err)
			}
		}, true, "belongs to release theirs in namespace apps: leave out one of the two, or remove that one first", false},
		{"of a release that is gone", func(w *driftWorld, _ *manyFixture) { w.define("helm", thing("red"), helm, false) }, true, "", true},
		{"of another instance", func(w *driftWorld, f *manyFixture) {
			w.lease("second")
			if err := w.bring(w.second(f), "web", false, thing("red")); err != nil {
				w.t.Fatal(err)
			}
		}, true, "belongs to the starling instance of ops/second/web", false},
		{"the same of another instance", func(w *driftWorld, f *manyFixture) {
			if err := w.bring(w.second(f), "web", false, thing("blue")); err != nil {
				w.t.Fatal(err)
			}
		}, false, "", false},
		{"of another instance that is gone", func(w *driftWorld, f *manyFixture) {
			if err := w.bring(w.second(f), "web", false, thing("red")); err != nil {
				w.t.Fatal(err)
			}
		}, true, "", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w, f := newSimulatedDrift(t)
			tt.there(w, f)
			before := w.fields()
			w.Manager = f.manager()
			err := w.bring(w.Manager, "web", tt.adopt, thing("blue"))
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("%v", err)
			}
			if got := w.fields(); got != map[bool]string{true: "blue", false: before}[tt.changed] {
				t.Errorf("the definition has %s", got)
			}
		})
	}
}

func (w *driftWorld) patchVersions(manager, text string) {
	w.t.Helper()
	found, err := chart.Definitions(chart.File{Data: []byte(text)})
	if err != nil {
		w.t.Fatal(err)
	}
	spec, _, _ := unstructured.NestedMap(found[0].Object.Object, "spec")
	data, err := (&unstructured.Unstructured{Object: map[string]any{"kind": "CustomResourceDefinition", "spec": map[string]any{"versions": spec["versions"]}}}).MarshalJSON()
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.client.Resource(crdResource()).Patch(w.t.Context(), "things.own.example", types.MergePatchType, data, metav1.PatchOptions{FieldManager: manager}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *driftWorld) lease(name string) {
	w.t.Helper()
	lease := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": map[string]any{"name": name, "namespace": "ops"}}}
	leases := schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	if _, err := w.client.Resource(leases).Namespace("ops").Create(w.t.Context(), lease, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// second is another instance.
func (w *driftWorld) second(f *manyFixture) *Manager {
	m := f.manager()
	m.o.Name, m.o.Instance = "second", effect.Instance{Namespace: "ops", Name: "second"}.Label()
	return m
}

// The definitions of a module that leaves the tree are free for another instance while the first one lives; but not those
// that another module has, too, nor before its release has gone.
func TestDefinitionsAreGivenBack(t *testing.T) {
	for name, tt := range map[string]struct {
		before func(w *driftWorld) error
		leave  func(w *driftWorld) error
		stays  bool
	}{
		"with the module": {leave: func(w *driftWorld) error { return w.ForgetCRDs(w.t.Context(), "web") }},
		"by an uninstall": {leave: func(w *driftWorld) error {
			_, err := w.Uninstall(w.t.Context(), Ref{Module: "web", Name: "web", Namespace: "apps"}, 0)
			return err
		}},
		"to another instance": {leave: func(w *driftWorld) error {
			_, err := w.GiveBack(w.t.Context(), Ref{Module: "web", Name: "web", Namespace: "apps"}, 0)
			return err
		}},
		"of another module, too": {func(w *driftWorld) error { return w.bring(w.Manager, "b", false, thing("red")) },
			func(w *driftWorld) error { return w.ForgetCRDs(w.t.Context(), "web") }, true},
		"of a release that stays": {func(w *driftWorld) error {
			return w.records.set(w.t.Context(), record{Ref: Ref{Module: "web", Name: "web", Namespace: "apps"}})
		}, func(w *driftWorld) error { return w.ForgetCRDs(w.t.Context(), "web") }, true},
		"of the tree": {leave: func(w *driftWorld) error {
			w.o.Folders = func() []*tree.Module { return []*tree.Module{{Name: "web"}} }
			return w.ForgetCRDs(w.t.Context(), "web")
		}, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			w, f := newSimulatedDrift(t)
			w.lease("starling")
			w.o.Folders = func() []*tree.Module { return []*tree.Module{{Name: "b"}} }
			err := w.bring(w.Manager, "web", false, thing("red"))
			if err == nil && tt.before != nil {
				err = tt.before(w)
			}
			if err = cmp.Or(err, tt.leave(w)); err != nil {
				t.Fatal(err)
			}
			if err := w.bring(w.second(f), "web", true, thing("blue")); (err != nil) != tt.stays {
				t.Errorf("the other instance: %v", err)
			}
			if got := w.fields(); got != map[bool]string{true: "red", false: "blue"}[tt.stays] {
				t.Errorf("the definition has %s", got)
			}
		})
	}
}

// A definition leaves the templates of a chart while a module has it in crds/: it stays, with all its objects.
func TestADefinitionOfTemplatesThatModulesHave(t *testing.T) {
	for _, module := range []string{"second", "web", "later"} {
		for _, uninstall := range []bool{true, false} {
			w, f := newSimulatedDrift(t)
			web := Target{Input: chart.Input{Module: "web", Name: "web", Namespace: "apps", Chart: chartOf("web", thing("red")), Installs: []builtins.Grant{{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}}}}
			if _, err := w.Reconcile(t.Context(), web); err != nil {
				t.Fatal(err)
			}
			if err := w.bring(w.Manager, module, false, thing("red")); err != nil {
				t.Fatal(err)
			}
			if module == "later" { // nobody has asked it yet
				w.Manager = f.manager()
				w.o.Folders = func() []*tree.Module {
					return []*tree.Module{{Name: "later", CRDs: []chart.File{{Path: "crds/a.yaml", Data: []byte(thing("red"))}}}}
				}
			}
			if _, err := w.Repair(t.Context(), RepairTarget{Target: web}); err != nil { // its marks are the release's again
				t.Fatal(err)
			}
			var err error
			if uninstall {
				_, err = w.Uninstall(t.Context(), web.Ref(), 0)
			} else {
				web.Chart = chartOf("web", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n")
				_, err = w.Reconcile(t.Context(), web)
			}
			live, lost := w.client.Resource(crdResource()).Get(t.Context(), "things.own.example", metav1.GetOptions{})
			if err != nil || lost != nil || live.GetDeletionTimestamp() != nil {
				t.Errorf("in crds/ of %s, uninstall %t: the definition goes, %v, %v", module, uninstall, err, lost)
			}
		}
	}
}
