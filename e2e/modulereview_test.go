package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// tryObject merges a patch into a Module object, as `kubectl patch` does.
func (f *fixture) tryObject(name, with string) error {
	_, err := shared.Dynamic.Resource(moduleResource).Patch(f.t.Context(), name, types.MergePatchType, []byte(with), metav1.PatchOptions{FieldManager: "kubectl"})
	return err
}

// While webhooks are served, values of a Module object that do not pass are refused as they are written,
// with the words of ValuesValid; other changes of the object pass, and so does all while Starling is away.
func TestModuleObjectsAreReviewed(t *testing.T) {
	t.Parallel()
	judged := mirror("mo-judged", on)
	judged["mo-judged/openapi/config-values.yaml"] = `type: object
properties:
  text: {type: string, maxLength: 80}
  deep: {type: object, x-kubernetes-preserve-unknown-fields: true}
  least: {type: integer}
  most: {type: integer}
x-kubernetes-validations:
- rule: "!has(self.least) || !has(self.most) || self.least <= self.most"
  message: least must not be more than most
`
	judged["mo-judged/hooks/lenient.star"] = `
def lenient(ctx):
    pass

hook(lenient, on = [k8s.mutate("v1", "ConfigMap", ["CREATE"], failure_policy = "ignore", namespace_labels = "e2e=$NS")])
`
	judged["mo-judged/module.star"] += `
def settings_check(old, new):
    if new.get("text") == old.get("text", "") + "!":
        return "it was loud enough"
`
	f := withObjects(t, shared.Namespace(t), "starling", judged)
	args := webhookArgs(t)
	f.start(args...)
	f.waitCondition("mo-judged", "Ready", "True")
	f.waitConfigurations(2)
	long := strings.Repeat("x", 1<<20)
	deep, err := json.Marshal(map[string]any{"spec": map[string]any{"values": map[string]any{"deep": nest(200)}}})
	if err != nil {
		t.Fatal(err)
	}
	bad := func(text, patch string) {
		t.Helper()
		f.eventually("refused: "+text, func() error { // the API server learns of new webhooks a moment later
			err := f.tryObject("mo-judged", patch)
			if !apierrors.IsInvalid(err) {
				return fmt.Errorf("it is not refused: %w", err)
			}
			return holds(err.Error(), []string{"values.modules.starling.dev", "Module mo-judged: ", text, "correct spec.values: nothing was changed"})
		})
	}
	bad("text: must be a string", `{"spec":{"values":{"text":7}}}`)
	bad(`txt: unknown field, did you mean "text"?`, `{"spec":{"values":{"txt":"a"}}}`)
	bad("least must not be more than most", `{"spec":{"values":{"least":2,"most":1}}}`)
	bad("KiB", `{"spec":{"values":{"text":"`+long+`"}}}`)
	bad("nested deeper", string(deep))
	f.patchObject("mo-judged", `{"spec":{"values":{"text":"good"}}}`)
	f.waitData("mo-judged", map[string]string{"text": "good"})
	bad("it was loud enough", `{"spec":{"values":{"text":"good!"}}}`)

	// Not asked about: the object of another instance, one of no module.
	for name, spec := range map[string]string{"mo-foreign": `{"instance":"nobody/here","values":{"text":7}}`, "mo-nomodule": `{"instance":"` + f.ns + `/starling","values":{"text":7}}`} {
		var o unstructured.Unstructured
		if err := json.Unmarshal([]byte(`{"apiVersion":"starling.dev/v1alpha1","kind":"Module","metadata":{"name":"`+name+`"},"spec":`+spec+`}`), &o.Object); err != nil {
			t.Fatal(err)
		}
		if _, err := shared.Dynamic.Resource(moduleResource).Create(t.Context(), &o, metav1.CreateOptions{}); err != nil {
			t.Errorf("%s is refused: %v", name, err)
		}
		t.Cleanup(func() {
			_ = shared.Dynamic.Resource(moduleResource).Delete(context.Background(), name, metav1.DeleteOptions{})
		})
	}

	f.stop()
	f.patchObject("mo-judged", `{"spec":{"values":{"text":"later"}}}`)
	f.patchObject("mo-judged", `{"spec":{"values":{"text":7}}}`)
	configurations := f.configurations()
	f.start(args...)
	f.waitCondition("mo-judged", "ValuesValid", "False", "text: must be a string")
	bad("text: must be a string", `{"spec":{"values":{"text":8}}}`)
	f.patchObject("mo-judged", `{"metadata":{"annotations":{"note":"the values do not pass"}}}`)
	if again := f.configurations(); fmt.Sprint(again) != fmt.Sprint(configurations) {
		t.Errorf("configurations were written: %v, %v before", again, configurations)
	}
	f.patchObject("mo-judged", `{"spec":{"values":{"text":"later"}}}`)
	f.waitData("mo-judged", map[string]string{"text": "later"})
	if strings.Contains(f.said(), "not allowed") {
		t.Errorf("something was not allowed:\n%s", f.said())
	}
}

// nest makes maps in maps.
func nest(levels int) any {
	var out any = "end"
	for range levels {
		out = map[string]any{"a": out}
	}
	return out
}
