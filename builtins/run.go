package builtins

import (
	"cmp"
	"errors"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/object"
)

// A run speaks about itself by these builtins: fail, requeue and its log.

func runSpecs() []spec.Spec {
	return []spec.Spec{
		declare("fail", spec.Anywhere, spec.NoEffect, callFail, spec.Required("msg", spec.Any),
			spec.Optional("retry_after", spec.Duration, "None"), spec.Optional("permanent", spec.Bool, "False"),
			spec.Keyword("keep", spec.Bool, "False")),
		declare("requeue", spec.InRun, spec.Writes, callRequeue, spec.Required("after", spec.Duration)),
	}
}

func callFail(c *call) (starlark.Value, error) {
	e := &FailError{
		Msg:        textOf(c.Arg("msg")),
		RetryAfter: c.DurationOr("retry_after", 0),
		Permanent:  c.BoolOr("permanent", false),
		Keep:       c.BoolOr("keep", false),
	}
	if e.Keep && (c.ctx == nil || c.ctx.Phase&(spec.InRun|spec.InReceive) == 0) {
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
	after := c.DurationOr("after", 0)
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
	if s, ok := object.Text(v, spec.MaxText); ok {
		return s
	}
	return unshown(v)
}

func unshown(v starlark.Value) string { return "<" + v.Type() + " that is too large to be shown>" }

func logSpecs() []spec.Spec {
	const phases = spec.Anywhere &^ (spec.InFilter | spec.InReceive)
	params := []spec.Param{spec.Required("msg", spec.Any), spec.Rest("**fields", spec.Any)}
	row := func(level Level) spec.Spec {
		return declare("log."+level.String(), phases, spec.Writes, func(c *call) (starlark.Value, error) {
			msg, err := c.logText([]starlark.Value{c.Arg("msg")}, "")
			if err != nil {
				return nil, err
			}
			fields, err := c.plainFields()
			if err != nil {
				return nil, err
			}
			return nil, c.log(level, msg, fields)
		}, params...)
	}
	return []spec.Spec{row(LevelDebug), row(LevelInfo), row(LevelWarn), row(LevelError),
		declare("print", phases, spec.Writes, callPrint, spec.Rest("*args", spec.Any),
			spec.Keyword("sep", spec.String, `" "`)),
	}
}

func callPrint(c *call) (starlark.Value, error) {
	msg, err := c.logText(c.Rest, c.StrOr("sep", " "))
	if err != nil {
		return nil, err
	}
	return nil, c.log(LevelInfo, msg, nil)
}
