package hostile

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// lampOf is a definition in a group that has the name of the namespace.
func lampOf(fields string) string {
	return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: lamps.$NS.example.org}\n" +
		"spec:\n  group: $NS.example.org\n  scope: Namespaced\n  names: {kind: Lamp, plural: lamps}\n" +
		"  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {" + fields + "}}}}}}]\n"
}

// victims are objects of others: of a module with a definition, an object of a hook and a set, and of another instance.
var victims = attack{name: "lamps", objects: strings.ReplaceAll(`
{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: second, namespace: $NS, LABEL}, spec: {holderIdentity: them}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: second-releases, namespace: $NS, LABEL}, data: {of: them}}
---
{apiVersion: v1, kind: Secret, metadata: {name: second-kept-db, namespace: $NS, LABEL}, stringData: {of: them}}
---
{apiVersion: v1, kind: Secret, metadata: {name: second-webhooks, namespace: $NS, LABEL}, stringData: {of: them}}
`, "LABEL", "labels: {starling.dev/instance: $NS.second}"), files: map[string]string{
	"module.star":    "module(enabled = True, grants = [grant(\"v1\", \"ConfigMap\", verbs = [\"write\"])])\n",
	"crds/lamp.yaml": lampOf("color: {type: string}"),
	"hooks/a.star": `
def of(name):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"of": "lamps"}}

def run(ctx):
    k8s.apply(of("hooked"))
    k8s.apply_set("all", [of("member")])

hook(run, on = [startup()])
`}}

// theirs are all of them.
var theirs = []struct{ group, version, resource, name string }{
	{"coordination.k8s.io", "v1", "leases", "second"},
	{"", "v1", "configmaps", "second-releases"},
	{"", "v1", "secrets", "second-kept-db"},
	{"", "v1", "secrets", "second-webhooks"},
	{"", "v1", "configmaps", "hooked"},
	{"", "v1", "configmaps", "member"},
	{"apiextensions.k8s.io", "v1", "customresourcedefinitions", "lamps.$NS.example.org"},
}

// asTheyAre are what people care about of these objects.
func (a *arena) asTheyAre() (map[string]string, error) {
	client, err := dynamic.NewForConfig(shared.Config)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, of := range theirs {
		name, ns := strings.ReplaceAll(of.name, "$NS", a.ns), a.ns
		if of.resource == "customresourcedefinitions" {
			ns = ""
		}
		o, err := client.Resource(schema.GroupVersionResource{Group: of.group, Version: of.version, Resource: of.resource}).Namespace(ns).Get(a.t.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			all[name] = "it is gone"
			continue
		}
		if err != nil {
			return nil, err
		}
		conversion, _, _ := unstructured.NestedString(o.Object, "spec", "conversion", "strategy")
		holder, _, _ := unstructured.NestedString(o.Object, "spec", "holderIdentity")
		versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
		all[name] = fmt.Sprint(o.GetUID(), o.Object["data"], o.GetLabels(), o.GetAnnotations()["meta.helm.sh/release-name"], o.GetFinalizers(), conversion, holder, versions)
	}
	return all, nil
}

// adopts is a module that has a chart of objects of others, and the line that takes objects over.
func adopts(name, template, says string) attack {
	return attack{name: name, says: []string{says}, files: map[string]string{"templates/a.yaml": template,
		"module.star": "module(enabled = True, adopt = True, installs = [grant(\"apiextensions.k8s.io/v1\", \"CustomResourceDefinition\")])\n"}}
}

// takes are modules that take what others have.
var takes = []attack{
	adopts("adopts-lease", "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: second}, spec: {holderIdentity: me}}", "it belongs to the starling instance of"),
	adopts("adopts-kept", "{apiVersion: v1, kind: Secret, metadata: {name: second-kept-db}, stringData: {of: me}}", "it belongs to the starling instance of"),
	adopts("adopts-hooked", "{apiVersion: v1, kind: ConfigMap, metadata: {name: hooked}, data: {of: me}}", "a hook of module lamps has made it"),
	adopts("adopts-member", "{apiVersion: v1, kind: ConfigMap, metadata: {name: member}, data: {of: me}}", "a hook of module lamps has made it"),
	{name: "aaa-defines", says: []string{"is there, differs, and is that of module lamps"}, files: map[string]string{"crds/a.yaml": lampOf("size: {type: integer}")}},
	adopts("adopts-definition", lampOf("size: {type: integer}"), "it is defined by module lamps"),
}

