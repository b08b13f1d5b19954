package values

import (
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Schema is a schema of values: defaults, validation, CEL rules. All its methods
// work on nil, which allows everything. A Schema never changes and may be used from
// several goroutines.
type Schema struct {
	file     string
	root     *structural.Structural // as far as Kubernetes has a form for it
	known    *knownFields
	spec     *spec.Schema
	patterns map[string]keyPattern
	rules    *cel.Validator // nil: no rules
	remarks  *SchemaError   // nil: none
}

// Remarks are keywords that values are not checked for, each with its place; nil: there
// are none.
func (s *Schema) Remarks() *SchemaError {
	if s == nil {
		return nil
	}
	return s.remarks
}

// File returns the name of the file that the schema was read from.
func (s *Schema) File() string {
	if s == nil {
		return ""
	}
	return s.file
}
