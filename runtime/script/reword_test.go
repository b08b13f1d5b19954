package script

import (
	"strings"
	"testing"

	"github.com/starling-operator/starling/runtime/object"
)

// Who changes an object of the cluster is told how to have one that may be changed.
func TestObjectsAreNotChanged(t *testing.T) {
	f := newFixture(t, map[string]string{"a.star": "def f():\n    o[\"x\"] = 1\n"}, func(o *Options) {
		o.Predeclared["o"] = object.New(map[string]any{"kind": "Node"})
	})
	_, _, err := f.call(t, t.Context(), Limits{})
	if err == nil || !strings.Contains(err.Error(), "a.star:2:") || !strings.HasSuffix(err.Error(), "(dict(o) makes a copy you may change)") {
		t.Error(err)
	}
}
