package engine

import (
	"github.com/starling-operator/starling/builtins"
)

// evaluation is what is known of def enabled().
type evaluation struct {
	step
	version  int // of the values that the answer rests on
	decision builtins.Decision
}

// evaluate asks enabled() again when the values that it saw have moved.
func (e *Engine) evaluate(m *module) {
	ev := &m.eval
	if m.gen.Enabled == nil || ev.running || (ev.done && ev.version == m.values.Version() && ev.err == "") || ev.retry.Waits(e.now) {
		return
	}
	ev.running = true
	e.ask(m, Evaluate{Op: e.op(), Module: m.gen, Values: m.values.View(), Secrets: m.values.Secrets()})
}

func (e *Engine) evaluated(a asked, in Evaluated) {
	m := a.module
	ev := &m.eval
	switch {
	case in.Err != nil:
		ev.failed(e.now, in.Err, e.opts.Jitter())
		if m.started {
			e.note(builtins.LevelError, m, "", "enabled(): "+in.Err.Error()+"; its last answer stays in force")
		}
	case in.Decision.Answer == builtins.AnswerDisabled && a.version != m.values.Version():
		ev.running = false // a no has to be meant for the values as they are
	default:
		ev.step = step{done: true}
		ev.version, ev.decision = a.version, in.Decision
	}
}
