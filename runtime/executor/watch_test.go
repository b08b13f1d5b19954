package executor

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/watch"
)

// What a binding says must reach the watch.
func TestWatchSpecHoldsTheWholeBinding(t *testing.T) {
	want := watch.Spec{
		ID: "id", APIVersion: "v1", Kind: "Pod", Namespaces: []string{"a"}, ExcludeNamespaces: []string{"b"},
		NamespaceLabels: "c", Names: []string{"d"}, Labels: "e", Fields: "f=g", FilterID: "h", KeepObject: true,
	}
	got := watchSpec("id", &builtins.WatchBinding{
		APIVersion: "v1", Kind: "Pod", Namespaces: []string{"a"}, ExcludeNamespaces: []string{"b"},
		NamespaceLabels: "c", Names: []string{"d"}, Labels: "e", Fields: "f=g", FilterID: "h", KeepObject: true,
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
