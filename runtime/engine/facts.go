package engine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/engine/standings"
	"github.com/starling-operator/starling/runtime/engine/verdicts"
)

// facts gathers what the module's verdict hangs on.
func (v *View) facts(m *module) verdicts.Facts {
	f := verdicts.Facts{
		Gone: v.goneness(m), Key: m.gen.Key, Broken: m.broken, Started: m.life != down, There: m.extent(),
		Paused:  v.paused(m.name) && !m.pass.Uninstalling() && (m.removed || m.hasChart() || m.pass.Installed()),
		Switch:  v.resolveSwitch(m),
		Enabled: m.answer(),
		// One that runs, was on or off before, or is asked goes by the config that is in force.
		ConfigKnown: v.config.Known() && (m.life != down || m.verdict.Is != verdicts.Undecided || m.verdict.Asks ||
			!v.config.Asking(m.name) && !v.config.Moves(m.name)),
		Global: v.globals, LostUninstalls: m.gen.Decl.LostUninstalls, Unlisted: v.unlisted(m),
		// A release of the module has another name or namespace than its tree says.
		Renamed: slices.ContainsFunc(m.pass.Refs(), func(ref ReleaseRef) bool { return ref != m.ref(v.opts.Namespace) }),
	}
	if v.config.Seen().State == ConfigUnreadable && !v.config.Held() {
		f.ConfigUnread = v.config.Seen().Reason
	}
	if m.removed {
		f.NewBroken = v.brokenNew(m)
	} else {
		f.Before = v.before(m)
	}
	if v.standsBy() && f.Before.Lost() == "" { // whose turn it is, the one that leads says
		f.Before = verdicts.Before{}
	}
	return f
}

// goneness says how far a module that is not in the tree is on its way out.
func (v *View) goneness(m *module) verdicts.Gone {
	switch {
	case !m.removed:
		return verdicts.InTree
	case m.life == leaving:
		return verdicts.Leaving
	case v.elsewhere(m):
		return verdicts.Elsewhere
	case v.hollow(m):
		return verdicts.Hollow
	case m.stays.After(v.now):
		return verdicts.Moment
	}
	if rest, _ := v.atRest(m); !rest || m.occupied() {
		return verdicts.Busy
	}
	return verdicts.Nothing
}

func (m *module) extent() verdicts.There {
	switch {
	case m.pass.Installed():
		return verdicts.Release
	case m.there():
		return verdicts.Rest
	}
	return verdicts.None
}

// answer is what enabled() says. A module that runs goes on by the last answer when there is no new one.
func (m *module) answer() verdicts.Answer {
	v := &m.eval
	switch {
	case m.gen.Enabled == nil:
		return verdicts.Answer{}
	case v.failed() && m.life == down:
		return verdicts.Answer{Says: verdicts.Failed, Reason: v.Err}
	case !v.Done:
		return verdicts.Answer{Says: verdicts.Unasked}
	case v.failed():
		return verdicts.Answer{}
	case v.decision.Answer == builtins.AnswerWaiting:
		return verdicts.Answer{Says: verdicts.Waiting, Reason: v.decision.Reason}
	case v.decision.Answer == builtins.AnswerDisabled && v.version != m.values.Version():
		return verdicts.Answer{Says: verdicts.WasDisabled, Reason: v.decision.Reason}
	case v.decision.Answer == builtins.AnswerDisabled:
		return verdicts.Answer{Says: verdicts.Disabled, Reason: v.decision.Reason}
	}
	return verdicts.Answer{}
}

// before finds the module that comes before another one: a requirement, or one that is ordered so.
func (v *View) before(m *module) (out verdicts.Before) {
	for _, text := range m.gen.Decl.Requires {
		switch need := v.requirement(builtins.Requirement(text)); {
		case need.Lost() != "":
			return need
		case out.Is == verdicts.Free:
			out = need
		}
	}
	if out.Is != verdicts.Free {
		return out
	}
	if name := v.gen.Graph.WaitsFor(m.name, func(name string) bool { return v.modules[name].settled() }); name != "" {
		out = verdicts.Before{Module: name, Is: verdicts.Earlier}
	}
	return out
}

// requirement says what is missing of one requirement: of several names as little as of any of them.
func (v *View) requirement(r builtins.Requirement) (out verdicts.Before) {
	out = verdicts.Before{Module: strings.TrimPrefix(string(r), "!"), Is: verdicts.RequiredOff}
	for name := range r.Names() {
		switch is := v.required(name, r.Off()); {
		case is == verdicts.Free:
			return verdicts.Before{}
		case out.Is == verdicts.RequiredOff, is == verdicts.RequiredComes:
			out.Is = is
		}
	}
	return out
}

