package executor

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Only the namespace of the module itself is made for its hooks.
func TestMissesNamespace(t *testing.T) {
	notFound := func(resource, name string) error {
		return fmt.Errorf("cannot apply: %w", apierrors.NewNotFound(schema.GroupResource{Resource: resource}, name))
	}
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{notFound("namespaces", "web"), true},
		{notFound("namespaces", "other"), false},
		{notFound("secrets", "web"), false},
		{apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "web", nil), false},
		{errors.New("broken"), false},
	} {
		if got := missesNamespace(tt.err, "web"); got != tt.want {
			t.Errorf("%v: got %v", tt.err, got)
		}
	}
}
