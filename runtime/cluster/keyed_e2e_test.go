//go:build e2e

package cluster

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/starling-operator/starling/runtime/apply"
	"github.com/starling-operator/starling/runtime/object"
)

// Of a list with a key twice the API server takes in a create what OnePerKey does not refuse, and by server-side apply
// what OnePerKey has made of it, and never the list itself.
func TestKeysThatAreThereTwice(t *testing.T) {
	t.Parallel()
	w := newRealWorld(t)
	client, err := dynamic.NewForConfig(shared.Config)
	if err != nil {
		t.Fatal(err)
	}
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: [{name: a, image: a, volumeMounts: [{name: v, mountPath: /v}], env: [{name: E}], ports: [{containerPort: 1}]}], volumes: [{name: v, emptyDir: {}}]}\n"
	in := func(place, with string) string { return strings.Replace(pod, place, with, 1) }
	for name, c := range map[string]struct {
		text    string
		refused bool
	}{
		"variables":         {in("env: [{name: E}]", "env: [{name: E, value: a}, {name: F, value: $(E)}, {name: E, value: $(E)b}]"), false},
		"ports":             {in("{containerPort: 1}", "{containerPort: 1, name: a}, {containerPort: 1, name: b, protocol: TCP}"), false},
		"ports of the host": {in("{containerPort: 1}", "{containerPort: 1, hostPort: 1}, {containerPort: 1, hostPort: 2}"), false},
		"secrets of images": {in("spec: {", "spec: {imagePullSecrets: [{name: a}, {name: a}], "), false},
		"hosts":             {in("spec: {", "spec: {hostAliases: [{ip: 1.1.1.1, hostnames: [a]}, {ip: 1.1.1.1, hostnames: [b]}], "), false},
		"finalizers":        {in("{name: x}", "{name: x, finalizers: [a.b/c, a.b/c]}"), false},
		"tokens":            {"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: x}\nsecrets: [{name: a}, {name: a}]\n", false},
		"mounts":            {in("{name: v, mountPath: /v}", "{name: v, mountPath: /v}, {name: v, mountPath: /v}"), true},
		"volumes":           {in("volumes: [", "volumes: [{name: v, emptyDir: {}}, "), true},
		"containers":        {in("containers: [", "initContainers: [{name: b, image: b}, {name: b, image: c}], containers: ["), true},
		"a Service":         {"apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: {ports: [{port: 1, name: a}, {port: 1, name: b}]}\n", true},
		"spread": {in("spec: {", "spec: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}, "+
			"{maxSkew: 2, topologyKey: a, whenUnsatisfiable: DoNotSchedule}], "), true},
	} {
		t.Run(name, func(t *testing.T) {
			obj := parse(t, c.text)
			one, found := object.OnePerKey(obj, nil)
			if len(found) == 0 || found[0].Refused && !c.refused && name != "ports of the host" {
				t.Fatalf("found %v", found)
			}
			resource := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: strings.ToLower(obj["kind"].(string)) + "s"}).Namespace(w.ns)
			dry := []string{metav1.DryRunAll}
			_, err = resource.Create(t.Context(), &unstructured.Unstructured{Object: obj}, metav1.CreateOptions{DryRun: dry})
			if (err != nil) != c.refused {
				t.Errorf("a create gives %v", err)
			}
			send := func(obj map[string]any) error {
				data, err := json.Marshal(obj)
				if err != nil {
					t.Fatal(err)
				}
				_, err = resource.Apply(t.Context(), "x", &unstructured.Unstructured{Object: parse(t, string(data))}, metav1.ApplyOptions{FieldManager: "a", DryRun: dry})
				return err
			}
			if err := send(obj); err == nil {
				t.Error("server-side apply takes it")
			}
			if err := send(one); (err != nil) != found[0].Refused {
				t.Errorf("what is made of it: %v", err)
			}
		})
	}
}

// An object that Helm, or somebody, has written with a key twice ends with what is wanted of it.
func TestKeysThatAreThereTwiceAlready(t *testing.T) {
	t.Parallel()
	w := newRealWorld(t)
	client, err := dynamic.NewForConfig(shared.Config)
	if err != nil {
		t.Fatal(err)
	}
	to := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "podtemplates"}).Namespace(w.ns)
	pods := func(env string) *unstructured.Unstructured { // of a kind that no controller writes
		return &unstructured.Unstructured{Object: parse(t, "apiVersion: v1\nkind: PodTemplate\nmetadata: {name: x}\ntemplate: {spec: {containers: [{name: a, image: a, env: ["+env+"]}]}}\n")}
	}
	const twice = "{name: ONE, value: foo}, {name: TWO, value: bar}, {name: ONE, value: baz}"
	live, err := to.Create(t.Context(), pods(twice), metav1.CreateOptions{FieldManager: "helm"})
	if err != nil {
		t.Fatal(err)
	}
	writer := apply.Writer{Manager: "starling", Before: []string{"helm"}}
	for _, step := range []struct{ by, env, want string }{
		{"", twice, "TWO=bar ONE=baz"},
		{twice, twice, "TWO=bar ONE=baz"}, // somebody edits it so
		{"", "{name: ONE, value: foo}, {name: TWO, value: bar}", "ONE=foo TWO=bar"},
		{twice, "{name: ONE, value: foo}, {name: TWO, value: bar}", "ONE=foo TWO=bar"},
	} {
		if step.by != "" {
			edited := pods(step.by)
			edited.SetResourceVersion(live.GetResourceVersion())
			if live, err = to.Update(t.Context(), edited, metav1.UpdateOptions{FieldManager: "somebody"}); err != nil {
				t.Fatal(err)
			}
		}
		want := pods(step.env)
		want.Object, _ = object.OnePerKey(want.Object, nil)
		if live, err = writer.Apply(t.Context(), to, apply.Object{Want: want, Live: live, Whole: want}); err != nil {
			t.Fatal(err)
		}
		containers, _ := object.Get(live.Object, []string{"template", "spec", "containers"})
		env, _ := containers.([]any)[0].(map[string]any)["env"].([]any)
		var got []string
		for _, e := range env {
			got = append(got, fmt.Sprintf("%v=%v", e.(map[string]any)["name"], e.(map[string]any)["value"]))
		}
		if strings.Join(got, " ") != step.want {
			t.Errorf("after %v: %v, want %s", step, got, step.want)
		}
	}
}
