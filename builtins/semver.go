package builtins

import (
	"errors"
	"fmt"

	"github.com/Masterminds/semver/v3"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
)

// Versions: semver.

// maxConstraint bounds the text of a constraint.
const maxConstraint = 1 << 10

func semverSpecs() []Spec {
	version := required("version", TypeString)
	return []Spec{
		{Name: "semver.parse", Phases: PhaseAny, call: callSemverParse, Params: []Param{version}},
		{Name: "semver.compare", Phases: PhaseAny, call: callSemverCompare,
			Params: []Param{required("a", TypeString), required("b", TypeString)}},
		{Name: "semver.matches", Phases: PhaseAny, call: callSemverMatches,
			Params: []Param{version, required("constraint", TypeString)}},
	}
}

func version(text string) (*semver.Version, error) {
	v, err := semver.NewVersion(text)
	if err != nil {
		return nil, fmt.Errorf("%q is no version, such as \"1.2.3\"", clip(text))
	}
	return v, nil
}

func callSemverParse(c *call) (starlark.Value, error) {
	v, err := version(c.str("version"))
	if err != nil {
		return nil, err
	}
	return starlarkstruct.FromStringDict(starlark.String("version"), starlark.StringDict{
		"major":      starlark.MakeUint64(v.Major()),
		"minor":      starlark.MakeUint64(v.Minor()),
		"patch":      starlark.MakeUint64(v.Patch()),
		"prerelease": starlark.String(v.Prerelease()),
		"metadata":   starlark.String(v.Metadata()),
	}), nil
}

func callSemverCompare(c *call) (starlark.Value, error) {
	a, err := version(c.str("a"))
	if err != nil {
		return nil, fmt.Errorf("a: %w", err)
	}
	b, err := version(c.str("b"))
	if err != nil {
		return nil, fmt.Errorf("b: %w", err)
	}
	return starlark.MakeInt(a.Compare(b)), nil
}

func callSemverMatches(c *call) (starlark.Value, error) {
	v, err := version(c.str("version"))
	if err != nil {
		return nil, fmt.Errorf("version: %w", err)
	}
	text := c.str("constraint")
	if len(text) > maxConstraint {
		return nil, errors.New("constraint: longer than 1 KiB")
	}
	constraint, err := semver.NewConstraint(text)
	if err != nil {
		return nil, fmt.Errorf("constraint: %q is none, such as \">=1.2, <2\"", clip(text))
	}
	return starlark.Bool(constraint.Check(v)), nil
}
