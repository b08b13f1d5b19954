package executor

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.starlark.net/starlark"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/watch"
)

// All fields of a binding must reach the watch.
func TestWatchSpecHoldsTheWholeBinding(t *testing.T) {
	want := watch.Spec{
		ID: "id", APIVersion: "v1", Kind: "Pod", Namespaces: []string{"a"}, ExcludeNamespaces: []string{"b"},
		NamespaceLabels: "c", Names: []string{"d"}, Labels: "e", Fields: "f=g", FilterID: "h", KeepObject: true,
	}
	got := watchSpec("id", &builtins.WatchBinding{
		APIVersion: "v1", Kind: "Pod", Namespaces: []string{"a"}, ExcludeNamespaces: []string{"b"},
		NamespaceLabels: "c", Names: []string{"d"}, Labels: "e", Fields: "f=g", FilterID: "h", KeepObject: true,
	})
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(watch.Spec{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A list that is refused is told apart from one that fails: the next try would be refused as well.
func TestRefusedLists(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false}, {errors.New("cut off"), false}, {apierrors.NewTooManyRequests("later", 1), false}, {apierrors.NewServiceUnavailable("down"), false},
		{apierrors.NewForbidden(secrets, "", nil), true}, {fmt.Errorf("cannot list: %w", apierrors.NewForbidden(secrets, "", nil)), true},
	} {
		if in := Failed("w", c.err, true); in.Refused != c.want || (in.Reason == "") != (c.err == nil) || !in.Lacks || in.ID != "w" {
			t.Errorf("%v: %+v", c.err, in)
		}
	}
}

// A filter has the same mark in each life of its module, so that a process which it has
// taken along counts at the next start.
func TestTheMarkOfAFilterOutlivesALifeOfItsModule(t *testing.T) {
	var marked []string
	x := New(Options{
		Generation: &generation.Generation{}, Log: func(string, string) builtins.Logger { return nil },
		Mark: func(what, _ string) (func(bool), error) {
			marked = append(marked, what)
			return nil, errors.New("quarantined")
		},
	})
	program := starlark.NewBuiltin("f", nil)
	hook := &generation.Hook{Module: "web", HookDecl: &builtins.HookDecl{ForEach: "pods", Bindings: []builtins.Binding{
		{Name: "pods", Watch: &builtins.WatchBinding{APIVersion: "v1", Kind: "Pod"}},
	}}}
	for _, id := range []string{"web/hooks/a.star:f#nodes", "web/hooks/a.star:f#nodes#2", "web/hooks/a.star:f#nodes#2.1"} {
		spec := x.WatchSpec(t.Context(), engine.StartWatch{
			ID: id, Hook: hook, Watch: &builtins.WatchBinding{APIVersion: "v1", Kind: "Node", Filter: program, Wakes: program, WakesID: "w"},
		})
		_, _, err := spec.Filter(nil)
		if _, wrong := spec.Wakes(nil); err == nil || wrong == nil || spec.WakesID != "w" || !spec.Apart {
			t.Error("what is quarantined is called")
		}
	}
	slices.Sort(marked)
	if want := []string{"the filter of web/hooks/a.star:f#nodes", "wakes of web/hooks/a.star:f#nodes"}; !slices.Equal(slices.Compact(marked), want) {
		t.Errorf("marked are %q", marked)
	}
}
