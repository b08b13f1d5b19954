package engine

import (
	"errors"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/lane"
)

// evaluation is what is known of def enabled() and def readiness().
type evaluation struct {
	lane.Task
	version  int // of the values that the answer rests on
	decision builtins.Decision
}

// failed says that enabled() has. An error of readiness() is an answer: the module is not ready.
func (ev *evaluation) failed() bool { return ev.Err != "" && ev.Err != ev.decision.Unready }

// asks says that module.star has functions that are asked as values move.
func (m *module) asks() bool { return m.gen.Enabled != nil || m.gen.Readiness != nil }

// evaluate asks enabled() and readiness() again when the values that they saw have moved.
func (e *Engine) evaluate(m *module) {
	ev := &m.eval
	if !m.verdict.Asks || !m.asks() || ev.Running || (ev.Done && ev.version == m.values.Version() && ev.Err == "") || ev.Waits(e.now) {
		return
	}
	view, known := e.viewOfEnabled(m)
	if !known {
		return // listModules has it looked at again
	}
	ev.Running = true
	e.ask(m, Evaluate{Op: e.op(), Module: m.gen, Values: view, Config: e.userConfig(m), Secrets: m.values.Secrets()})
}

func (t *turn) evaluated(m *module, a asked, in Evaluated) {
	ev := &m.eval
	switch {
	case in.Err != nil && in.Decision.Unready == "":
		ev.Ended(t.now, in.Err, t.opts.Jitter)
		if m.life != down {
			t.note(builtins.LevelError, m, "", "enabled(): "+in.Err.Error()+"; its last answer stays in force")
		}
	case in.Decision.Answer == builtins.AnswerDisabled && a.version != m.values.Version():
		ev.Running = false // a no has to be meant for the values as they are
	case in.Err != nil: // of readiness(): enabled() has answered
		ev.Ended(t.now, errors.New(in.Decision.Unready), t.opts.Jitter)
		ev.Done, ev.version, ev.decision = true, a.version, in.Decision
	default:
		ev.Ended(t.now, nil, t.opts.Jitter)
		ev.version, ev.decision = a.version, in.Decision
	}
}

// unready says why a module whose release is as it should be is not ready for others, or "". Until
// readiness() has answered for other values, its last answer counts.
func (m *module) unready() (state status.ModuleState, reason string) {
	switch ev := &m.eval; {
	case m.gen.Readiness == nil:
		return "", ""
	case !ev.Done:
		return status.ModuleStarting, "asking readiness()"
	case ev.Err != "" && !ev.failed():
		return status.ModuleFailed, ev.decision.Unready
	default:
		return status.ModuleWaiting, ev.decision.Unready
	}
}

// isReady says that others may go by the module.
func (m *module) isReady() bool {
	_, why := m.unready()
	return m.pass.Ready() && why == ""
}
