package values

import (
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Schema is a Kubernetes structural schema of values: defaults, validation, CEL
// rules. All its methods work on nil, which allows everything. A Schema never
// changes and may be used from several goroutines.
type Schema struct {
	file     string
	root     *structural.Structural
	defaults *filler
	spec     *spec.Schema
	patterns map[string]int // how many instructions each has
	rules    *cel.Validator // nil: no rules
	helm     *required      // nil: nothing is required for Helm
}

// File returns the name of the file that the schema was read from.
func (s *Schema) File() string {
	if s == nil {
		return ""
	}
	return s.file
}
