package builtins

import (
	"errors"
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/effect"
)

// call is one call of a builtin, its arguments checked and in place.
type call struct {
	thread *starlark.Thread
	spec   *Spec
	ctx    *Context // nil on a thread without one
	run    *Run     // not nil where the spec's phases are those of runs only
	args   []starlark.Value
	rest   starlark.Tuple   // of a *param
	kwargs []starlark.Tuple // of a **param
	// written is ref= when it is written out; its argument is the api version.
	written *effect.Ref
}

// newBuiltin makes the Starlark function of a declaration.
func newBuiltin(spec *Spec) *starlark.Builtin {
	return starlark.NewBuiltin(spec.Name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		c := &call{thread: t, spec: spec, ctx: From(t)}
		v, err := c.do(args, kwargs)
		var final finalError
		var fail *FailError
		if err == nil {
			return v, nil
		}
		_, inner := err.(*starlark.EvalError) // of a function that it has called: that says where it has failed
		if inner || errors.As(err, &final) || errors.As(err, &fail) {
			return nil, err
		}
		return nil, fmt.Errorf("%s: %w", spec.Name, err)
	})
}

func (c *call) do(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if err := c.checkPhase(); err != nil {
		return nil, err
	}
	if err := c.bind(args, kwargs); err != nil {
		return nil, err
	}
	v, err := c.spec.call(c)
	if v == nil && err == nil {
		v = starlark.None
	}
	return v, err
}

// checkPhase refuses a call at the wrong time and says where the right one is.
func (c *call) checkPhase() error {
	name, allowed := c.spec.Name, c.spec.Phases
	if c.ctx == nil {
		if allowed == PhaseAny {
			return nil
		}
		return finalf("%s is not available here", name)
	}
	c.run = c.ctx.Run
	if why := c.spec.Refuses(c.ctx.Phase); why != "" {
		return finalf("%s", why)
	}
	if c.run == nil && c.ctx.Test != nil && c.spec.needsRun() {
		c.run = &Run{Now: c.ctx.Test.World.Now(), Random: c.ctx.Test.World.Random()}
	}
	if c.run == nil && c.spec.needsRun() {
		return finalf("%s is not available here", name)
	}
	if c.ctx.Phase == PhaseLoad && c.ctx.File == nil && allowed == PhaseLoad {
		return finalf("%s is not available here", name)
	}
	return nil
}

// Refuses says why the builtin may not be called in a phase, and where it may; "" when
// it may be called.
func (s *Spec) Refuses(in Phase) string {
	phases := in
	if in == PhaseReceive {
		phases |= PhaseRun // whatever a run may do
	}
	if s.Phases&phases != 0 {
		return ""
	}
	return s.Name + " " + phaseHint(in, s.Phases)
}

// needsRun reports whether calls go to a Run: to its inputs, effects or kinds. Log
// lines need none.
func (s *Spec) needsRun() bool {
	return s.Phases == PhaseDesired || s.Effect != EffectNone && s.Phases&PhaseLoad == 0 && s.Phases != PhaseTest
}

// phaseHint says why a call is refused and where it belongs.
func phaseHint(in, allowed Phase) string {
	switch {
	case allowed == PhaseTest:
		return "is only available in a test, a function of a *_test.star file"
	case in == PhaseTest:
		return "is not available in a test; call it from a hook, and look at what the hook does"
	case allowed == PhaseDesired:
		return "is only available in the desired function of a controller"
	case allowed == PhaseEnabled|PhaseDesired:
		return "is only available in enabled() and readiness() of a module.star, and in the desired function of a controller"
	case allowed == PhaseEnabled:
		return "is only available in enabled() of a module.star"
	case allowed&(PhaseReview|PhaseReceive) != 0 && allowed&PhaseRun == 0:
		return "is only available in a hook that answers a request (" + allowed.String() + ")"
	case in == PhaseReview && allowed&PhaseRun != 0:
		return "is not available in a hook that answers an admission request, which may read but not write; write from a run of another hook"
	case in == PhaseConvert && allowed&PhaseRun != 0:
		return "is not available in a conversion, which may only look at its object"
	case in == PhaseDesired && allowed&PhaseRun != 0:
		return "is not available in desired, which neither reads nor writes, and knows no time; see reads= of controller(…), and ctx.reached(t)"
	case in == PhaseFilter:
		return "is not available in a filter, which may only look at its object; call it from a hook"
	case allowed&PhaseRun == 0 && in != PhaseEnabled:
		return "is only available while a file is loading; call it outside the hook's function"
	case allowed&PhaseRun == 0:
		return "is only available while a file is loading; call it outside enabled() and readiness()"
	case in == PhaseLoad:
		return "is not available while a file is loading; call it from a hook"
	}
	return "is not available in enabled() and readiness(), which may only read; call it from a hook"
}