// required says what is missing of a module that must be on, or off.
func (v *View) required(name string, off bool) verdicts.Need {
	r := v.module(name)
	switch {
	case r == nil: // the graph has made broken who requires it
	case off && r.verdict.Is == verdicts.IsOn:
		return verdicts.RequiredOn
	case !off && r.verdict.State == status.ModuleOff:
		return verdicts.RequiredOff
	case off && (r.verdict.Is != verdicts.IsOff || r.verdict.Do.Goes()):
		return verdicts.RequiredGoes
	case off:
	case r.verdict.Do.Runs() && v.paused(name) && r.pass.Installed():
		// Its release is left as it is: there is nothing to wait for.
	case r.isReady():
	case r.settled():
		return verdicts.RequiredStuck
	default:
		return verdicts.RequiredComes
	}
	return verdicts.Free
}

// settled is false while the module is on its way and nothing is wrong.
func (m *module) settled() bool {
	if !m.verdict.Do.Runs() {
		return m.verdict.Settled || m.crds.Err != ""
	}
	if m.crds.Err != "" || m.pass.Ready() || m.pass.Failed().Err != "" || m.pass.Held() != "" {
		return true
	}
	for _, h := range m.hooks {
		if h.trouble() != "" && (!h.subjects.First().Passed() || m.pass.WaitsFor(h.gen.ID)) {
			return true
		}
	}
	return m.verdict.Do == verdicts.RunHooks // it is paused
}

func (g *ground) paused(name string) bool {
	return g.opts.PauseAll || slices.Contains(g.opts.Paused, name) || g.config.Paused(name)
}

// followGlobal notes what modules go by of global hooks for whose runs nobody waits: that they are broken, or nothing.
func (t *turn) followGlobal(global *module) {
	t.globals = verdicts.Global{Stays: t.globals.Stays}
	if why := global.wrong(); why != "" {
		t.globals.Failing = "global: " + why
	}
}

// standGlobal notes how far the global hooks have come, which all modules go by: which first run of one they wait for,
// and the first hook that was tried and has never succeeded.
func (t *turn) standGlobal(global *module) {
	if t.followGlobal(global); t.globals.Failing != "" {
		return
	}
	out := &t.globals
	first := func(h *hook) { out.Pending = cmp.Or(out.Pending, "the first run of global hook "+h.gen.ID) }
	for _, h := range global.hooks {
		switch {
		case !h.holds():
		case h.trouble() == "":
			first(h)
		case out.Failing == "":
			out.Failing = h.gen.ID
		}
	}
	if global.life == down && len(global.hooks) > 0 {
		first(global.hooks[0])
	}
	if out.Pending == "" && global.stays.After(t.now) {
		out.Pending = "global hooks that left the module tree a moment ago"
	}
}

// stand touches the modules whose fate hangs on how far this one has come: they require it, wait for it, or are not in
// the tree.
func (e *Engine) stand(m *module) {
	if e.modules[m.name] != m { // it is forgotten
		e.standings.Forget(m.name)
		return
	}
	for _, name := range slices.AppendSeq([]string{m.verdict.For}, builtins.Required(m.gen.Decl.Requires)) {
		if other := e.modules[name]; other != nil {
			e.standings.Await(m.name, name)
		}
	}
	waiting, moved := e.standings.Note(m.name, e.standing(m))
	if !moved {
		return
	}
	if e.gen.Lists {
		waiting = append(waiting, globalName)
	}
	for _, name := range slices.Concat(waiting, e.agenda.Others()) {
		if other := e.any(name); other != nil && other != m {
			e.touch(other)
		}
	}
}

// standing is how far a module has come.
func (g *ground) standing(m *module) (out standings.Standing) {
	note := func(standing standings.Standing, is bool) {
		if is {
			out |= standing
		}
	}
	settled := m.settled()
	note(standings.Off, m.verdict.State == status.ModuleOff)
	note(standings.On, m.verdict.Is == verdicts.IsOn)
	note(standings.Settled, settled)
	note(standings.Ready, m.isReady())
	note(standings.There, m.there())
	note(standings.Going, m.verdict.Do.Goes())
	note(standings.AtWork, !m.removed && !m.barred() && !(settled && m.pass.Idle()))
	note(standings.Coming, !m.removed && g.onItsWay(m))
	return out
}
