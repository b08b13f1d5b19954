package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/modules/status"
)

var moduleResource = schema.GroupVersionResource{Group: "starling.dev", Version: "v1alpha1", Resource: "modules"}

// withObjects makes an instance that keeps Module objects, with the rights that `starling rbac`
// prints. Names of its modules are those of no other test.
func withObjects(t *testing.T, ns, name string, files ...map[string]string) *fixture {
	t.Helper()
	f := &fixture{t: t, ns: ns, name: name, modules: t.TempDir(), objects: true}
	f.write(trees(files...))
	f.grantPrinted()
	t.Cleanup(func() {
		ctx := context.Background() // that of the test has ended
		list, err := shared.Dynamic.Resource(moduleResource).List(ctx, metav1.ListOptions{LabelSelector: "starling.dev/instance=" + f.ns + "." + f.name})
		for i := 0; err == nil && i < len(list.Items); i++ {
			_ = shared.Dynamic.Resource(moduleResource).Delete(ctx, list.Items[i].GetName(), metav1.DeleteOptions{})
		}
	})
	return f
}

func (f *fixture) object(name string) (*unstructured.Unstructured, error) {
	return shared.Dynamic.Resource(moduleResource).Get(f.t.Context(), name, metav1.GetOptions{})
}

// patchObject merges a patch into a Module object.
func (f *fixture) patchObject(name, with string) {
	f.t.Helper()
	if _, err := shared.Dynamic.Resource(moduleResource).Patch(f.t.Context(), name, types.MergePatchType, []byte(with), metav1.PatchOptions{FieldManager: "kubectl"}); err != nil {
		f.t.Fatal(err)
	}
}

// waitCondition waits as `kubectl wait --for=condition=NAME=VALUE` does, for a status of the spec
// as it is now, whose message holds all the texts.
func (f *fixture) waitCondition(module, name, want string, texts ...string) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("Module %s has %s=%s", module, name, want), func() error {
		o, err := f.object(module)
		if err != nil {
			return err
		}
		if seen, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration"); seen != o.GetGeneration() {
			return fmt.Errorf("generation %d was seen, not %d", seen, o.GetGeneration())
		}
		all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		for _, c := range all {
			if c := c.(map[string]any); c["type"] == name {
				if c["status"] != want {
					return fmt.Errorf("it is %v", c)
				}
				return holds(fmt.Sprint(c["reason"], ": ", c["message"]), texts)
			}
		}
		return fmt.Errorf("no such condition among %v", all)
	})
}

// row is what `kubectl get module NAME` prints, by column.
func (f *fixture) row(name string) map[string]string {
	f.t.Helper()
	data, err := shared.Client.CoreV1().RESTClient().Get().AbsPath("/apis/starling.dev/v1alpha1/modules/"+name).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(f.t.Context())
	var table metav1.Table
	if err == nil {
		err = json.Unmarshal(data, &table)
	}
	if err != nil || len(table.Rows) != 1 {
		f.t.Fatalf("%v: %s", err, data)
	}
	out := map[string]string{}
	for i, c := range table.ColumnDefinitions {
		out[c.Name] = fmt.Sprint(table.Rows[0].Cells[i])
	}
	return out
}

