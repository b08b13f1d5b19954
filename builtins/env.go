package builtins

import (
	"errors"

	"go.starlark.net/starlark"
)

func envSpecs() []Spec {
	return []Spec{{
		Name: "env", Phases: PhaseRun | PhaseReview, Effect: EffectRead, call: callEnv, Returns: "the text",
		Doc: "Reads an environment variable of Starling, of those that --hook-env of starling run names; any other is default, or an error. It is as it was when the process began, and shown in logs and records: passwords belong in Secrets, see k8s.secret. In a test t.env gives it.",
		Params: []Param{
			{Name: "name", Type: TypeString, Doc: "Name of the variable."},
			{Name: "default", Type: TypeString, Default: "None", Doc: "The result for a variable that nobody names, or that a test does not give; None: that is an error."},
		},
	}}
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
