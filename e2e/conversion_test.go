package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/starling-operator/starling/modules/status"
)

// detach runs `starling detach` as the admin.
func (f *fixture) detach(args ...string) (stdout, stderr string) {
	f.t.Helper()
	stdout, stderr, err := f.tryDetach(args...)
	if err != nil {
		f.t.Fatalf("%v: %s", err, stderr)
	}
	return stdout, stderr
}

func (f *fixture) tryDetach(args ...string) (stdout, stderr string, err error) {
	cmd := exec.CommandContext(f.t.Context(), program(), append([]string{"detach", "--kubeconfig", shared.Kubeconfig, "--namespace", f.ns}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

// versionedLamps is a definition with three versions, of which one is stored. Each
// keeps the color under another name.
func versionedLamps(stored string) string {
	text := `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lamps.$NS.example.com}
spec:
  group: $NS.example.com
  names: {kind: Lamp, plural: lamps}
  scope: Namespaced
  conversion: {strategy: None}
  versions:
`
	for version, field := range map[string]string{"v1alpha1": "colour", "v1beta1": "color", "v1": "hue"} {
		text += fmt.Sprintf("  - {name: %s, served: true, storage: %v, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {%s: {type: string}, big: {type: integer}}}}}}}\n",
			version, version == stored, field)
	}
	return text
}

const lampConversions = `
def renamed(old, new):
    def convert(o):
        d = dict(o)
        spec = d.get("spec", {})
        if spec.get(old) == "none":
            fail("a lamp without a color")
        if old in spec:
            spec[new] = spec.pop(old)
        return d
    return convert

hook(on = [k8s.convert("lamps.$NS.example.com", {
    ("v1alpha1", "v1beta1"): renamed("colour", "color"), ("v1beta1", "v1"): renamed("color", "hue"),
    ("v1", "v1beta1"): renamed("hue", "color"), ("v1beta1", "v1alpha1"): renamed("color", "colour"),
})])
`

func TestConversion(t *testing.T) {
	t.Parallel()
	f := lampFixture(t, trees(probe(), map[string]string{
		// The definition was there before, made by hand.
		"light/module.star": "module(enabled = True, adopt = True)\n", "light/crds/lamps.yaml": versionedLamps("v1"), "light/hooks/versions.star": lampConversions,
	}))
	role := webhookRole(lampRole(f.ns))
	role.Hooks[0].Verbs = []string{"get", "create", "patch", "list", "watch"}
	f.name = "starling"
	f.kube = shared.ServiceAccountKubeconfig(t, f.ns, "op-webhooks", role.access(f.ns, f.name))
	args := webhookArgs(t)
	f.start(args...)
	f.waitReady()
	crds := shared.Dynamic.Resource(definitions)
	definition := "lamps." + f.ns + ".example.com"
	strategy := func(want string) {
		t.Helper()
		f.eventually("the conversion strategy is "+want, func() error {
			o, err := crds.Get(t.Context(), definition, metav1.GetOptions{})
			if err != nil {
				return err
			}
			conversion, _ := o.Object["spec"].(map[string]any)["conversion"].(map[string]any)
			if conversion["strategy"] != want {
				return fmt.Errorf("it is %v", conversion)
			}
			return nil
		})
	}
	strategy("Webhook")
	put := func(name, version, field string) {
		t.Helper()
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": f.ns + ".example.com/" + version, "kind": "Lamp",
			"metadata": map[string]any{"name": name, "labels": map[string]any{"a": "b"}},
			"spec":     map[string]any{field: "red", "big": int64(9007199254740993)}, // no float holds it
		}}
		// The API server learns of a conversion a moment after it was written, and drops
		// fields that it does not know.
		f.eventually("lamp "+name, func() error {
			if err := f.lamps(version).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
			if _, err := f.lamps(version).Create(t.Context(), o.DeepCopy(), metav1.CreateOptions{}); err != nil {
				return err
			}
			for version, field := range map[string]string{"v1alpha1": "colour", "v1beta1": "color", "v1": "hue"} {
				o, err := f.lamps(version).Get(t.Context(), name, metav1.GetOptions{})
				if err != nil {
					return err
				}
				if color, _, _ := unstructured.NestedString(o.Object, "spec", field); color != "red" {
					return fmt.Errorf("as %s it is %v", version, o.Object["spec"])
				}
			}
			return nil
		})
	}
	put("first", "v1alpha1", "colour") // stored as v1
	// From now on another version is stored: there are objects of both.
	shared.Apply(t, strings.ReplaceAll(versionedLampsOnly("v1beta1"), "$NS", f.ns))
	put("second", "v1", "hue")
	for version, field := range map[string]string{"v1alpha1": "colour", "v1beta1": "color", "v1": "hue"} {
		f.eventually("the lamps are "+version, func() error {
			list, err := f.lamps(version).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				return err
			}
			if len(list.Items) != 2 {
				return fmt.Errorf("%d lamps", len(list.Items))
			}
			for _, o := range list.Items {
				want := map[string]any{field: "red", "big": int64(9007199254740993)}
				if fmt.Sprint(o.Object["spec"]) != fmt.Sprint(want) || o.GetLabels()["a"] != "b" || !strings.HasSuffix(o.GetAPIVersion(), "/"+version) {
					return fmt.Errorf("%v", o.Object)
				}
			}
			return nil
		})
	}

	// One object that cannot be converted takes its kind from all who read it in another version, and from nobody else:
	// the error names it, and the metric counts it.
	bad := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": f.ns + ".example.com/v1beta1", "kind": "Lamp", "metadata": map[string]any{"name": "bad"}, "spec": map[string]any{"color": "none"},
	}}
	if _, err := f.lamps("v1beta1").Create(t.Context(), bad, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := f.lamps("v1").List(t.Context(), metav1.ListOptions{})
	if err == nil || !strings.Contains(err.Error(), "a lamp without a color: Lamp "+f.ns+"/bad cannot be converted from "+f.ns+".example.com/v1beta1 to "+f.ns+".example.com/v1") {
		t.Errorf("a list with an object that cannot be converted: %v", err)
	}
	if _, page, err := f.http("/metrics"); err != nil || !strings.Contains(page, `",module="light",result="error"}`) {
		t.Errorf("/metrics counts no conversion that has failed (%v)", err)
	}
	f.probe()
	if err := f.lamps("v1beta1").Delete(t.Context(), "bad", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.lamps("v1").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}

	// crds/ says strategy None; a restart applies it again, and the conversion stays.
	before, err := crds.Get(t.Context(), definition, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f.restartWith(args)
	f.probe()
	after, err := crds.Get(t.Context(), definition, metav1.GetOptions{})
	if err != nil || fmt.Sprint(after.Object["spec"].(map[string]any)["conversion"]) != fmt.Sprint(before.Object["spec"].(map[string]any)["conversion"]) {
		t.Errorf("the conversion has changed: %v", err)
	}
	// It follows the process to another address.
	f.stop()
	f.service = nil
	f.start(webhookArgs(t)...)
	f.waitReady()
	f.eventually("the conversion follows", func() error {
		o, err := crds.Get(t.Context(), definition, metav1.GetOptions{})
		if err != nil {
			return err
		}
		at, _, _ := unstructured.NestedString(o.Object, "spec", "conversion", "webhook", "clientConfig", "url")
		if !strings.HasPrefix(at, "https://"+f.service.Address()+"/") {
			return fmt.Errorf("it is at %s", at)
		}
		_, err = f.lamps("v1alpha1").List(t.Context(), metav1.ListOptions{})
		return err
	})
	// Objects can be read while the module is off; detach ends the conversion.
	f.configure(map[string]string{"lightEnabled": "false"})
	f.waitState("light", status.ModuleOff)
	strategy("Webhook")
	if _, err := f.lamps("v1alpha1").Get(t.Context(), "second", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	// One that leads would put it back.
	if out, note, err := f.tryDetach(); err == nil || out != "" || !strings.Contains(note, "error: starling "+f.ns+"/starling runs") {
		t.Errorf("from one that runs it takes %q: %q %v", out, note, err)
	}
	strategy("Webhook")
	f.stop()
	shared.Apply(t, fmt.Sprintf("{apiVersion: %s, kind: CustomResourceDefinition, metadata: {name: %s, annotations: {starling.dev/conversion: %s.starling}}}", "apiextensions.k8s.io/v1", definition, f.ns))
	out, _ := f.detach("-o", "json")
	var done []map[string]string
	if err := json.Unmarshal([]byte(out), &done); err != nil || len(done) != 1 || done[0]["name"] != definition || done[0]["done"] != "conversion strategy None" {
		t.Errorf("%s %v", out, err)
	}
	strategy("None")
	if out, note := f.detach(); out != "" || note != "nothing to detach\n" {
		t.Errorf("%q %q", out, note)
	}
}

// versionedLampsOnly is versionedLamps without a word about conversion.
func versionedLampsOnly(stored string) string {
	return strings.Replace(versionedLamps(stored), "  conversion: {strategy: None}\n", "", 1)
}

func (f *fixture) lamps(version string) dynamic.ResourceInterface {
	return shared.Dynamic.Resource(schema.GroupVersionResource{Group: f.ns + ".example.com", Version: version, Resource: "lamps"}).Namespace(f.ns)
}

func (f *fixture) restartWith(args []string) {
	f.t.Helper()
	if !slices.Equal(args, f.args) {
		f.stop()
	} else if code := f.process.Stop(); code != 0 {
		f.t.Fatalf("stopped with exit code %d", code)
	}
	f.start(args...)
	f.waitReady()
}
