package engine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/engine/verdicts"
	"github.com/starling-operator/starling/runtime/lane"
)

// moduleState is what people are shown of a module.
func (t *turn) moduleState(m *module) (status.ModuleState, string) {
	v, p := m.verdict, m.pass
	switch {
	case m.barred():
		return v.State, v.Reason
	case t.standsBy():
		return standingBy(v)
	}
	if m.life == leaving {
		if why := m.leavingReason(); why != "" {
			if m.removed {
				why += goneHint
			}
			return status.ModuleFailed, "uninstall: " + why
		}
	}
	switch {
	case v.Do == verdicts.Uninstall && p.Err() != "" && !p.Uninstalling():
		return status.ModuleFailed, fmt.Sprintf("uninstall: %s (try %d)", p.Err(), p.Tries())
	case v.Do == verdicts.GiveBack && p.Err() != "":
		return status.ModuleFailed, "its release is not given back: " + p.Err()
	case v.Do.Goes(), m.life == leaving, p.Uninstalling(): // or about to, once Helm has ended what it does
		return status.ModuleUninstalling, v.Reason
	case v.State != "":
		return v.State, v.Reason
	case m.crds.Err != "":
		return status.ModuleFailed, "crds: " + m.crds.Err
	case v.Do != verdicts.Install:
		return status.ModulePaused, "hooks run, the release is left alone"
	case p.Awaits() == lane.AwaitsTree:
		return status.ModuleWaiting, p.Err()
	case p.Err() != "":
		return status.ModuleFailed, p.Err()
	}
	if gate := m.gate(); gate != "" {
		for _, h := range m.hooks {
			if why := h.trouble(); h.holds() && why != "" && why != h.watches.Waits() {
				return status.ModuleFailed, "hook " + strings.TrimPrefix(h.gen.ID, m.name+"/") + ": " + why
			}
		}
		for _, h := range m.hooks {
			if h.holds() && h.trouble() == "" {
				return status.ModuleStarting, "waits for hook " + strings.TrimPrefix(h.gen.ID, m.name+"/")
			}
		}
		// Only what somebody else has to install is missing.
		return status.ModuleWaiting, "hook " + strings.TrimPrefix(gate, m.name+"/") + " " + m.byKey[gate].watches.Waits()
	}
	if p.Stage() == builtins.StageBeforeHelm {
		for _, h := range m.hooks {
			why := h.trouble()
			switch hook := "hook " + strings.TrimPrefix(h.gen.ID, m.name+"/"); {
			case why == "" || !p.WaitsFor(h.gen.ID):
			case why == h.watches.Waits():
				return status.ModuleWaiting, hook + " " + why
			default:
				return status.ModuleFailed, hook + ": " + why
			}
		}
	}
	switch state, why := m.unready(); {
	case p.Held() != "" && !p.Ready():
		return status.ModuleWaiting, p.Held()
	case p.Ready() && why != "":
		return state, why
	case p.Ready():
		return status.ModuleReady, p.Held()
	}
	return status.ModuleReleasing, ""
}

// Ready says whether every module has once been released, off, or had a reason in the
// status; if not, which one is still on its way. A later change, such as a module
// that is switched on, changes it no more: an upgrade is no reason to be taken out of
// service. A standby is ready once it answers.
func (e *Engine) Ready() (bool, string) {
	switch {
	case e.gen == nil:
		return false, "does not hold the lease"
	case !e.config.Known():
		return false, "reading the configuration"
	case e.standsBy():
		return e.Answers()
	}
	if e.standings.AllReady() {
		return true, ""
	}
	name := e.standings.Coming(e.order())
	if name == "" {
		return false, ""
	}
	state, reason := e.moduleState(e.modules[name])
	return false, strings.TrimSpace("module " + name + " is " + string(state) + " " + reason)
}

// onItsWay says that a module was never released, is not off, and has no reason for it.
func (t *turn) onItsWay(m *module) bool {
	state, _ := t.moduleState(m)
	switch state {
	case status.ModuleStarting, status.ModuleReleasing, status.ModuleUninstalling:
		return m.pass.Err() == ""
	}
	return false
}

// Status returns what people are shown. Snapshot sizes are the driver's to add.
func (e *Engine) Status() status.Status {
	out := status.Status{Leader: e.leads()}
	out.Ready, _ = e.Ready()
	if e.gen == nil {
		return out
	}
	out.Generation = e.gen.Number
	out.Paused = e.opts.PauseAll
	out.Config = e.configStatus()
	for _, h := range e.global.hooks {
		out.Hooks = append(out.Hooks, e.hookStatus(h))
	}
	for _, m := range e.known() {
		if !e.visible(m) {
			continue
		}
		out.Modules = append(out.Modules, e.moduleStatus(m))
		for _, h := range m.hooks {
			if !m.removed || h.leaves() {
				out.Hooks = append(out.Hooks, e.hookStatus(h))
			}
		}
	}
	slices.SortFunc(out.Modules, func(a, b status.Module) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(out.Hooks, func(a, b status.Hook) int { return strings.Compare(a.ID, b.ID) })
	return out
}

func (t *turn) configStatus() status.Config {
	out := status.Config{State: status.ConfigOK, Reason: t.config.Reason()}
	switch {
	case t.config.State() == ConfigPresent:
	case t.config.State() == ConfigUnreadable, t.config.Held():
		out.State = status.ConfigHeld
	default:
		out.State = status.ConfigMissing
	}
	all := t.config.Problems()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, p := range all[name] {
			out.Problems = append(out.Problems, p.Text)
			if p.Outcome == values.Unknown {
				out.Unknown = append(out.Unknown, p.Text)
			}
		}
	}
	return out
}

