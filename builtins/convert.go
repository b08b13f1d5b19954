package builtins

import "go.starlark.net/starlark"

// ConvertBinding is k8s.convert(...).
type ConvertBinding struct {
	// CRD is the name of the CustomResourceDefinition: "crontabs.stable.example.com".
	CRD string
	// Steps are the functions by the versions they lead from and to, without the
	// group: {"v1alpha1", "v1"}.
	Steps map[[2]string]starlark.Callable
}
