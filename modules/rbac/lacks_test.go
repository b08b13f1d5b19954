package rbac

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/starling-operator/starling/runtime/cluster"
)

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
