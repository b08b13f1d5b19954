package data

import (
	libmath "go.starlark.net/lib/math"
	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
)

// Mathematics, with go.starlark.net's math library.

func mathSpecs() []spec.Spec {
	x, y := spec.Required("x", spec.Number), spec.Required("y", spec.Number)
	var specs []spec.Spec
	for _, name := range []string{
		"ceil", "floor", "round", "fabs", "sqrt", "exp", "gamma", "degrees", "radians", "sin", "cos", "tan",
		"asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
	} {
		specs = append(specs, mathSpec(name, x))
	}
	for _, name := range []string{"pow", "mod", "remainder", "copysign", "hypot"} {
		specs = append(specs, mathSpec(name, x, y))
	}
	return append(specs,
		mathSpec("atan2", y, x),
		mathSpec("log", x, spec.Optional("base", spec.Number, "e")),
		spec.Spec{Name: "math.e", Phases: spec.Anywhere, Value: libmath.Module.Members["e"]},
		spec.Spec{Name: "math.pi", Phases: spec.Anywhere, Value: libmath.Module.Members["pi"]},
	)
}

func mathSpec(name string, params ...spec.Param) spec.Spec {
	return spec.Pure("math."+name, func(c *spec.Call) (starlark.Value, error) {
		var args []starlark.Value
		for _, v := range c.Args {
			if v != nil {
				args = append(args, v)
			}
		}
		return library(c.Thread, libmath.Module.Members[name], args...)
	}, params...)
}
