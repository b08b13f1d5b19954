package builtins

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/object"
)

// Expectations: t.expect(x).equals(y), and assert as Starlark people type it.

// expectation is t.expect(x).
type expectation struct {
	spec.Opaque
	got starlark.Value
}

var _ starlark.HasAttrs = (*expectation)(nil)

// Attr returns one of [expectSpecs], bound to what was got.
func (e *expectation) Attr(name string) (starlark.Value, error) {
	for _, s := range expectSpecs(e.got) {
		if s.Name == "expect."+name {
			return s.Function(enter), nil
		}
	}
	return nil, nil
}

func (e *expectation) AttrNames() []string {
	var names []string
	for _, s := range expectSpecs(nil) {
		names = append(names, strings.TrimPrefix(s.Name, "expect."))
	}
	return names
}

// expectSpecs are the methods of an expectation about a value.
func expectSpecs(got starlark.Value) []spec.Spec {
	row := func(name string, check func(c *call) error, params ...spec.Param) spec.Spec {
		return declare("expect."+name, spec.InTest, spec.NoEffect,
			func(c *call) (starlark.Value, error) { return nil, c.lenient(check(c)) }, params...)
	}
	y := spec.Required("y", spec.Any)
	return []spec.Spec{
		row("equals",
			func(c *call) error { return equals(got, c.Arg("y")) }, y),
		row("contains",
			func(c *call) error { return containsValue(got, c.Arg("y")) }, y),
		row("matches", func(c *call) error { return matchesPattern(got, c.Str("pattern")) },
			spec.Required("pattern", spec.String)),
		row("is_none", func(*call) error { return equals(got, starlark.None) }),
		row("is_true", func(*call) error {
			if !got.Truth() {
				return &ExpectError{Msg: "got " + spec.Clip(got.String()) + ", want something true"}
			}
			return nil
		}),
	}
}

func assertSpecs() []spec.Spec {
	x := spec.Required("x", spec.Any)
	row := func(name string, check func(c *call) error, params ...spec.Param) spec.Spec {
		return declare("assert."+name, spec.InTest, spec.NoEffect,
			func(c *call) (starlark.Value, error) { return nil, c.lenient(check(c)) }, params...)
	}
	return []spec.Spec{
		row("eq", func(c *call) error { return equals(c.Arg("x"), c.Arg("y")) }, x, spec.Required("y", spec.Any)),
		row("ne", func(c *call) error {
			if equals(c.Arg("x"), c.Arg("y")) == nil {
				return &ExpectError{Msg: "got " + spec.Clip(c.Arg("x").String()) + ", which is not wanted"}
			}
			return nil
		}, x, spec.Required("y", spec.Any)),
		row("true", func(c *call) error {
			if !c.Arg("x").Truth() {
				return &ExpectError{Msg: c.StrOr("msg", "got "+spec.Clip(c.Arg("x").String())+", want something true")}
			}
			return nil
		}, x, spec.Optional("msg", spec.String, "None")),
		row("contains", func(c *call) error { return containsValue(c.Arg("x"), c.Arg("y")) }, x,
			spec.Required("y", spec.Any)),
		row("fails", func(c *call) error { return expectError(c, c.Str("pattern")) }, spec.Required("fn", spec.Function),
			spec.Required("pattern", spec.String)),
	}
}

func callExpect(c *call, _ *Test) (starlark.Value, error) {
	return &expectation{"expect", c.Arg("x")}, nil
}

// lenient passes over an expectation that is not met where only the end counts.
func (c *call) lenient(err error) error {
	var expected *ExpectError
	if c.ctx != nil && c.ctx.Test != nil && c.ctx.Test.Lenient && errors.As(err, &expected) {
		return nil
	}
	return err
}

func equals(got, want starlark.Value) error {
	if same, err := object.Equal(got, want); err == nil && same {
		return nil
	}
	lines := object.Differences(got, want)
	if len(lines) == 0 {
		lines = []string{fmt.Sprintf("got %s (%s), want %s (%s)", spec.Clip(got.String()), got.Type(), spec.Clip(want.String()), want.Type())}
	}
	return &ExpectError{Msg: "not equal", Differences: lines}
}

func containsValue(got, want starlark.Value) error {
	part, isText := starlark.AsString(want)
	text, inText := starlark.AsString(got)
	switch {
	case isText && inText:
		if strings.Contains(text, part) {
			return nil
		}
	case spec.IsDict(got) && spec.IsDict(want):
		return containsAll(got, want)
	case spec.IsDict(got):
		if m, ok := got.(starlark.Mapping); ok {
			if _, found, err := m.Get(want); err == nil && found {
				return nil
			}
		}
	default:
		list := starlark.Iterate(got)
		if list == nil {
			return &ExpectError{Msg: "got " + got.Type() + ", which contains nothing"}
		}
		defer list.Done()
		var e starlark.Value
		for list.Next(&e) {
			if same, err := object.Equal(e, want); err == nil && same {
				return nil
			}
		}
	}
	return &ExpectError{Msg: fmt.Sprintf("%s does not contain %s", spec.Clip(got.String()), spec.Clip(want.String()))}
}

// containsAll compares what want has with what got has in its place.
func containsAll(got, want starlark.Value) error {
	a, err := object.ToPlain(got)
	if err != nil {
		return err
	}
	b, err := object.ToPlain(want)
	if err != nil {
		return err
	}
	return equals(object.FromPlain(shared(a, b)), want)
}

// shared is what is left of got where it has what want does not have.
func shared(got, want any) any {
	a, ok1 := got.(map[string]any)
	b, ok2 := want.(map[string]any)
	if !ok1 || !ok2 {
		return got
	}
	out := map[string]any{}
	for key := range b {
		if v, ok := a[key]; ok {
			out[key] = shared(v, b[key])
		}
	}
	return out
}

func matchesPattern(got starlark.Value, pattern string) error {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return fmt.Errorf("pattern: %w", err)
	}
	text, ok := starlark.AsString(got)
	if !ok {
		text = got.String()
	}
	if !re.MatchString(text) {
		return &ExpectError{Msg: fmt.Sprintf("%q does not match %q", spec.Clip(text), spec.Clip(pattern))}
	}
	return nil
}

func expectError(c *call, pattern string) error {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return fmt.Errorf("pattern: %w", err)
	}
	_, err = starlark.Call(c.Thread, c.Arg("fn"), nil, nil)
	switch {
	case err == nil:
		return &ExpectError{Msg: fmt.Sprintf("no error, want one that matches %q", spec.Clip(pattern))}
	case !re.MatchString(err.Error()):
		return &ExpectError{Msg: fmt.Sprintf("the error is %q, want one that matches %q", spec.Clip(err.Error()), spec.Clip(pattern))}
	}
	return nil
}

// value is what t.runs returns of a run.
func (r TestRun) value() starlark.Value {
	logs := make([]any, len(r.Logs))
	for i, l := range r.Logs {
		logs[i] = l
	}
	return starlarkstruct.FromStringDict(starlark.String("run"), starlark.StringDict{
		"key": starlark.String(r.Key), "error": textOrNone(r.Error),
		"effects": object.FromPlain(r.Effects), "logs": object.FromPlain(logs),
	})
}

// NewTest returns t.
func NewTest() starlark.Value { return &namespace{name: "t", members: members("t.", testSpecs())} }
