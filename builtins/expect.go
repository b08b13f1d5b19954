package builtins

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/starling-operator/starling/runtime/object"
)

// Expectations: t.expect(x).equals(y), and assert as Starlark people type it.

// expectation is t.expect(x).
type expectation struct{ got starlark.Value }

var _ starlark.HasAttrs = (*expectation)(nil)

func (e *expectation) String() string        { return "<expect>" }
func (e *expectation) Type() string          { return "expect" }
func (e *expectation) Freeze()               {}
func (e *expectation) Truth() starlark.Bool  { return true }
func (e *expectation) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable type: expect") }

// Attr returns one of [expectSpecs], bound to what was got.
func (e *expectation) Attr(name string) (starlark.Value, error) {
	for _, spec := range expectSpecs(e.got) {
		if spec.Name == "expect."+name {
			return newBuiltin(&spec), nil
		}
	}
	return nil, nil
}

func (e *expectation) AttrNames() []string {
	var names []string
	for _, spec := range expectSpecs(nil) {
		names = append(names, strings.TrimPrefix(spec.Name, "expect."))
	}
	return names
}

// expectSpecs are the methods of an expectation about a value.
func expectSpecs(got starlark.Value) []Spec {
	spec := func(name string, check func(c *call) error, params ...Param) Spec {
		return Spec{Name: "expect." + name, Phases: PhaseTest, Params: params,
			call: func(c *call) (starlark.Value, error) { return nil, c.lenient(check(c)) }}
	}
	y := required("y", TypeAny)
	return []Spec{
		spec("equals",
			func(c *call) error { return equals(got, c.arg("y")) }, y),
		spec("contains",
			func(c *call) error { return containsValue(got, c.arg("y")) }, y),
		spec("matches", func(c *call) error { return matchesPattern(got, c.str("pattern")) },
			required("pattern", TypeString)),
		spec("is_none", func(*call) error { return equals(got, starlark.None) }),
		spec("is_true", func(*call) error {
			if !got.Truth() {
				return &ExpectError{Msg: "got " + clip(got.String()) + ", want something true"}
			}
			return nil
		}),
	}
}

func assertSpecs() []Spec {
	x := required("x", TypeAny)
	spec := func(name string, check func(c *call) error, params ...Param) Spec {
		return Spec{Name: "assert." + name, Phases: PhaseTest, Params: params,
			call: func(c *call) (starlark.Value, error) { return nil, c.lenient(check(c)) }}
	}
	return []Spec{
		spec("eq", func(c *call) error { return equals(c.arg("x"), c.arg("y")) }, x, required("y", TypeAny)),
		spec("ne", func(c *call) error {
			if equals(c.arg("x"), c.arg("y")) == nil {
				return &ExpectError{Msg: "got " + clip(c.arg("x").String()) + ", which is not wanted"}
			}
			return nil
		}, x, required("y", TypeAny)),
		spec("true", func(c *call) error {
			if !c.arg("x").Truth() {
				return &ExpectError{Msg: c.strOr("msg", "got "+clip(c.arg("x").String())+", want something true")}
			}
			return nil
		}, x, optional("msg", TypeString, "None")),
		spec("contains", func(c *call) error { return containsValue(c.arg("x"), c.arg("y")) }, x,
			required("y", TypeAny)),
		spec("fails", func(c *call) error { return expectError(c, c.str("pattern")) }, required("fn", TypeFunction),
			required("pattern", TypeString)),
	}
}

func callExpect(c *call, _ *Test) (starlark.Value, error) { return &expectation{c.arg("x")}, nil }

func callExpectError(c *call, _ *Test) (starlark.Value, error) {
	return nil, c.lenient(expectError(c, c.str("pattern")))
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
		lines = []string{fmt.Sprintf("got %s (%s), want %s (%s)", clip(got.String()), got.Type(), clip(want.String()), want.Type())}
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
	case isDict(got) && isDict(want):
		return containsAll(got, want)
	case isDict(got):
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
	return &ExpectError{Msg: fmt.Sprintf("%s does not contain %s", clip(got.String()), clip(want.String()))}
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
		return &ExpectError{Msg: fmt.Sprintf("%q does not match %q", clip(text), clip(pattern))}
	}
	return nil
}

func expectError(c *call, pattern string) error {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return fmt.Errorf("pattern: %w", err)
	}
	_, err = starlark.Call(c.thread, c.arg("fn"), nil, nil)
	switch {
	case err == nil:
		return &ExpectError{Msg: fmt.Sprintf("no error, want one that matches %q", clip(pattern))}
	case !re.MatchString(err.Error()):
		return &ExpectError{Msg: fmt.Sprintf("the error is %q, want one that matches %q", clip(err.Error()), clip(pattern))}
	}
	return nil
}

// value is what t.runs returns of a run.
func (r TestRun) value() starlark.Value {
	fail := starlark.Value(starlark.None)
	if r.Error != "" {
		fail = starlark.String(r.Error)
	}
	logs := make([]any, len(r.Logs))
	for i, l := range r.Logs {
		logs[i] = l
	}
	return starlarkstruct.FromStringDict(starlark.String("run"), starlark.StringDict{
		"key": starlark.String(r.Key), "error": fail,
		"effects": object.FromPlain(r.Effects), "logs": object.FromPlain(logs),
	})
}

// NewTest returns t.
func NewTest() starlark.Value {
	t := &namespace{name: "t", members: starlark.StringDict{}}
	for _, spec := range testSpecs() {
		to := t
		name := strings.TrimPrefix(spec.Name, "t.")
		if space, member, dotted := strings.Cut(name, "."); dotted {
			name = member
			if t.members[space] == nil {
				t.members[space] = &namespace{name: "t." + space, members: starlark.StringDict{}}
			}
			to = t.members[space].(*namespace)
		}
		to.members[name] = newBuiltin(&spec)
	}
	return t
}
