package rbac

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/starling-operator/starling/modules/release"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/script"
	"github.com/starling-operator/starling/runtime/sim"
	"github.com/starling-operator/starling/stdlib"
)

// A release that is in the cluster needs rights to go: of a module that has left the tree, and of a kind that a chart
// holds no more. Rights that are needed anyway are not said twice.
func TestReleasesInTheCluster(t *testing.T) {
	read := func(files map[string]string) *tree.Tree {
		fsys := fstest.MapFS{}
		for name, text := range files {
			fsys[name] = &fstest.MapFile{Data: []byte(text)}
		}
		read, err := tree.Read(fsys, tree.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return read
	}
	object := func(apiVersion, kind, more string) string {
		return "apiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata: {name: a" + more + "}\n---\n"
	}
	of := func(name, templates string) map[string]string {
		return map[string]string{
			name + "/module.star": "module(enabled = True, namespace = \"web\", installs = [grant(\"v1\", \"LimitRange\"), grant(\"apiextensions.k8s.io/v1\", \"CustomResourceDefinition\"), grant(\"a.b/v1\", \"Lamp\", namespaces = [\"lamps\"])])\n",
			name + "/Chart.yaml":  "{apiVersion: v2, name: " + name + ", version: 0.1.0}\n", name + "/templates/a.yaml": templates,
		}
	}
	before := of("stays", object("v1", "ConfigMap", "")+object("v1", "LimitRange", ""))
	maps.Copy(before, of("gone", object("v1", "Service", "")+object("v1", "ServiceAccount", ", annotations: {helm.sh/resource-policy: keep}")+object("a.b/v1", "Lamp", ", namespace: lamps")))
	before["gone/crds/a.yaml"] = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: lamps.a.b}\nspec: {group: a.b, scope: Namespaced, names: {plural: lamps, kind: Lamp}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}\n"
	gen := generation.Load(t.Context(), generation.Options{
		Tree: read(before), Std: stdlib.FS, Number: 1, Governor: script.NewGovernor(script.GovernorOptions{}),
	})
	w, err := sim.New(sim.Options{Generation: gen, Builtins: newKinds().builtins})
	if err == nil {
		err = w.Start(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"stays", "gone"} {
		if r, err := w.ReleaseOf(t.Context(), release.Ref{Module: name, Name: name, Namespace: "web"}); r == nil || err != nil {
			t.Fatalf("%s: %v, %v, %+v", name, r, err, w.Status().Modules)
		}
	}
	after := read(of("stays", object("v1", "ConfigMap", "")))
	for _, tt := range []struct {
		only []string
		want string
	}{
		{nil, "lamps: a.b/lamps [get delete] [release of gone, which is in the cluster], web: /limitranges [get delete] [release of stays, which is in the cluster], web: /services [get delete] [release of gone, which is in the cluster]"},
		{[]string{"stays"}, "web: /limitranges [get delete] [release of stays, which is in the cluster]"},
	} {
		got, err := Compute(t.Context(), Options{Tree: after, Modules: tt.only, Namespace: "starling-system", Name: "starling", Over: func(o *sim.Options) { o.Origin = w.Store().AsOrigin() }})
		var rules []string
		for _, role := range got.Roles {
			for _, r := range role.Rules {
				if strings.Contains(fmt.Sprint(r.Why), "which is in the cluster") {
					rules = append(rules, fmt.Sprintf("%s: %s/%s %v %v", role.Namespace, r.Group, r.Resource, r.Verbs, r.Why))
				}
			}
		}
		if strings.Join(rules, ", ") != tt.want || err != nil || got.Incomplete {
			t.Errorf("got  %s\nwant %s\n%v, %q", strings.Join(rules, ", "), tt.want, err, got.Notes)
		}
	}
}

// One line tells of each rule that is not given in whole: with its verbs, its names, and its reason.
func TestLacks(t *testing.T) {
	of := func(namespace string, rules ...Rule) Role { return Role{Namespace: namespace, Rules: rules} }
	needed := Result{Roles: []Role{
		of("", Rule{URL: "/metrics", Verbs: []string{"get"}, Why: []string{"a"}}, Rule{Resource: "nodes", Verbs: []string{"get", "list"}, Why: []string{"b"}}),
		of("web",
			Rule{Group: "apps", Resource: "deployments/scale", Verbs: []string{"patch", "get"}, Why: []string{"c"}},
			Rule{Resource: "secrets", Names: []string{"x", "y", "z"}, Verbs: []string{"get"}, Why: []string{"d"}}),
	}}
	had := func(_ context.Context, r cluster.Right) (bool, error) {
		return r.Verb == "list" || r.Name == "y", nil
	}
	got, err := needed.Lacks(t.Context(), had)
	want := []string{
		"get /metrics in the whole cluster (a)", "get nodes in the whole cluster (b)",
		"get, patch deployments.apps/scale in namespace web (c)", "get secrets x, z in namespace web (d)",
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
	boom := errors.New("may not impersonate")
	if _, err := needed.Lacks(t.Context(), func(context.Context, cluster.Right) (bool, error) { return false, boom }); !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
}