// bind puts the arguments in the places of the parameters and checks their types.
func (c *call) bind(args starlark.Tuple, kwargs []starlark.Tuple) error {
	params := c.spec.Params
	if len(params) > 0 && params[0].Type == TypeRef {
		var err error
		if args, kwargs, err = c.takeRef(args, kwargs); err != nil {
			return err
		}
	}
	c.args = make([]starlark.Value, len(params))
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
		c.rest, args = args[positional:], args[:positional]
	}
	copy(c.args, args)
	for _, kv := range kwargs {
		name, _ := starlark.AsString(kv[0])
		i := paramIndex(params, name)
		if i < 0 {
			if starstar < 0 {
				return unexpected(c.spec.Name, params, name)
			}
			c.kwargs = append(c.kwargs, kv)
			continue
		}
		if c.args[i] != nil {
			return fmt.Errorf("%s is given twice", name)
		}
		c.args[i] = kv[1]
	}
	for i, p := range params {
		switch {
		case i == star || i == starstar:
		case c.args[i] == nil && p.Default == "":
			return c.missing(p)
		case c.args[i] == starlark.None && p.Default == "None" && p.Type != TypeAny:
			c.args[i] = nil
		case c.args[i] != nil:
			if err := p.Type.check(c.args[i]); err != nil {
				return fmt.Errorf("%s: %w", p.Name, err)
			}
			if text, _ := starlark.AsString(c.args[i]); p.Type == TypePath {
				if hint := PathHint(c.spec.Name, text); hint != "" {
					return fmt.Errorf("%s: %s", p.Name, hint)
				}
			}
		}
	}
	return nil
}

// missing is the error about a required argument that was not given.
func (c *call) missing(p Param) error {
	first := ""
	if len(c.args) > 0 && c.args[0] != nil {
		first, _ = starlark.AsString(c.args[0])
	}
	if hint := MissingHint(p.Name, first); hint != "" {
		return fmt.Errorf("missing argument for %s (%s)", p.Name, hint)
	}
	return fmt.Errorf("missing argument for %s (%s)", p.Name, p.Type)
}

func paramIndex(params []Param, name string) int {
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
func (c *call) index(name string) int {
	i := paramIndex(c.spec.Params, name)
	if i < 0 {
		panic("builtins: " + c.spec.Name + " declares no parameter " + name)
	}
	return i
}

// arg returns an argument, or nil when it was not given, or is None where that is
// the default of a type of which None is no value.
func (c *call) arg(name string) starlark.Value { return c.args[c.index(name)] }

// argOr returns an argument, or dflt.
func (c *call) argOr(name string, dflt starlark.Value) starlark.Value {
	if v := c.arg(name); v != nil {
		return v
	}
	return dflt
}

// str returns a string argument, or "".
func (c *call) str(name string) string { return c.strOr(name, "") }

func (c *call) strOr(name, dflt string) string {
	switch v := c.arg(name).(type) {
	case starlark.String:
		return string(v)
	case starlark.Bytes:
		return string(v)
	}
	return dflt
}

func (c *call) boolOr(name string, dflt bool) bool {
	if v, ok := c.arg(name).(starlark.Bool); ok {
		return bool(v)
	}
	return dflt
}

// intOr returns an int argument. Its type check has made sure that it fits.
func (c *call) intOr(name string, dflt int) int {
	if v, ok := c.arg(name).(starlark.Int); ok {
		i, _ := v.Int64()
		return int(i)
	}
	return dflt
}

// strings returns the elements of a TypeStrings argument, nil when not given.
func (c *call) strings(name string) []string {
	v := c.arg(name)
	if v == nil {
		return nil
	}
	return stringsOf(v)
}

// pos returns "file:line" of the Starlark code that made the call.
func (c *call) pos() string {
	for i := 1; i < c.thread.CallStackDepth(); i++ {
		pos := c.thread.CallFrame(i).Pos
		if name := pos.Filename(); name != "<builtin>" && pos.Line > 0 {
			return fmt.Sprintf("%s:%d", name, pos.Line)
		}
	}
	return ""
}

// room says whether the call may go on to make so many bytes at once.
func (c *call) room(bytes int) error {
	if c.ctx == nil || c.ctx.Room == nil {
		return nil
	}
	return c.ctx.Room(bytes)
}
