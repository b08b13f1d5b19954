package builtins

import (
	"errors"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
)

func envSpecs() []spec.Spec {
	return []spec.Spec{
		declare("env", spec.InRun|spec.InReview, spec.Reads, callEnv, spec.Required("name", spec.String),
			spec.Optional("default", spec.String, "None")),
	}
}

func callEnv(c *call) (starlark.Value, error) {
	name := c.Str("name")
	switch {
	case name == "":
		return nil, errors.New("name: it is empty")
	case c.run.Env == nil:
		return nil, errors.New("there are no environment variables here")
	}
	text, err := c.run.Env(name)
	switch {
	case err != nil && c.Arg("default") != nil:
		return c.Arg("default"), nil
	case err != nil:
		return nil, err
	}
	return starlark.String(text), nil
}