// powers are modules that reach further than their module.star says, and than any may.
var powers = []attack{
	granted("patches-lease", `k8s.patch("coordination.k8s.io/v1", "Lease", "second", merge = {"spec": {"holderIdentity": "me"}})`, ownObject),
	granted("applies-lease", `k8s.apply({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "second"}, "spec": {"holderIdentity": "me"}})`, ownObject),
	granted("deletes-kept", `k8s.delete("v1", "Secret", "second-kept-db")`, ownObject),
	granted("changes-key", `k8s.patch("v1", "Secret", "second-webhooks", jq = ".data = {}")`, ownObject),
	granted("changes-records", `k8s.patch("v1", "ConfigMap", "second-releases", json = [{"op": "remove", "path": "/data"}])`, ownObject),
	{name: "mutates-all", says: []string{"module.star does not show it"}, files: map[string]string{
		"crds/a.yaml":  strings.NewReplacer("$NS.example.org", "apps", "lamps", "deployments", "Lamp", "Deployment").Replace(lampOf("")),
		"hooks/a.star": "hook(lambda ctx: None, name = \"x\", on = [k8s.mutate(\"apps/v1\", \"Deployment\", failure_policy = \"ignore\")])\n"}},
	{name: "mutates-theirs", says: []string{"module.star does not show it"}, files: map[string]string{"crds/a.yaml": lampOf("color: {type: string}"),
		"hooks/a.star": "hook(lambda ctx: None, name = \"x\", on = [k8s.mutate(\"$NS.example.org/v1\", \"Lamp\", failure_policy = \"ignore\")])\n"}},
	{name: "mutates-by-list", says: []string{"module.star does not show it"}, files: map[string]string{
		"lib/a.star":   "def all(f):\n    return [hook(f, name = k, on = [k8s.mutate(\"v1\", k, failure_policy = \"ignore\")]) for k in [\"Secret\", \"ConfigMap\"]]\n",
		"hooks/a.star": "load(\"../lib/a.star\", \"all\")\n\nall(lambda ctx: None)\n"}},
}

// bomb is a module whose section in the values.yaml of the tree makes too much.
var bomb = attack{name: "bomb", says: []string{"section bomb: values.yaml is too large: with its aliases it makes more than"}}

// bombValues is that file.
func bombValues() string {
	text := "healthy: {a: 1}\nbomb:\n  l0: &l0 x\n"
	for i := range 9 {
		text += fmt.Sprintf("  l%d: &l%d [%s]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*l%d,", i), 10))
	}
	return text
}

// Objects of others stay theirs, whatever a module applies, adopts or mutates; after a start with all of them, too.
func TestBoundaries(t *testing.T) {
	a := newArena(t)
	a.start()
	beats := a.beat(a.waitBeat())
	a.strike(victims)
	a.write(victims.tree())
	var before map[string]string
	a.eventually("what others have is there", func() (err error) {
		if before, err = a.asTheyAre(); err == nil && strings.Contains(fmt.Sprint(before), "it is gone") {
			err = fmt.Errorf("%v", before)
		}
		return err
	})
	all := append(append(takes, powers...), bomb)
	stays := func(when string) {
		t.Helper()
		for _, each := range all {
			a.waitSays(each)
		}
		now, err := a.asTheyAre()
		if err != nil {
			t.Fatal(err)
		}
		for name, was := range before {
			if now[name] != was {
				t.Errorf("%s: %s was %s\nand is %s", when, name, was, now[name])
			}
		}
	}
	for _, each := range all {
		a.write(each.tree())
	}
	a.write(map[string]string{"values.yaml": bombValues()})
	stays("after a reload")
	beats.end()
	a.stop()
	a.start()
	a.waitBeat()
	stays("after a start")
	a.stop()
}
