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
	if ev.running || (ev.done && ev.version == m.values.Version() && ev.err == "") || ev.retry.Waits(e.now) {
		return
	}
	ev.running = true
	version := m.values.Version()
	op := e.ask(func(in Input) {
		answer := in.(Evaluated)
		if answer.Err == nil && answer.Decision.Answer == builtins.AnswerDisabled && version != m.values.Version() {
			// A no has to be meant for the values as they are.
			ev.running = false
			e.touch(m)
			return
		}
		if answer.Err != nil {
			ev.failed(e.now, answer.Err, e.opts.Jitter())
			if m.started {
				e.note(builtins.LevelError, m, "", "enabled(): "+answer.Err.Error()+"; its last answer stays in force")
			}
		} else {
			ev.step = step{done: true}
			ev.version, ev.decision = version, answer.Decision
		}
		e.touch(m)
	})
	e.do(Evaluate{Op: op, Module: m.gen, Values: m.values.View(), Secrets: m.values.Secrets()})
}
