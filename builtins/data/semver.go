package data

import (
	"errors"
	"fmt"

	"github.com/Masterminds/semver/v3"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/starling-operator/starling/builtins/spec"
)

// Versions: semver.

// MaxConstraint bounds the text of a constraint.
const MaxConstraint = 1 << 10

func semverSpecs() []spec.Spec {
	version := spec.Required("version", spec.String)
	return []spec.Spec{
		spec.Pure("semver.parse", callSemverParse, version),
		spec.Pure("semver.compare", callSemverCompare, spec.Required("a", spec.String), spec.Required("b", spec.String)),
		spec.Pure("semver.matches", callSemverMatches, version, spec.Required("constraint", spec.String)),
	}
}

func version(text string) (*semver.Version, error) {
	v, err := semver.NewVersion(text)
	if err != nil {
		return nil, fmt.Errorf("%q is no version, such as \"1.2.3\"", spec.Clip(text))
	}
	return v, nil
}

func callSemverParse(c *spec.Call) (starlark.Value, error) {
	v, err := version(c.Str("version"))
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

func callSemverCompare(c *spec.Call) (starlark.Value, error) {
	a, err := version(c.Str("a"))
	if err != nil {
		return nil, fmt.Errorf("a: %w", err)
	}
	b, err := version(c.Str("b"))
	if err != nil {
		return nil, fmt.Errorf("b: %w", err)
	}
	return starlark.MakeInt(a.Compare(b)), nil
}

func callSemverMatches(c *spec.Call) (starlark.Value, error) {
	v, err := version(c.Str("version"))
	if err != nil {
		return nil, fmt.Errorf("version: %w", err)
	}
	text := c.Str("constraint")
	if len(text) > MaxConstraint {
		return nil, errors.New("constraint: longer than 1 KiB")
	}
	constraint, err := semver.NewConstraint(text)
	if err != nil {
		return nil, fmt.Errorf("constraint: %q is none, such as \">=1.2, <2\"", spec.Clip(text))
	}
	return starlark.Bool(constraint.Check(v)), nil
}
