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
		{Name: "fail", Phases: PhaseAny, call: callFail,
			Doc: "Ends the run, or whatever is going on, with an error. A run that fails changes nothing, unless keep says so, and is repeated.",
			Params: []Param{
				{Name: "msg", Type: TypeAny, Doc: "The mistake."},
				{Name: "retry_after", Type: TypeDuration, Default: "None", Doc: "When to try again, in 100ms at the soonest; None: as the hook's retry says."},
				{Name: "permanent", Type: TypeBool, Default: "False", Doc: "Whether trying again is of no use before something changes."},
				{Name: "keep", Type: TypeBool, Default: "False", Keyword: true, Doc: "Whether all that the run has recorded so far is committed though it fails, such as a status or a metric that tells of the error: writes, values, state, metrics and messages. A run that is repeated commits it again: write the same for the same error, and give messages a key. In a cleanup the object stays, and values and state do not count. Only in runs."},
			}},
		{Name: "requeue", Phases: PhaseRun, Effect: EffectWrite, call: callRequeue,
			Doc:    "Asks for another run after some time, if this one succeeds. Of several calls the soonest counts. Not in a cleanup: fail(…, retry_after = …) tries that again.",
			Params: []Param{{Name: "after", Type: TypeDuration, Doc: "How long after the end of this run; less than 100ms counts as 100ms."}}},
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
	msg := Param{Name: "msg", Type: TypeAny, Doc: "The message."}
	fields := Param{Name: "**fields", Type: TypeAny, Doc: "Fields of the line, as JSON where that is possible. A name that Starling uses itself (time, level, message, module, hook, file, from, trace) gets an underscore before it."}
	spec := func(level Level, doc string) Spec {
		return Spec{Name: "log." + level.String(), Phases: phases, Effect: EffectWrite, Doc: doc,
			Params: []Param{msg, fields},
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
		spec(LevelDebug, "Writes a log line for those who look for a fault."),
		spec(LevelInfo, "Writes a log line that tells what happened."),
		spec(LevelWarn, "Writes a log line about something that should be looked at."),
		spec(LevelError, "Writes a log line about something that went wrong."),
		{Name: "print", Phases: phases, Effect: EffectWrite, call: callPrint,
			Doc: "Writes a log line, as log.info does.",
			Params: []Param{
				{Name: "*args", Type: TypeAny, Doc: "The values to write."},
				{Name: "sep", Type: TypeString, Default: `" "`, Keyword: true, Doc: "The text between two values."},
			}},
	}
}

func callPrint(c *call) (starlark.Value, error) {
	msg, err := c.logText(c.rest, c.strOr("sep", " "))
	if err != nil {
		return nil, err
	}
	return nil, c.log(LevelInfo, msg, nil)
}
