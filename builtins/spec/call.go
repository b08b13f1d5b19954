package spec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/effect"
)

// Call is one call of a builtin, its arguments checked and in place.
type Call struct {
	Scope
	Thread *starlark.Thread
	Spec   *Spec
	Args   []starlark.Value
	Rest   starlark.Tuple   // of a *param
	Kwargs []starlark.Tuple // of a **param
	// Written is ref= when it is written out; its argument is the api version.
	Written *effect.Ref
}

// Scope is what a call reaches of the world outside.
type Scope struct {
	// Ctx ends with what the thread is for.
	Ctx context.Context
	// Room says whether the call may go on to make so many bytes at once, or which limit it would pass.
	Room func(bytes int) error
	// Now and Random are inputs of a run: one that is played again has the same ones.
	Now    time.Time
	Random io.Reader
}

// Function makes the Starlark function of a declaration. enter says what a call reaches, or why it is refused.
func (s *Spec) Function(enter func(*starlark.Thread, *Spec) (Scope, error)) *starlark.Builtin {
	return starlark.NewBuiltin(s.Name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (v starlark.Value, err error) {
		c := &Call{Thread: t, Spec: s}
		if c.Scope, err = enter(t, s); err == nil {
			err = c.Bind(args, kwargs)
		}
		if err == nil {
			v, err = s.Call(c)
		}
		var final interface{ Final() }
		_, inner := err.(*starlark.EvalError) // of a function that it has called: that says where it has failed
		switch {
		case err != nil && (inner || errors.As(err, &final)):
			return nil, err
		case err != nil:
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		case v == nil:
			v = starlark.None
		}
		return v, nil
	})
}

// Bind puts the arguments in the places of the parameters and checks their types.
func (c *Call) Bind(args starlark.Tuple, kwargs []starlark.Tuple) error {
	params := c.Spec.Params
	if len(params) > 0 && params[0].Type == Ref {
		var err error
		if args, kwargs, err = c.takeRef(args, kwargs); err != nil {
			return err
		}
	}
	c.Args = make([]starlark.Value, len(params))
	positional, star, starstar := 0, -1, -1
	for i, p := range params {
		switch {
		case strings.HasPrefix(p.Name, "**"):
			starstar = i
		case strings.HasPrefix(p.Name, "*"):
			star = i
		case !p.Keyword && star < 0:
			positional++
		}
	}
	if n := len(args); n > positional {
		if star < 0 {
			return tooMany(params, positional, n)
		}
		c.Rest, args = args[positional:], args[:positional]
	}
	copy(c.Args, args)
	for _, kv := range kwargs {
		name, _ := starlark.AsString(kv[0])
		i := ParamIndex(params, name)
		if i < 0 {
			if starstar < 0 {
				return unexpected(c.Spec.Name, params, name)
			}
			c.Kwargs = append(c.Kwargs, kv)
			continue
		}
		if c.Args[i] != nil {
			return fmt.Errorf("%s is given twice", name)
		}
		c.Args[i] = kv[1]
	}
	for i, p := range params {
		switch {
		case i == star || i == starstar:
		case c.Args[i] == nil && p.Default == "":
			return c.missing(p)
		case c.Args[i] == starlark.None && p.Default == "None" && p.Type != Any:
			c.Args[i] = nil
		case c.Args[i] != nil:
			if err := p.Check(c.Args[i]); err != nil {
				return fmt.Errorf("%s: %w", p.Name, err)
			}
			if text, _ := starlark.AsString(c.Args[i]); p.Type == Path {
				if hint := PathHint(c.Spec.Name, text); hint != "" {
					return fmt.Errorf("%s: %s", p.Name, hint)
				}
			}
		}
	}
	return nil
}

// missing is the error about a required argument that was not given.
func (c *Call) missing(p Param) error {
	first := ""
	if len(c.Args) > 0 && c.Args[0] != nil {
		first, _ = starlark.AsString(c.Args[0])
	}
	if hint := MissingHint(p.Name, first); hint != "" {
		return fmt.Errorf("missing argument for %s (%s)", p.Name, hint)
	}
	return fmt.Errorf("missing argument for %s (%s)", p.Name, p.Type)
}

func ParamIndex(params []Param, name string) int {
	for i, p := range params {
		if p.Name == name {
			return i
		}
	}
	return -1
}

func tooMany(params []Param, most, got int) error {
	for _, p := range params {
		if p.Keyword {
			return fmt.Errorf("got %d positional arguments, want at most %d; %s goes by keyword", got, most, p.Name)
		}
	}
	return fmt.Errorf("got %d arguments, want at most %d", got, most)
}

// unexpected names the parameter that may have been meant, out of all of them.
func unexpected(builtin string, params []Param, name string) error {
	names := make([]string, 0, len(params))
	for _, p := range params {
		if !strings.HasPrefix(p.Name, "*") {
			names = append(names, p.Name)
		}
	}
	hint := ""
	if meant := ParamHint(builtin, name, names); meant != "" {
		hint = " (" + meant + ")"
	} else if len(names) > 0 {
		hint = "; it takes " + strings.Join(names, ", ")
	} else {
		hint = "; it takes none"
	}
	return fmt.Errorf("unexpected keyword argument %s%s", name, hint)
}

// index finds a parameter. Only the declared names are ever asked for.
func (c *Call) index(name string) int {
	i := ParamIndex(c.Spec.Params, name)
	if i < 0 {
		panic("builtins: " + c.Spec.Name + " declares no parameter " + name)
	}
	return i
}

// Arg returns an argument, or nil when it was not given, or is None where that is
// the default of a type of which None is no value.
func (c *Call) Arg(name string) starlark.Value { return c.Args[c.index(name)] }

// ArgOr returns an argument, or dflt.
func (c *Call) ArgOr(name string, dflt starlark.Value) starlark.Value {
	if v := c.Arg(name); v != nil {
		return v
	}
	return dflt
}

// Str returns a string argument, or "".
func (c *Call) Str(name string) string { return c.StrOr(name, "") }

// StrOr returns a string argument, or dflt.
func (c *Call) StrOr(name, dflt string) string {
	switch v := c.Arg(name).(type) {
	case starlark.String:
		return string(v)
	case starlark.Bytes:
		return string(v)
	}
	return dflt
}

// BoolOr returns a bool argument, or dflt.
func (c *Call) BoolOr(name string, dflt bool) bool {
	if v, ok := c.Arg(name).(starlark.Bool); ok {
		return bool(v)
	}
	return dflt
}

// IntOr returns an int argument. Its type check has made sure that it fits.
func (c *Call) IntOr(name string, dflt int) int {
	if v, ok := c.Arg(name).(starlark.Int); ok {
		i, _ := v.Int64()
		return int(i)
	}
	return dflt
}

// Strings returns the elements of a Strings argument, nil when not given.
func (c *Call) Strings(name string) []string {
	v := c.Arg(name)
	if v == nil {
		return nil
	}
	return StringsOf(v)
}

// Pos returns "file:line" of the Starlark code that made the call.
func (c *Call) Pos() string {
	for i := 1; i < c.Thread.CallStackDepth(); i++ {
		pos := c.Thread.CallFrame(i).Pos
		if name := pos.Filename(); name != "<builtin>" && pos.Line > 0 {
			return fmt.Sprintf("%s:%d", name, pos.Line)
		}
	}
	return ""
}