// visible says whether people are shown the module: one that is not in the tree as long as
// something of it is there. A standby is not told when that has gone.
func (t *turn) visible(m *module) bool {
	if m.removed && t.standsBy() {
		return false
	}
	return !m.removed || m.pass.Installed() || m.there() && !t.elsewhere(m)
}

func (e *Engine) moduleStatus(m *module) status.Module {
	state, reason := e.moduleState(m)
	if m.barred() { // what else is known of it may be half changed
		return status.Module{Name: m.name, State: state, Reason: reason, Enabled: true, LastError: reason, Since: e.standings.Since(m.name)}
	}
	out := status.Module{
		Name: m.name, State: state, Reason: reason, Enabled: !m.removed && e.resolveSwitch(m).On,
		Since: e.standings.Since(m.name), LastError: m.pass.Err(), Problems: e.problems(m), Unknown: m.findings[unknown],
		Upgrading: state == status.ModuleReady && (!m.pass.Idle() || m.asking()),
	}
	if m.pass.Awaits() == lane.AwaitsTree {
		out.LastError = ""
	}
	out.Config.Generation = e.config.Generation(m.name)
	for _, p := range e.config.Problems()[m.name] {
		if p.Outcome == values.Unused {
			out.Config.Unused = append(out.Config.Unused, p.Text)
		} else {
			out.Config.Refused = append(out.Config.Refused, p.Text)
		}
	}
	if m.pass.Installed() {
		ref := m.pass.Refs()[0]
		out.Release = &status.Release{Name: ref.Name, Namespace: ref.Namespace, Revision: m.pass.Revision()}
	}
	out.NextTry = future(m.pass.RetryAt(), e.now)
	out.Drifted, out.Unseen = e.driftStatus(m), m.findings[unseen]
	if why := m.repairs.Unsure(); why != "" {
		out.Unseen = append(slices.Clip(out.Unseen), why)
	}
	return out
}

func (t *turn) hookStatus(h *hook) status.Hook {
	m := h.module
	if m.barred() {
		return status.Hook{ID: h.gen.ID, Module: m.name, LastError: m.verdict.Reason}
	}
	own := lane.ID{Group: h.gen.ID}
	out := h.ran
	out.ID, out.Module, out.LastError, out.Attempt = h.gen.ID, m.name, h.subjects.Failure(), h.lane.Attempt(own)
	notBefore, waits := h.lane.Waiting(own)
	if h.forEach() {
		waits = h.lane.Waits(h.gen.ID)
		objects, failing := h.subjects.Len(), len(h.subjects.Failing())
		out.Objects, out.Failing = &objects, &failing
	}
	out.NextTry = future(notBefore, t.now)
	out.NextRun = future(h.schedules.Next(), t.now)
	switch trouble := cmp.Or(h.barred, h.watches.Trouble()); {
	case !h.awake():
		out.State = status.HookOff
	case h.lane.Busy(h.gen.ID):
		out.State = status.HookRunning
	case trouble != "":
		out.State, out.LastError = status.HookFailed, trouble
	case h.watches.Waits() != "":
		out.State = status.HookWaiting
	case out.LastError != "":
		out.State = status.HookFailed
	case waits:
		out.State = status.HookQueued
	case h.ran.Runs > 0:
		out.State, out.Reason = status.HookOK, h.subjects.Waiting()
	default:
		out.State = status.HookWaiting
	}
	for _, w := range h.watches {
		if w.Missing() {
			out.NotServed = append(out.NotServed, w.Kind())
		}
	}
	return out
}

func future(at, now time.Time) *time.Time {
	if !at.After(now) {
		return nil
	}
	return &at
}

// Secrets returns the texts of the values of a module that are known to be secret, those of global
// values among them.
func (e *Engine) Secrets(module string) []string {
	if m := e.module(module); m != nil && e.gen != nil {
		return m.values.Secrets().Texts()
	}
	return nil
}

// Unknown returns the fields of the objects of a module's release that the API server has dropped, and the keys of
// lists that are there twice.
func (e *Engine) Unknown(module string) []string {
	if m := e.module(module); m != nil && e.gen != nil {
		return m.findings[unknown]
	}
	return nil
}

// Values returns the values of a module as its hooks see them, those of the global
// hooks for "global"; nil for a module that is not there. Only read.
func (e *Engine) Values(module string) map[string]any {
	if e.gen == nil || e.module(module) == nil {
		return nil
	}
	return e.module(module).values.View()
}
