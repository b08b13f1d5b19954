package builtins

import (
	"cmp"
	"errors"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/object"
)

// A run speaks about itself by these builtins: fail, requeue and its log.

func runSpecs() []Spec {
	return []Spec{
		{Name: "fail", Phases: PhaseAny, call: callFail, Params: []Param{
			required("msg", TypeAny), optional("retry_after", TypeDuration, "None"),
			optional("permanent", TypeBool, "False"), keyword("keep", TypeBool, "False"),
		}},
		{Name: "requeue", Phases: PhaseRun, Effect: EffectWrite, call: callRequeue,
			Params: []Param{required("after", TypeDuration)}},
	}
}

func callFail(c *call) (starlark.Value, error) {
	e := &FailError{
		Msg:        textOf(c.arg("msg")),
		RetryAfter: c.durationOr("retry_after", 0),
		Permanent:  c.boolOr("permanent", false),
		Keep:       c.boolOr("keep", false),
	}
	if e.Keep && (c.ctx == nil || c.ctx.Phase&(PhaseRun|PhaseReceive) == 0) {
		return nil, errors.New("keep: only the run of a hook has effects that can be kept")
	}
	if e.RetryAfter > 0 {
		e.RetryAfter = max(e.RetryAfter, minRequeue)
	}
	if e.Permanent && e.RetryAfter > 0 {
		return nil, errors.New("retry_after and permanent exclude each other")
	}
	e.Msg = cmp.Or(e.Msg, "the hook failed without a message")
	return nil, e
}

// minRequeue is the shortest pause that requeue makes: a hook that asks for its next run
// again and again is not to run all the time.
const minRequeue = 100 * time.Millisecond

func callRequeue(c *call) (starlark.Value, error) {
	after := c.durationOr("after", 0)
	if c.run.Cleanup {
		return nil, errors.New(`a cleanup that succeeds lets the object go, so none comes after it; fail("…", retry_after = …) tries it again`)
	}
	if after == 0 {
		return nil, errors.New("after: must be more than 0")
	}
	after = max(after, minRequeue)
	if old := c.run.Effects.Requeue; old == 0 || after < old {
		c.run.Effects.Requeue = after
	}
	return nil, nil
}

// textOf is str(x): text as it is, all else as it is written, if that is not too much.
func textOf(v starlark.Value) string {
	if s, ok := object.Text(v, maxText); ok {
		return s
	}
	return unshown(v)
}

func unshown(v starlark.Value) string { return "<" + v.Type() + " that is too large to be shown>" }

func logSpecs() []Spec {
	const phases = PhaseLoad | PhaseRun | PhaseEnabled | PhaseReview | PhaseConvert | PhaseDesired | PhaseTest
	params := []Param{required("msg", TypeAny), rest("**fields", TypeAny)}
	spec := func(level Level) Spec {
		return Spec{Name: "log." + level.String(), Phases: phases, Effect: EffectWrite, Params: params,
			call: func(c *call) (starlark.Value, error) {
				msg, err := c.logText([]starlark.Value{c.arg("msg")}, "")
				if err != nil {
					return nil, err
				}
				fields, err := c.plainFields()
				if err != nil {
					return nil, err
				}
				return nil, c.log(level, msg, fields)
			}}
	}
	return []Spec{
		spec(LevelDebug),
		spec(LevelInfo),
		spec(LevelWarn),
		spec(LevelError),
		{Name: "print", Phases: phases, Effect: EffectWrite, call: callPrint,
			Params: []Param{rest("*args", TypeAny), keyword("sep", TypeString, `" "`)}},
	}
}

func callPrint(c *call) (starlark.Value, error) {
	msg, err := c.logText(c.rest, c.strOr("sep", " "))
	if err != nil {
		return nil, err
	}
	return nil, c.log(LevelInfo, msg, nil)
}
