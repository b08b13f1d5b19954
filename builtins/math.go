package builtins

import (
	libmath "go.starlark.net/lib/math"
	"go.starlark.net/starlark"
)

// Mathematics, with go.starlark.net's math library.

func mathSpecs() []Spec {
	x := Param{Name: "x", Type: TypeNumber, Doc: "A number."}
	y := Param{Name: "y", Type: TypeNumber, Doc: "Another number."}
	var specs []Spec
	for _, f := range []struct{ name, doc, returns string }{
		{"ceil", "The smallest integer that is not less than x.", "an int"},
		{"floor", "The largest integer that is not greater than x.", "an int"},
		{"round", "The nearest integer; halves go away from zero.", "a float"},
		{"fabs", "The absolute value of x.", "a float"},
		{"sqrt", "The square root of x.", "a float"},
		{"exp", "e to the power of x.", "a float"},
		{"gamma", "The gamma function of x.", "a float"},
		{"degrees", "An angle in radians as degrees.", "a float"},
		{"radians", "An angle in degrees as radians.", "a float"},
		{"sin", "The sine of an angle in radians.", "a float"},
		{"cos", "The cosine of an angle in radians.", "a float"},
		{"tan", "The tangent of an angle in radians.", "a float"},
		{"asin", "The arc sine, in radians.", "a float"},
		{"acos", "The arc cosine, in radians.", "a float"},
		{"atan", "The arc tangent, in radians.", "a float"},
		{"sinh", "The hyperbolic sine.", "a float"},
		{"cosh", "The hyperbolic cosine.", "a float"},
		{"tanh", "The hyperbolic tangent.", "a float"},
		{"asinh", "The inverse hyperbolic sine.", "a float"},
		{"acosh", "The inverse hyperbolic cosine.", "a float"},
		{"atanh", "The inverse hyperbolic tangent.", "a float"},
	} {
		specs = append(specs, mathSpec(f.name, f.doc, f.returns, x))
	}
	specs = append(specs,
		mathSpec("pow", "x to the power of y.", "a float", x, y),
		mathSpec("mod", "The remainder of x / y, with the sign of x.", "a float", x, y),
		mathSpec("remainder", "The IEEE 754 remainder of x / y.", "a float", x, y),
		mathSpec("copysign", "x with the sign of y.", "a float", x, y),
		mathSpec("hypot", "The distance of the point (x, y) from the origin.", "a float", x, y),
		mathSpec("atan2", "The angle of the point whose coordinates are given, in radians.", "a float",
			Param{Name: "y", Type: TypeNumber, Doc: "Its vertical coordinate."}, Param{Name: "x", Type: TypeNumber, Doc: "Its horizontal coordinate."}),
		mathSpec("log", "The logarithm of x.", "a float", x,
			Param{Name: "base", Type: TypeNumber, Default: "e", Doc: "Its base."}),
		Spec{Name: "math.e", Phases: PhaseAny, Doc: "The base of natural logarithms.", value: libmath.Module.Members["e"]},
		Spec{Name: "math.pi", Phases: PhaseAny, Doc: "The circumference of a circle of diameter 1.", value: libmath.Module.Members["pi"]},
	)
	return specs
}

func mathSpec(name, doc, returns string, params ...Param) Spec {
	return Spec{Name: "math." + name, Phases: PhaseAny, Params: params, Doc: doc, Returns: returns,
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
