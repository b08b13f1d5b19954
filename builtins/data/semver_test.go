package data

import (
	"slices"
	"strings"
	"testing"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
)

// Whatever the texts are, versions are compared or refused in one line, and a version is the same as itself.
func FuzzSemver(f *testing.F) {
	f.Add("1.2.3", ">=1.2, <2")
	f.Add("v1.30.1-rc.1+k3s1", "~1.x || ^2 - 3")
	f.Add("9999999999999999999", "1.2 - 1.4")
	matches, compare := semverMember("matches"), semverMember("compare")
	f.Fuzz(func(t *testing.T, version, constraint string) {
		thread := &starlark.Thread{}
		_, err := starlark.Call(thread, matches, starlark.Tuple{starlark.String(version), starlark.String(constraint)}, nil)
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("more than one line: %q", err)
		}
		if v, err := starlark.Call(thread, compare, starlark.Tuple{starlark.String(version), starlark.String(version)}, nil); err == nil && v.String() != "0" {
			t.Errorf("%q is not the same as itself: %s", version, v)
		}
	})
}

func semverMember(name string) starlark.Value { return member("semver." + name) }

// member is a builtin of this package, as it is where no run is.
func member(name string) starlark.Value {
	specs := Specs()
	i := slices.IndexFunc(specs, func(s spec.Spec) bool { return s.Name == name })
	return specs[i].Function(func(*starlark.Thread, *spec.Spec) (spec.Scope, error) { return spec.Scope{}, nil })
}
