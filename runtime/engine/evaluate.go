package engine

import (
	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/lane"
)

// evaluation is what is known of def enabled().
type evaluation struct {
	lane.Task
	version  int // of the values that the answer rests on
	decision builtins.Decision
}

// evaluate asks enabled() again when the values that it saw have moved.
func (e *Engine) evaluate(m *module) {
	ev := &m.eval
	if m.gen.Enabled == nil || ev.Running || (ev.Done && ev.version == m.values.Version() && ev.Err == "") || ev.Waits(e.now) {
		return
	}
	view, known := e.viewOfEnabled(m)
	if !known {
		return // listModules has it looked at again
	}
	ev.Running = true
	e.ask(m, Evaluate{Op: e.op(), Module: m.gen, Values: view, Secrets: m.values.Secrets()})
}

func (e *Engine) evaluated(a asked, in Evaluated) {
	m := a.module
	ev := &m.eval
	switch {
	case in.Err != nil:
		ev.Ended(e.now, in.Err, releaseRetry, e.opts.Jitter)
		if m.started {
			e.note(builtins.LevelError, m, "", "enabled(): "+in.Err.Error()+"; its last answer stays in force")
		}
	case in.Decision.Answer == builtins.AnswerDisabled && a.version != m.values.Version():
		ev.Running = false // a no has to be meant for the values as they are
	default:
		ev.Ended(e.now, nil, releaseRetry, e.opts.Jitter)
		ev.version, ev.decision = a.version, in.Decision
	}
}
