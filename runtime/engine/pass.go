package engine

import (
	"fmt"
	"maps"
	"slices"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/lane"
)

// maxRounds is how many passes in a row after_helm hooks may cause.
const maxRounds = 3

type phase int

const (
	idle phase = iota
	beforeHelm
	inHelm
	afterHelm
	beforeDelete
	uninstalling
	afterDelete
)

// pass is the state of a module's release. One pass over it is: before_helm hooks,
// Helm, after_helm hooks; a later change of values makes one more.
type pass struct {
	refs           []ReleaseRef // what the records say is installed
	phase          phase
	dirty          bool            // a pass is wanted
	cause          *effect.Cause   // of the change of values that has led to it; nil: not what hooks have done
	waiting        map[string]bool // hooks that this phase waits for
	rounds         int             // passes in a row that after_helm hooks caused
	again          int             // how often before_helm hooks had to run once more
	version        int             // of the values as the phase began; that Helm got
	own            int             // changes of them since then by the phase's own hooks
	after          bool            // after_helm hooks were tried since the module came up
	preDeleteDone  bool            // before_delete hooks have succeeded since it began to leave
	postDeleteDone bool            // all after_delete hooks have succeeded since then
	seen           map[string]any  // that the release was begun with

	ready    bool   // the last release action succeeded
	revision int    // its revision
	hold     string // why no pass can begin, beside the gate
	err      string
	retry    lane.Retry
}

// want asks for a pass, for the shortest row of runs that has led to it.
func (p *pass) want(cause *effect.Cause) {
	if !p.dirty || p.cause.Compare(cause) > 0 {
		p.cause = cause
	}
	p.dirty = true
}

// clearError drops the error and the backoff for a purpose that is given up.
func (p *pass) clearError() { p.err, p.retry = "", lane.Retry{} }

// stop ends a pass whose hooks will not run any more. A Helm action under way is
// waited for.
func (p *pass) stop() {
	if p.phase != inHelm && p.phase != uninstalling {
		p.phase = idle
	}
	p.preDeleteDone, p.postDeleteDone = false, false
	p.waiting, p.hold, p.rounds = nil, "", 0
	p.ready, p.after = false, false
	p.clearError()
}

func (p *pass) settledPaused(m *module) bool { return m.verdict.Run && !m.verdict.Release }

// gate names the first hook that the first render waits for, or "".
func (m *module) gate() string {
	for _, h := range m.hooks {
		if h.holds() {
			return h.gen.ID
		}
	}
	return ""
}

// asking says that enabled() has not answered for the values as they are now: they
// must not reach Helm before it has, for the answer may be no.
func (m *module) asking() bool {
	return m.gen.Enabled != nil && m.eval.err == "" && m.eval.version != m.values.Version()
}

// advance moves the module's release one step on.
func (e *Engine) advance(m *module) {
	p := &m.pass
	if m == e.global || p.retry.Waits(e.now) {
		return
	}
	switch p.phase {
	case idle:
		if m.leaving || m.verdict.Uninstall && m.there() {
			e.depart(m)
			return
		}
		if !p.dirty || !m.started || !m.verdict.Release || m.gate() != "" || m.asking() || m.wantsCRDs() {
			return
		}
		if !m.hasChart() {
			p.dirty, p.ready, p.err = false, true, ""
			return
		}
		if p.again = 0; !e.beginBefore(m) {
			e.helm(m)
		}
	case beforeHelm:
		if !m.verdict.Release {
			p.phase, p.waiting = idle, nil
		} else if len(p.waiting) == 0 && !m.asking() {
			e.endBefore(m)
		}
	case afterHelm:
		// One that cannot run holds up no upgrade: it runs once it can.
		maps.DeleteFunc(p.waiting, func(id string, _ bool) bool { return m.byKey[id].barred != "" || !m.byKey[id].watches.Complete() })
		if len(p.waiting) == 0 {
			e.endRound(m)
		}
	case beforeDelete:
		if len(p.waiting) == 0 {
			p.phase, p.preDeleteDone = idle, true
			e.touch(m)
		}
	case afterDelete:
		if len(p.waiting) == 0 {
			p.phase, p.postDeleteDone = idle, true
			e.touch(m)
		}
	}
}

// beginBefore has the before_helm hooks run, if there are any.
func (e *Engine) beginBefore(m *module) bool {
	p := &m.pass
	if p.waiting = e.queueStage(m, builtins.StageBeforeHelm); len(p.waiting) == 0 {
		return false
	}
	p.phase, p.version, p.own = beforeHelm, m.values.Version(), 0
	return true
}

// endBefore goes on to Helm. When other values have moved while before_helm hooks
// ran, what they derive may rest on the old ones: they run once more, and after a
// few times one more pass makes up for it.
func (e *Engine) endBefore(m *module) {
	p := &m.pass
	outdated := m.values.Version()-p.version > p.own
	if p.again++; outdated && p.again < maxRounds && e.beginBefore(m) {
		return
	}
	e.helm(m)
	p.dirty = p.dirty || outdated
}

