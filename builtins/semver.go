package builtins

import (
	"errors"
	"fmt"

	"github.com/Masterminds/semver/v3"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/starling-operator/starling/builtins/spec"
)

// Versions: semver.

// maxConstraint bounds the text of a constraint.
const maxConstraint = 1 << 10

func semverSpecs() []spec.Spec {
	version := spec.Required("version", spec.String)
	return []spec.Spec{
		declare("semver.parse", spec.Anywhere, spec.NoEffect, callSemverParse, version),
		declare("semver.compare", spec.Anywhere, spec.NoEffect, callSemverCompare, spec.Required("a", spec.String),
			spec.Required("b", spec.String)),
		declare("semver.matches", spec.Anywhere, spec.NoEffect, callSemverMatches, version,
			spec.Required("constraint", spec.String)),
	}
}

func version(text string) (*semver.Version, error) {
	v, err := semver.NewVersion(text)
	if err != nil {
		return nil, fmt.Errorf("%q is no version, such as \"1.2.3\"", spec.Clip(text))
	}
	return v, nil
}

func callSemverParse(c *call) (starlark.Value, error) {
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

func callSemverCompare(c *call) (starlark.Value, error) {
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

func callSemverMatches(c *call) (starlark.Value, error) {
	v, err := version(c.Str("version"))
	if err != nil {
		return nil, fmt.Errorf("version: %w", err)
	}
	text := c.Str("constraint")
	if len(text) > maxConstraint {
		return nil, errors.New("constraint: longer than 1 KiB")
	}
	constraint, err := semver.NewConstraint(text)
	if err != nil {
		return nil, fmt.Errorf("constraint: %q is none, such as \">=1.2, <2\"", spec.Clip(text))
	}
	return starlark.Bool(constraint.Check(v)), nil
}
