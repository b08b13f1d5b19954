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
	version := Param{Name: "version", Type: TypeString, Doc: "A version: \"1.2.3\", \"v1.30.1+k3s1\"; missing parts are 0, so \"1.2\" is 1.2.0."}
	return []Spec{
		{Name: "semver.parse", Phases: PhaseAny, call: callSemverParse, Params: []Param{version},
			Returns: "a struct: major, minor, patch (ints), prerelease and metadata (texts, \"\" when there is none)",
			Doc:     "Takes a version apart. A text that is no version is an error."},
		{Name: "semver.compare", Phases: PhaseAny, call: callSemverCompare,
			Returns: "-1, 0 or 1: a is older than b, the same, newer",
			Doc:     "Compares two versions by the rules of semantic versioning: a prerelease is older than its release, metadata does not count.",
			Params: []Param{
				{Name: "a", Type: TypeString, Doc: "One version, as semver.parse takes it."},
				{Name: "b", Type: TypeString, Doc: "The other."},
			}},
		{Name: "semver.matches", Phases: PhaseAny, call: callSemverMatches,
			Returns: "True or False",
			Doc:     "Reports whether a version meets a constraint. As in Helm, a prerelease matches only constraints that name one: \">=1.2.0-0\".",
			Params: []Param{version,
				{Name: "constraint", Type: TypeString, Doc: "Conditions, \",\" or a space for and, \"||\" for or: \">=1.2, <2\", \"~1.2\", \"^1.2.3\", \"1.x\", \"1.2 - 1.4\"."},
			}},
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
