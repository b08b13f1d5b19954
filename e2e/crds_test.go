package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/modules/status"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// lamps is the definition of a kind Lamp whose spec has these fields, all strings.
// Its group is $NS.example.com, because definitions are seen by all tests.
func lamps(fields ...string) string {
	var props strings.Builder
	for _, field := range fields {
		fmt.Fprintf(&props, "              %s: {type: string}\n", field)
	}
	return `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lamps.$NS.example.com}
spec:
  group: $NS.example.com
  names: {kind: Lamp, plural: lamps}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
` + props.String()
}

// lampRole lets charts render Lamps, hooks watch them, and crds/ be applied. Its
// rules name the group only when it is known, so tests take it from here.
func lampRole(ns string) least {
	group := ns + ".example.com"
	return least{
		Releases: map[string][]rbacv1.PolicyRule{ns: {renders("", "configmaps"), renders(group, "lamps")}},
		HooksIn:  map[string][]rbacv1.PolicyRule{ns: {watches("", "configmaps"), watches(group, "lamps")}},
		Hooks:    []rbacv1.PolicyRule{allow("apiextensions.k8s.io", "customresourcedefinitions", "get", "create", "patch")},
	}
}

// lampFixture is an instance with the right to handle Lamps.
func lampFixture(t *testing.T, files map[string]string) *fixture {
	t.Helper()
	ns := shared.Namespace(t)
	t.Cleanup(func() {
		err := shared.Dynamic.Resource(definitions).Delete(context.Background(), "lamps."+ns+".example.com", metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	return (&fixture{t: t, ns: ns}).beside("starling", files, lampRole(ns))
}

func (f *fixture) lamp(name string) (map[string]any, error) {
	o, err := shared.Dynamic.Resource(schema.GroupVersionResource{Group: f.ns + ".example.com", Version: "v1", Resource: "lamps"}).
		Namespace(f.ns).Get(f.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	spec, _ := o.Object["spec"].(map[string]any)
	return spec, nil
}

// Definitions in crds/ are applied before the chart that uses them and before the
// watches of the module's hooks, are updated with the tree, and are never deleted.
func TestCRDs(t *testing.T) {
	t.Parallel()
	chart := func(spec string) string {
		return "apiVersion: $NS.example.com/v1\nkind: Lamp\nmetadata: {name: desk, namespace: {{ .Release.Namespace }}}\nspec: " + spec + "\n"
	}
	f := lampFixture(t, trees(mirror("light", `module(enabled = True, installs = [grant("$NS.example.com/v1", "Lamp")])`), map[string]string{
		"light/crds/lamps.yaml":    lamps("color"),
		"light/templates/cm.yaml":  "",
		"light/templates/lamp.yml": chart("{color: red}"),
		"light/hooks/a.star": `
def seen(ctx):
    log.info("lamps", all = ctx.snapshots["lamps"])

hook(seen, on = [k8s.watch("$NS.example.com/v1", "Lamp", name = "lamps", namespaces = ["$NS"], filter = lambda o: dict(o.spec))])
`,
	}))
	f.start()
	f.waitRevision(f.ns, "light", 1)
	f.waitState("light", status.ModuleReady)
	f.eventually("the hook sees the lamp", func() error {
		return holds(f.process.Output(), []string{`"all":[{"color":"red"}]`})
	})

	f.restart(map[string]string{
		"light/crds/lamps.yaml":    lamps("color", "shade"),
		"light/templates/lamp.yml": chart("{color: red, shade: green}"),
	})
	f.waitRevision(f.ns, "light", 2)
	spec, err := f.lamp("desk")
	if err != nil || spec["shade"] != "green" {
		t.Errorf("the field of the updated definition: %v, %v", spec, err)
	}

	f.configure(map[string]string{"lightEnabled": "false"})
	f.waitState("light", status.ModuleOff)
	noRelease(t, f.ns, "light")
	if _, err := shared.Dynamic.Resource(definitions).Get(t.Context(), "lamps."+f.ns+".example.com", metav1.GetOptions{}); err != nil {
		t.Errorf("the definition went with the release: %v", err)
	}
}

// A hook may watch a kind that is not served yet: the status says so, nobody waits for
// it, and the watch begins when the definition appears.
func TestWatchOfAKindThatComesLater(t *testing.T) {
	t.Parallel()
	f := lampFixture(t, trees(mirror("web", on), probe(), map[string]string{
		"web/hooks/a.star": `
def colors(ctx):
    values.set("text", "%s %s" % (ctx.synced["lamps"], ",".join(ctx.snapshots["lamps"])))

hook(colors, on = [k8s.watch("$NS.example.com/v1", "Lamp", name = "lamps", namespaces = ["$NS"], filter = lambda o: o.spec.color)])
`,
	}))
	f.start()
	f.waitReady()
	f.waitData("web", map[string]string{"text": "False "})
	f.eventually("the status says what is not served", func() error {
		h, err := f.hook("web/hooks/a.star:colors")
		if err == nil && strings.Join(h.NotServed, " ") != f.ns+".example.com/v1/Lamp" {
			err = fmt.Errorf("%+v", h)
		}
		return err
	})

	shared.Apply(t, strings.ReplaceAll(lamps("color"), "$NS", f.ns))
	shared.Apply(t, strings.ReplaceAll("{apiVersion: $NS.example.com/v1, kind: Lamp, metadata: {name: desk, namespace: $NS}, spec: {color: blue}}", "$NS", f.ns))
	f.waitData("web", map[string]string{"text": "True blue"})
	f.eventually("the status says that it is served", func() error {
		h, err := f.hook("web/hooks/a.star:colors")
		if err == nil && len(h.NotServed) > 0 {
			err = fmt.Errorf("%+v", h)
		}
		return err
	})
}