// queueStage queues the module's hooks of a stage and returns their ids.
func (e *Engine) queueStage(m *module, stage builtins.Stage) map[string]bool {
	waiting := map[string]bool{}
	for _, h := range m.hooks {
		if b := h.stages[stage]; b != nil {
			e.add(h.subject, b.Order, builtins.Event{Type: stageEvents[stage], Binding: string(stage), Cause: m.pass.cause})
			h.lane.RetryAllSoon(h.gen.ID, h.gen.Retry.Min)
			waiting[h.gen.ID] = true
		}
	}
	return waiting
}

// hookDone tells the pass that a hook has run. It must have succeeded; after Helm it
// is enough that it was tried, its own retries go on.
func (e *Engine) hookDone(m *module, h *hook, events []builtins.Event, succeeded bool) {
	for _, ev := range events {
		switch stage := builtins.Stage(ev.Binding); {
		case ev.Type != stageEvents[stage] || stages[m.pass.phase] != stage:
		case succeeded || stage == builtins.StageAfterHelm:
			delete(m.pass.waiting, h.gen.ID)
		}
	}
}

// runs says whether a run for these events belongs to the phase. One that other
// events have led to as well is no work of after_helm alone.
func (p *pass) runs(events []builtins.Event) bool {
	is := func(binding string) func(builtins.Event) bool {
		return func(ev builtins.Event) bool { return ev.Type == "helm" && ev.Binding == binding }
	}
	switch p.phase {
	case beforeHelm:
		return slices.ContainsFunc(events, is("before_helm"))
	case afterHelm:
		after := is("after_helm")
		return !slices.ContainsFunc(events, func(ev builtins.Event) bool { return !after(ev) })
	}
	return false
}

// valuesRefused begins what holds a release whose values do not pass.
const valuesRefused = "values: "

// helm hands the values over to Helm.
func (e *Engine) helm(m *module) {
	p := &m.pass
	p.phase, p.dirty, p.hold = idle, false, ""
	if problems := m.values.CheckHelm(); len(problems) > 0 {
		p.clearError()
		p.hold = valuesRefused + m.hidden(problems[0].String())
		return
	}
	ref := m.ref(e.opts.Namespace)
	for _, old := range p.refs {
		if old != ref {
			// Under an earlier name or namespace; its objects would not let
			// those of the new release in.
			e.uninstall(m, old)
			return
		}
	}
	p.phase, p.version, p.own, p.seen = inHelm, m.values.Version(), 0, m.values.Seen()
	if !slices.Contains(p.refs, ref) {
		p.refs = append(p.refs, ref)
	}
	e.ask(m, Release{Op: e.op(), Module: m.gen, Ref: ref, Values: m.values.View(), Secrets: m.values.Secrets()})
}

func (e *Engine) released(a asked, in Released) {
	m := a.module
	p := &m.pass
	p.phase = idle
	switch {
	case a.epoch != m.epoch: // the module has gone down meanwhile
		return
	case in.Err != nil:
		p.ready = false
		p.after = p.after && !in.Changed // it changed something: its hooks run once all of it is done
		e.passFailed(m, in.Err)
		return
	}
	p.clearError()
	p.ready, p.revision = true, in.Revision
	// Once in each life also without a change: a crash may have come between
	// the change and its hooks.
	if in.Changed || !p.after {
		if p.waiting = e.queueStage(m, builtins.StageAfterHelm); len(p.waiting) > 0 {
			p.phase = afterHelm
			return
		}
	}
	p.rounds = 0
}

func (e *Engine) passFailed(m *module, err error) {
	p := &m.pass
	p.err, p.dirty = err.Error(), true
	p.retry.Failed(e.now, releaseRetry, e.opts.Jitter())
}

// endRound looks whether after_helm hooks have moved the values once more.
func (e *Engine) endRound(m *module) {
	p := &m.pass
	p.phase, p.after = idle, true
	switch moved := m.values.Version() - p.version; {
	case moved == 0:
		p.rounds = 0
		return
	case moved > p.own: // not by these hooks alone
		p.rounds = 0
	default:
		p.rounds++
	}
	if p.rounds >= maxRounds {
		p.rounds, p.dirty = 0, false
		p.hold = fmt.Sprintf("values still move after %d passes: %s; let after_helm hooks set what does not depend on the pass", maxRounds, firstDifference(p.seen, m.values.Seen()))
		e.note(builtins.LevelWarn, m, "", p.hold)
		return
	}
	e.touch(m)
}

func (e *Engine) uninstall(m *module, ref ReleaseRef) {
	m.pass.phase = uninstalling
	e.ask(m, Uninstall{Op: e.op(), Ref: ref, Timeout: m.gen.Decl.Timeout})
}

func (e *Engine) uninstalled(a asked, in Uninstalled) {
	m, ref := a.module, a.action.(Uninstall).Ref
	p := &m.pass
	p.phase = idle
	if in.Err != nil {
		e.passFailed(m, in.Err)
		return
	}
	p.clearError()
	p.ready, p.revision = false, 0
	p.refs = slices.DeleteFunc(p.refs, func(r ReleaseRef) bool { return r == ref })
	p.dirty = true
	if m.removed {
		e.retryFailedSoon()
	} else if !m.verdict.Run {
		e.forgetLayers(m)
	}
}
