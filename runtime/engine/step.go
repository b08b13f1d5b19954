package engine

import "github.com/starling-operator/starling/runtime/engine/verdicts"

// phase is one part of a look at a module: it starts what is due of one thing.
type phase func(*Engine, *module)

// looks are the phases of a look at a module, and at the global hooks, which have no release, in their order.
type looks struct{ module, global []phase }

// A standby decides as the one that leads does, and tells which hooks answer; nothing else of a module is due there.
var (
	byLeader = looks{
		module: []phase{
			(*Engine).decide, (*Engine).live, (*Engine).evaluate, (*Engine).forgetOff, (*Engine).startOff,
			(*Engine).stepFinalizers, (*Engine).stepSets, (*Engine).noteUp, (*Engine).forgetGone, (*Engine).save,
			unless((*Engine).unkept, (*Engine).advance, (*Engine).repair, (*Engine).dispatch),
			(*Engine).publishReviews, (*Engine).serve, (*Engine).show, (*Engine).stand,
		},
		global: []phase{
			(*Engine).decideGlobal, (*Engine).live, (*Engine).beginAll, (*Engine).listModules, (*Engine).startOff,
			(*Engine).stepFinalizers, (*Engine).stepSets, (*Engine).noteUp, (*Engine).save,
			unless(func(e *Engine, m *module) bool { return e.config.Moves(m.name) }, (*Engine).dispatch),
			(*Engine).hideSecrets, (*Engine).publishReviews, (*Engine).serve, (*Engine).standGlobal,
		},
	}
	byStandby = looks{
		module: []phase{
			(*Engine).decide, (*Engine).follow, (*Engine).evaluate,
			(*Engine).publishReviews, (*Engine).serve, (*Engine).stand,
		},
		global: []phase{
			(*Engine).decideGlobal, (*Engine).follow, (*Engine).listModules,
			(*Engine).hideSecrets, (*Engine).publishReviews, (*Engine).serve, (*Engine).followGlobal,
		},
	}
)

// unless leaves phases out while something else has to come first.
func unless(waits func(*Engine, *module) bool, phases ...phase) phase {
	return func(e *Engine, m *module) {
		if waits(e, m) {
			return
		}
		for _, p := range phases {
			p(e, m)
		}
	}
}

// phases are those of a look at a module.
func (g *ground) phases(m *module) []phase {
	look := byLeader
	if g.standsBy() {
		look = byStandby
	}
	if m.isGlobal() {
		return look.global
	}
	return look.module
}

// step looks at one module and starts whatever is due.
func (e *Engine) step(m *module) {
	e.showLayers(m)
	for _, p := range e.phases(m) {
		p(e, m)
	}
}

// decide says what shall be done about a module.
func (e *Engine) decide(m *module) {
	m.verdict = verdicts.Decide(e.facts(m))
	e.wait(m)
}

// decideGlobal does so for the global hooks.
func (t *turn) decideGlobal(m *module) {
	m.verdict = verdicts.Verdict{}
	if m.broken == "" && t.config.Known() {
		m.verdict.Do = verdicts.RunHooks
	}
}

// live brings a module up, begins its removal, or takes it down, as its verdict wants it.
func (t *turn) live(m *module) {
	switch want := m.wants(); {
	case want != m.life && m.life == leaving:
		t.takeDown(m)
		t.touch(m)
	case want != m.life && want == leaving:
		t.beginLeaving(m)
	case want != m.life && want == up:
		t.bringUp(m)
	case want != m.life:
		t.takeDown(m)
	case m.wantsCRDs() && (want == up || want == down && len(m.gen.Tree.CRDs) == 0): // those of another generation
		t.applyCRDs(m)
	}
}

// wants is the life that the verdict gives a module.
func (m *module) wants() life {
	switch {
	case m.leaves():
		return leaving
	case m.verdict.Do.Runs():
		return up
	}
	return down
}
