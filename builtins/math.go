package builtins

import (
	libmath "go.starlark.net/lib/math"
	"go.starlark.net/starlark"
)

// Mathematics, with go.starlark.net's math library.

func mathSpecs() []Spec {
	x, y := required("x", TypeNumber), required("y", TypeNumber)
	var specs []Spec
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
		mathSpec("log", x, optional("base", TypeNumber, "e")),
		Spec{Name: "math.e", Phases: PhaseAny, value: libmath.Module.Members["e"]},
		Spec{Name: "math.pi", Phases: PhaseAny, value: libmath.Module.Members["pi"]},
	)
}

func mathSpec(name string, params ...Param) Spec {
	return Spec{Name: "math." + name, Phases: PhaseAny, Params: params,
		call: func(c *call) (starlark.Value, error) {
			var args []starlark.Value
			for _, v := range c.args {
				if v != nil {
					args = append(args, v)
				}
			}
			return c.library(libmath.Module.Members[name], args...)
		}}
}
