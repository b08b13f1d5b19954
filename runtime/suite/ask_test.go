package suite

import (
	"testing"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/sim/store"
)

func TestMatchesRules(t *testing.T) {
	deployment := store.Kind{Group: "apps", Version: "v1", Kind: "Deployment", Plural: "deployments", Namespaced: true}
	rule := func(group, version, resource, operation string) *builtins.AdmissionBinding {
		return &builtins.AdmissionBinding{Rules: []builtins.AdmissionRule{
			{Groups: []string{group}, Versions: []string{version}, Resources: []string{resource}, Operations: []string{operation}}}}
	}
	kind := func(apiVersion, kind string, operations ...string) *builtins.AdmissionBinding {
		return &builtins.AdmissionBinding{APIVersion: apiVersion, Kind: kind, Operations: operations}
	}
	for _, c := range []struct {
		name    string
		binding *builtins.AdmissionBinding
		want    bool
	}{
		{"its kind", kind("apps/v1", "Deployment", "CREATE", "UPDATE"), true},
		{"its kind in another version", kind("apps/v1beta1", "Deployment", "CREATE"), true},
		{"another operation", kind("apps/v1", "Deployment", "DELETE"), false},
		{"another group", kind("v1", "Deployment", "CREATE"), false},
		{"another kind", kind("apps/v1", "DaemonSet", "CREATE"), false},
		{"its resource", rule("apps", "v1", "deployments", "CREATE"), true},
		{"all", rule("*", "*", "*", "*"), true},
		{"another resource", rule("apps", "v1", "daemonsets", "CREATE"), false},
		{"a resource in another version", rule("apps", "v1beta1", "deployments", "CREATE"), false},
	} {
		if got := matchesRules(c.binding, deployment, "CREATE"); got != c.want {
			t.Errorf("%s: got %v", c.name, got)
		}
	}
}

func TestSelects(t *testing.T) {
	have := map[string]any{"app": "web"}
	for selector, want := range map[string]bool{"": true, "app=web": true, "app in (db, web)": true, "app!=web": false, "x": false, "(": false} {
		if got := selects(selector, have); got != want {
			t.Errorf("%q: got %v", selector, got)
		}
	}
	if selects("app=web", nil) || !selects("", nil) {
		t.Error("an object without labels")
	}
}

func TestCompareText(t *testing.T) {
	if err := CompareText("a\nb\n", "a\nb\n"); err != nil {
		t.Error(err)
	}
	err := CompareText("a\nc\n", "a\nb\nd\n")
	want := "    line 2: got \"c\", want \"b\"\n    line 3: got \"\", want \"d\"\n    line 4: missing, want \"\"\n"
	if got := Differences(err); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}
