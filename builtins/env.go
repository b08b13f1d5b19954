package builtins

import (
	"errors"

	"go.starlark.net/starlark"
)

func envSpecs() []Spec {
	return []Spec{
		{Name: "env", Phases: PhaseRun | PhaseReview, Effect: EffectRead, call: callEnv,
			Params: []Param{required("name", TypeString), optional("default", TypeString, "None")}},
	}
}

func callEnv(c *call) (starlark.Value, error) {
	name := c.str("name")
	switch {
	case name == "":
		return nil, errors.New("name: it is empty")
	case c.run.Env == nil:
		return nil, errors.New("there are no environment variables here")
	}
	text, err := c.run.Env(name)
	switch {
	case err != nil && c.arg("default") != nil:
		return c.arg("default"), nil
	case err != nil:
		return nil, err
	}
	return starlark.String(text), nil
}
