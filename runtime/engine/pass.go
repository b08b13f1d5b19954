package engine

import (
	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/engine/releases"
	"github.com/starling-operator/starling/runtime/engine/verdicts"
)

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
	return m.gen.Enabled != nil && !m.eval.failed() && m.eval.version != m.values.Version()
}

// passFacts are what the next step of the module's release hangs on.
func (m *module) passFacts() releases.Module {
	leaves := m.life == leaving
	return releases.Module{
		Ends: leaves || m.verdict.Do == verdicts.Uninstall && m.there(), Leaving: leaves, Sets: m.sets.Any(),
		GivesBack: m.verdict.Do == verdicts.GiveBack,
		Open:      m.life != down && m.verdict.Do == verdicts.Install && m.gate() == "" && !m.asking() && !m.wantsCRDs(),
		Release:   m.verdict.Do == verdicts.Install, Asking: m.asking(),
		Chart: m.hasChart(), Seen: m.values.Seen(),
	}
}

// overtaken says that the values or files of a module are not those that Helm works with; op is that of its work.
func (m *module) overtaken() (op uint64, is bool) {
	for op, a := range m.asked {
		if _, is := a.action.(Release); is {
			return op, a.version != m.values.Version()
		}
	}
	return 0, false
}

// advance moves the module's release on as far as it goes by itself.
func (e *Engine) advance(m *module) {
	if m.repairs.Running() { // one works on a release at a time
		return
	}
	if m.pass.Stage() == builtins.StageAfterHelm {
		for _, id := range m.pass.Waiting() { // one that cannot run holds up no upgrade: it runs once it can
			if h := m.byKey[id]; h.barred != "" || !h.watches.Complete() {
				m.pass.Drop(id)
			}
		}
	}
	facts := m.passFacts()
	op, overtaken := uint64(0), false
	if m.pass.Working() {
		op, overtaken = m.overtaken()
	}
	facts.Overtaken = overtaken
	if e.unlisted(m) { // after a reload that made its chart the first reader
		facts.Open, facts.Asking = false, true
	}
	for {
		switch step := m.pass.Next(facts, e.now); step.Do {
		case releases.RunStage:
			m.pass.Wait(step.Stage, e.queueStage(m, step.Stage, step.Always))
		case releases.CheckValues:
			if problems := m.values.CheckHelm(); len(problems) > 0 {
				m.pass.Refuse(valuesRefused + hidden(problems[0].String(), m.values.Secrets().Texts()))
				continue
			}
			e.helm(m, m.pass.Install(m.ref(e.opts.Namespace), facts))
			return
		case releases.Overtake:
			e.note(builtins.LevelInfo, m, "", "the release does not wait any more: its inputs have changed")
			e.do(Overtake{Op: op})
			return
		case releases.Hold:
			e.note(builtins.LevelWarn, m, "", m.pass.Held())
			return
		case releases.RemoveSets:
			// A commit that is under way may apply one.
			if !m.atWork() && !m.sets.Removing() {
				m.pass.Removing()
				e.ask(m, RemoveSets{Op: e.op(), Module: m.name, Managers: m.sets.Managers()})
			}
			return
		case releases.End:
			m.store.Put(upKey, nil)
			e.touch(m)
			return
		default:
			e.helm(m, step)
			return
		}
	}
}

// queueStage queues the module's hooks of a stage, or those that are always due, and returns
// their ids.
func (t *turn) queueStage(m *module, stage builtins.Stage, always bool) map[string]bool {
	waiting := map[string]bool{}
	for _, h := range m.hooks {
		if b := h.stage(stage); b != nil && (b.Always || !always) {
			t.add(h, h.subjects.At(""), b.Order, builtins.Event{Type: releases.EventType(stage), Binding: string(stage), Cause: m.pass.Cause()})
			waiting[h.gen.ID] = true
		}
	}
	return waiting
}

// valuesRefused begins what holds a release whose values do not pass.
const valuesRefused = "values: "

// helm has Helm do what a step asks for.
func (t *turn) helm(m *module, step releases.Step) {
	switch step.Do {
	case releases.Install:
		t.ask(m, Release{Op: t.op(), Module: m.gen, Ref: step.Ref, Drift: t.drift(m), Cause: m.pass.Cause(), Values: m.values.View(), Secrets: m.values.Secrets()})
	case releases.Uninstall, releases.GiveBack:
		t.ask(m, Uninstall{Op: t.op(), Ref: step.Ref, Timeout: m.gen.Decl.Timeout, GiveBack: step.Do == releases.GiveBack})
	}
}

func (e *Engine) released(m *module, in Released) {
	if in.Err == nil {
		m.findings[unknown] = in.Unknown
		if in.Changed {
			e.kindsCame()
		}
	}
	m.pass.Released(releases.Helm{Err: in.Err, Changed: in.Changed, Revision: in.Revision, Stopped: in.Op < m.incarnation}, e.now, e.opts.Jitter())
}

func (e *Engine) uninstalled(m *module, a asked, in Uninstalled) {
	m.pass.Uninstalled(a.action.(Uninstall).Ref, in.Err, e.now, e.opts.Jitter())
	if in.Err != nil {
		return
	}
	if m.findings[unknown] = nil; m.removed {
		e.retryFailedSoon()
	}
}
