package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/starling-operator/starling/modules/status"
)

// A module goes over to another instance while the first one lives: with its release, the definitions of its crds/ and
// their conversions, so that the other one can change all of them. The definition stays the object that it was.
func TestDefinitionsGoOverWithTheirModule(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(a *fixture, args []string){
		"by another selector": func(a *fixture, args []string) {
			a.restartWith(append(args, "--modules-selector", "name!=light"))
		},
		"from a tree that is reloaded": func(a *fixture, _ []string) { a.write(map[string]string{"light": ""}) },
		"from a tree before a start": func(a *fixture, _ []string) {
			a.restart(map[string]string{"light": ""})
			a.waitReady()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			light := trees(mirror("light", "module(enabled = True)\n"), map[string]string{
				"light/crds/lamps.yaml": versionedLamps("v1"), "light/hooks/versions.star": lampConversions,
			})
			instance := func(ns, name string, more map[string]string) *fixture {
				f := &fixture{t: t, ns: ns, name: name, modules: t.TempDir()}
				f.write(trees(light, more))
				f.grantPrinted()
				return f
			}
			a := instance(shared.Namespace(t), "starling", mirror("web", on))
			args := webhookArgs(t)
			a.start(args...)
			a.waitState("light", status.ModuleReady)
			a.waitReady()
			crds, definition := shared.Dynamic.Resource(definitions), "lamps."+a.ns+".example.com"
			t.Cleanup(func() { _ = crds.Delete(context.Background(), definition, metav1.DeleteOptions{}) })
			first, err := crds.Get(t.Context(), definition, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}

			// The other one has another definition. It waits as long as the first one has the module.
			light["light/crds/lamps.yaml"] = strings.ReplaceAll(versionedLamps("v1"), "big: {type: integer}", "big: {type: integer}, shade: {type: string}")
			b := instance(a.ns, "b", mirror("store", on))
			b.start(webhookArgs(t)...)
			b.waitState("store", status.ModuleReady)
			b.waitState("light", status.ModuleFailed, "belongs to the starling instance of "+a.ns+"/starling/light")

			leave(a, args)
			b.waitState("light", status.ModuleReady)
			lamp := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": a.ns + ".example.com/v1alpha1", "kind": "Lamp", "metadata": map[string]any{"name": "desk"},
				"spec": map[string]any{"colour": "red", "shade": "green"},
			}}
			b.eventually("the other one converts", func() error {
				o, err := crds.Get(t.Context(), definition, metav1.GetOptions{})
				switch {
				case err != nil:
					return err
				case o.GetUID() != first.GetUID():
					t.Fatal("it is another definition")
				case o.GetAnnotations()["starling.dev/conversion"] != a.ns+".b":
					return fmt.Errorf("it has %q", o.GetAnnotations())
				}
				_, err = a.lamps("v1alpha1").Create(t.Context(), lamp, metav1.CreateOptions{})
				return err
			})
			o, err := a.lamps("v1").Get(t.Context(), "desk", metav1.GetOptions{})
			if err != nil || fmt.Sprint(o.Object["spec"]) != "map[hue:red shade:green]" {
				t.Errorf("%v %v", o, err)
			}
			a.waitReady()
			a.stop()
			if out, note := a.detach(); strings.Contains(out, definition) {
				t.Errorf("the first one ends the conversion of the other: %s %s", out, note)
			}
		})
	}
}