// events are the reasons of the Events about a Module object, sorted.
func (f *fixture) events(module string) (reasons []string) {
	f.t.Helper()
	list, err := shared.Client.CoreV1().Events("default").List(f.t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=Module,involvedObject.name=" + module})
	if err != nil {
		f.t.Fatal(err)
	}
	for _, e := range list.Items {
		reasons = append(reasons, e.Reason)
	}
	slices.Sort(reasons)
	return reasons
}

// Messages that do not arrive are told by kubectl, until they do.
func TestModuleObjectsTellOfMessages(t *testing.T) {
	t.Parallel()
	chat := newOutside(t)
	chat.fail = 1 << 30
	f := withObjects(t, shared.Namespace(t), "starling", map[string]string{
		"mo-chat/module.star": `module(enabled = True, http = ["` + chat.address() + `"])`,
		"mo-chat/hooks/a.star": `
def say(ctx):
    http.send("POST", "http://` + chat.address() + `/chat", body = "hello")

hook(say, on = [startup()])
`,
	})
	f.start()
	f.waitCondition("mo-chat", "Ready", "True", "messages of hooks/a.star:say wait: ", "the server answered 503")
	chat.mu.Lock()
	chat.fail = 0
	chat.mu.Unlock()
	f.eventually("the object tells of none", func() error {
		o, err := f.object("mo-chat")
		if text := fmt.Sprint(o); err != nil || strings.Contains(text, "messages of") {
			return fmt.Errorf("%s, %w", text, err)
		}
		return nil
	})
}

// A module has an object with its state, under the rights that are printed: columns, conditions,
// revisions, Events; at rest nothing is written; one that is deleted is made anew, and its release
// stays; with the module the object goes.
func TestModuleObjects(t *testing.T) {
	t.Parallel()
	f := withObjects(t, shared.Namespace(t), "starling", mirror("mo-life", on), mirror("mo-gone", on), probe())
	f.start()
	f.waitCondition("mo-life", "Ready", "True")
	f.waitCondition("mo-life", "Released", "True", f.ns+"/mo-life, revision 1, chart 0.1.0")
	row := f.row("mo-life")
	for column, want := range map[string]string{"Name": "mo-life", "Ready": "True", "Status": "ready", "Version": "0.1.0", "Revision": "1"} {
		if row[column] != want {
			t.Errorf("column %s is %q, want %q", column, row[column], want)
		}
	}
	o, err := f.object("mo-life")
	if err != nil || o.GetLabels()["starling.dev/instance"] != f.ns+".starling" {
		t.Errorf("the object is %v, %v", o, err)
	}
	if instance, _, _ := unstructured.NestedString(o.Object, "status", "instance"); instance != f.ns+"/starling" {
		t.Errorf("it belongs to %q", instance)
	}

	f.configure(map[string]string{"moLife": "text: one"})
	f.waitCondition("mo-life", "Released", "True", "revision 2")
	f.eventually("two Events", func() error { return holds(strings.Join(f.events("mo-life"), " "), []string{"Installed Upgraded"}) })

	if err := shared.Client.CoreV1().ConfigMaps(f.ns).Delete(t.Context(), "mo-life", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.waitData("mo-life", map[string]string{"text": "one"})
	f.eventually("an Event says that it was healed", func() error {
		return holds(strings.Join(f.events("mo-life"), " "), []string{"Healed Installed Upgraded"})
	})
	f.waitCondition("mo-life", "Drifted", "False")

	o, err = f.object("mo-life")
	if err != nil {
		t.Fatal(err)
	}
	if said, _, _ := unstructured.NestedString(o.Object, "status", "lastRepair", "message"); !strings.Contains(said, "mo-life was put right") {
		t.Errorf("the last repair: %q", said)
	}
	revisions, _, _ := unstructured.NestedSlice(o.Object, "status", "revisions")
	if len(revisions) != 2 || revisions[0].(map[string]any)["revision"] != int64(2) {
		t.Errorf("revisions %v", revisions)
	}
	f.probe()
	f.probe()
	if same, err := f.object("mo-life"); err != nil || same.GetResourceVersion() != o.GetResourceVersion() {
		t.Errorf("at rest it was written: %v, %v", same, err)
	}

	if err := shared.Dynamic.Resource(moduleResource).Delete(t.Context(), "mo-life", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.eventually("the object is made anew", func() error {
		made, err := f.object("mo-life")
		if err == nil && made.GetUID() == o.GetUID() {
			err = fmt.Errorf("it is still the one before")
		}
		return err
	})
	f.waitCondition("mo-life", "Released", "True", "revision 2")
	f.waitRevision(f.ns, "mo-life", 2)

	f.write(map[string]string{"mo-gone": ""})
	f.eventually("the object goes with its module", func() error {
		if _, err := f.object("mo-gone"); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
	noRelease(t, f.ns, "mo-gone")
	f.eventually("an Event tells of it", func() error {
		if all := strings.Join(f.events("mo-gone"), " "); all != "Installed Uninstalled" {
			return fmt.Errorf("there are %s", all)
		}
		return nil
	})
	if strings.Contains(f.said(), "not allowed") {
		t.Errorf("something was not allowed:\n%s", f.said())
	}
}

// The spec counts in the place of the section of the ConfigMap, as a whole, and both say so; values
// that do not pass leave the last good ones in force; the spec of an object that is deleted goes on
// to count, through a restart too; false uninstalls, and a pause leaves the release alone.
func TestModuleObjectsAreALayer(t *testing.T) {
	t.Parallel()
	f := withObjects(t, shared.Namespace(t), "starling", mirror("mo-user", on), probe())
	f.configure(map[string]string{"moUser": "{text: of the ConfigMap, mode: a}"})
	f.start()
	f.waitData("mo-user", map[string]string{"text": "of the ConfigMap"})
	f.waitCondition("mo-user", "Ready", "True")

	f.patchObject("mo-user", `{"spec":{"values":{"text":"of the object"}}}`)
	f.waitData("mo-user", map[string]string{"text": "of the object"})
	f.waitCondition("mo-user", "Ready", "True")
	f.waitCondition("mo-user", "ValuesValid", "True", "moUser", "does not count")
	f.waitConfig(status.ConfigOK, "moUser", "does not count", "Module mo-user")
	f.waitExplained("mo-user", "text", "of the object module object Module mo-user, spec.values", "plain chart values.yaml mo-user/values.yaml:1")

	f.patchObject("mo-user", `{"spec":{"values":{"text":7}}}`)
	f.waitCondition("mo-user", "ValuesValid", "False", "Module mo-user", "text")
	f.waitData("mo-user", map[string]string{"text": "of the object"})
	f.patchObject("mo-user", `{"spec":{"values":{"text":"good again"}}}`)
	f.waitCondition("mo-user", "ValuesValid", "True")
	f.waitData("mo-user", map[string]string{"text": "good again"})
	f.waitRevision(f.ns, "mo-user", 3)

	if code := f.process.Stop(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	if err := shared.Dynamic.Resource(moduleResource).Delete(t.Context(), "mo-user", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.start()
	f.waitCondition("mo-user", "Ready", "True")
	f.waitData("mo-user", map[string]string{"text": "good again"})
	f.waitRevision(f.ns, "mo-user", 3)
	made, err := f.object("mo-user")
	if err != nil {
		t.Fatal(err)
	}
	if text, _, _ := unstructured.NestedString(made.Object, "spec", "values", "text"); text != "good again" {
		t.Errorf("the new object says %v", made.Object["spec"])
	}

	f.patchObject("mo-user", `{"spec":{"paused":true,"values":{"text":"later"}}}`)
	f.waitCondition("mo-user", "Ready", "False", "Paused")
	f.probe()
	f.waitRevision(f.ns, "mo-user", 3)
	f.patchObject("mo-user", `{"spec":{"paused":null}}`)
	f.waitData("mo-user", map[string]string{"text": "later"})

	f.patchObject("mo-user", `{"spec":{"drift":"report"}}`)
	f.waitCondition("mo-user", "Ready", "True")
	if err := shared.Client.CoreV1().ConfigMaps(f.ns).Delete(t.Context(), "mo-user", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.waitCondition("mo-user", "Drifted", "True", "mo-user was deleted")
	f.patchObject("mo-user", `{"spec":{"drift":null}}`)
	f.waitData("mo-user", map[string]string{"text": "later"})
	f.waitCondition("mo-user", "Drifted", "False")

	f.patchObject("mo-user", `{"spec":{"enabled":false}}`)
	f.waitCondition("mo-user", "Enabled", "False", "Module mo-user")
	f.waitState("mo-user", status.ModuleOff)
	noRelease(t, f.ns, "mo-user")
	f.patchObject("mo-user", `{"spec":null}`)
	f.waitData("mo-user", map[string]string{"text": "of the ConfigMap"})
}

// An object belongs to one instance, and says which; one whose name is that of no module says so;
// the annotation has a module that failed tried again at once, and is taken off.
func TestModuleObjectsOfInstances(t *testing.T) {
	t.Parallel()
	f := withObjects(t, shared.Namespace(t), "starling", mirror("mo-shared", on), probe(), map[string]string{
		"mo-fails/module.star":         on,
		"mo-fails/Chart.yaml":          "{apiVersion: v2, name: mo-fails, version: 0.1.0}\n",
		"mo-fails/templates/cm.yaml":   "{{ fail \"never\" }}\n",
		"mo-fails/templates/empty.txt": "\n",
	})
	f.start()
	f.waitCondition("mo-shared", "Ready", "True")
	f.waitCondition("mo-fails", "Ready", "False", "Failed", "never")

	g := withObjects(t, f.ns, "other", mirror("mo-shared", on), map[string]string{
		"mo-thief/module.star": "module(enabled = True, grants = [grant(\"v1\", \"ConfigMap\", verbs = [\"apply\"], names = [\"starling\"])])\n",
		"mo-thief/hooks/a.star": "def f(ctx):\n    k8s.apply({\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"starling\"}, \"data\": {\"moSharedEnabled\": \"false\"}})\n\n" +
			"hook(f, on = [startup()])\n",
	})
	g.start()
	g.waitState("mo-thief", status.ModuleFailed, "cannot apply ConfigMap "+f.ns+"/starling: another Starling takes its config from it")
	if _, err := configMap(t, f.ns, "starling"); !apierrors.IsNotFound(err) {
		t.Errorf("its config: %v", err)
	}
	g.waitState("mo-shared", status.ModuleFailed, "Module mo-shared belongs to instance "+f.ns+".starling")
	f.waitCondition("mo-shared", "Ready", "True")

	for name, spec := range map[string]string{"mo-shard": `{"instance":"` + f.ns + `/starling","enabled":true}`, "mo-other": `{"instance":"nobody/here"}`} {
		var o unstructured.Unstructured
		if err := json.Unmarshal([]byte(`{"apiVersion":"starling.dev/v1alpha1","kind":"Module","metadata":{"name":"`+name+`"},"spec":`+spec+`}`), &o.Object); err != nil {
			t.Fatal(err)
		}
		if _, err := shared.Dynamic.Resource(moduleResource).Create(t.Context(), &o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = shared.Dynamic.Resource(moduleResource).Delete(context.Background(), name, metav1.DeleteOptions{})
		})
	}
	f.waitCondition("mo-shard", "Ready", "False", "NoModule", "has no module mo-shard", "mo-shared")
	f.waitCondition("mo-shard", "Stalled", "True")

	f.patchObject("mo-fails", `{"metadata":{"annotations":{"starling.dev/reconcile":"now"}}}`)
	f.eventually("the annotation is taken off", func() error {
		o, err := f.object("mo-fails")
		if err == nil && len(o.GetAnnotations()) > 0 {
			err = fmt.Errorf("it is there: %v", o.GetAnnotations())
		}
		return err
	})
	if o, err := f.object("mo-other"); err != nil || o.Object["status"] != nil || len(o.GetLabels()) > 0 {
		t.Errorf("the object of another instance is %v, %v", o, err)
	}
}

// Values of a megabyte, and values with a mistake per line, give one condition of bounded length; the
// last good ones stay in force, and others go on.
func TestModuleObjectsOfBadValues(t *testing.T) {
	t.Parallel()
	strict := mirror("mo-bad", on)
	strict["mo-bad/openapi/config-values.yaml"] = "type: object\nadditionalProperties: false\nproperties:\n  text: {type: string, maxLength: 80}\n"
	f := withObjects(t, shared.Namespace(t), "starling", strict, mirror("mo-beside", on))
	f.start()
	f.waitCondition("mo-bad", "Ready", "True")
	f.patchObject("mo-bad", `{"spec":{"values":{"text":"good"}}}`)
	f.waitData("mo-bad", map[string]string{"text": "good"})

	mistakes := map[string]any{}
	for i := range 2000 {
		mistakes[fmt.Sprintf("no-such-key-of-the-schema-%d", i)] = i
	}
	many, err := json.Marshal(map[string]any{"spec": map[string]any{"values": mistakes}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ patch, text string }{
		{string(many), "no-such-key-of-the-schema-"},
		{`{"spec":null}`, ""},
		{`{"spec":{"values":{"text":"` + strings.Repeat("x", 1<<20) + `"}}}`, "KiB"},
	} {
		f.patchObject("mo-bad", tt.patch)
		if tt.text == "" {
			f.waitCondition("mo-bad", "ValuesValid", "True")
			continue
		}
		f.waitCondition("mo-bad", "ValuesValid", "False", "Module mo-bad", tt.text)
		o, err := f.object("mo-bad")
		if err != nil {
			t.Fatal(err)
		}
		if said, err := json.Marshal(o.Object["status"]); err != nil || len(said) > 8<<10 {
			t.Errorf("the status has %d bytes, %v", len(said), err)
		}
		f.waitCondition("mo-bad", "Ready", "True")
	}
	f.patchObject("mo-beside", `{"spec":{"values":{"text":"beside"}}}`)
	f.waitData("mo-beside", map[string]string{"text": "beside"})
	f.waitData("mo-bad", map[string]string{"text": "plain"})
}

// Without rights on Module objects Starling says so once, and goes on as without them.
func TestModuleObjectsWithoutRights(t *testing.T) {
	t.Parallel()
	definition, err := os.ReadFile("../deploy/crds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	shared.Apply(t, string(definition))
	f := newFixture(t, trees(mirror("mo-mute", on), probe()))
	f.objects = true
	f.start()
	f.waitReady()
	f.configure(map[string]string{"moMute": "text: of the ConfigMap"})
	f.waitData("mo-mute", map[string]string{"text": "of the ConfigMap"})
	f.probe()
	if n := strings.Count(f.process.Output(), "Module object"); n != 1 {
		t.Errorf("it is said %d times:\n%s", n, f.process.Output())
	}
}
