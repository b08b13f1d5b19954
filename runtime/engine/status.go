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
func (g *ground) moduleState(m *module) (status.ModuleState, string) {
	v, p := m.verdict, m.pass
	switch {
	case m.barred():
		return v.State, v.Reason
	case g.standsBy():
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
	case v.Do == verdicts.Uninstall && p.Failed().Err != "" && !p.Uninstalling():
		return status.ModuleFailed, fmt.Sprintf("uninstall: %s (try %d)", p.Failed().Err, p.Failed().Attempt)
	case v.Do == verdicts.GiveBack && p.Failed().Err != "":
		return status.ModuleFailed, "its release is not given back: " + p.Failed().Err
	case v.Do.Goes(), m.life == leaving, p.Uninstalling(): // or about to, once Helm has ended what it does
		return status.ModuleUninstalling, v.Reason
	case v.State != "":
		return v.State, v.Reason
	case m.crds.Err != "":
		return status.ModuleFailed, "crds: " + m.crds.Err
	case v.Do != verdicts.Install:
		return status.ModulePaused, "hooks run, the release is left alone"
	case p.Failed().Awaits == lane.AwaitsTree:
		return status.ModuleWaiting, p.Failed().Err
	case p.Failed().Err != "":
		return status.ModuleFailed, p.Failed().Err
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

// Ready says whether every module has once been released, off, or had a reason in the status; if not, which one is
// still on its way. A later change, such as a module that is switched on, changes it no more: an upgrade is no reason
// to be taken out of service. A standby is ready once it answers.
func (v *View) Ready() (bool, string) {
	if v.gen == nil || !v.config.Known() || v.standsBy() {
		return v.Answers()
	}
	if v.standings.AllReady(v.order()) {
		return true, ""
	}
	name := v.standings.Coming(v.order())
	state, reason := v.moduleState(v.modules[name])
	return false, strings.TrimSpace("module " + name + " is " + string(state) + " " + reason)
}

// onItsWay says that a module was never released, is not off, and has no reason for it.
func (g *ground) onItsWay(m *module) bool {
	state, _ := g.moduleState(m)
	moves := state == status.ModuleStarting || state == status.ModuleReleasing || state == status.ModuleUninstalling
	return moves && m.pass.Failed().Err == ""
}

// Status returns what people are shown. Snapshot sizes are the driver's to add.
func (v *View) Status() status.Status {
	out := status.Status{Leader: v.leads()}
	out.Ready, _ = v.Ready()
	if v.gen == nil {
		return out
	}
	out.Generation = v.gen.Number
	out.Paused = v.opts.PauseAll
	out.Config = v.configStatus()
	for _, h := range v.global.hooks {
		out.Hooks = append(out.Hooks, v.hookStatus(h))
	}
	for _, m := range v.known() {
		if !v.visible(m) {
			continue
		}
		out.Modules = append(out.Modules, v.moduleStatus(m))
		for _, h := range m.hooks {
			if !m.removed || h.leaves() {
				out.Hooks = append(out.Hooks, v.hookStatus(h))
			}
		}
	}
	slices.SortFunc(out.Modules, func(a, b status.Module) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(out.Hooks, func(a, b status.Hook) int { return strings.Compare(a.ID, b.ID) })
	return out
}

func (g *ground) configStatus() status.Config {
	out := status.Config{State: status.ConfigOK, Reason: g.config.Seen().Reason}
	switch {
	case g.config.Seen().State == ConfigPresent:
	case g.config.Seen().State == ConfigUnreadable, g.config.Held():
		out.State = status.ConfigHeld
	default:
		out.State = status.ConfigMissing
	}
	all := g.config.Problems()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, p := range all[name] {
			out.Problems = append(out.Problems, p.Text)
			if p.Outcome != values.Refused {
				out.Unknown = append(out.Unknown, p.Text)
			}
		}
	}
	return out
}

// visible says whether people are shown the module: one that is not in the tree as long as
// something of it is there. A standby is not told when that has gone.
func (g *ground) visible(m *module) bool {
	if m.removed && g.standsBy() {
		return false
	}
	return !m.removed || m.pass.Installed() || m.there() && !g.elsewhere(m)
}

func (v *View) moduleStatus(m *module) status.Module {
	state, reason := v.moduleState(m)
	if state == status.ModuleUninstalling {
		reason += v.heldBy(m)
	}
	if m.barred() { // what else is known of it may be half changed
		return status.Module{Name: m.name, State: state, Reason: reason, Enabled: true, LastError: reason, Since: v.standings.Since(m.name)}
	}
	out := status.Module{
		Name: m.name, State: state, Reason: reason, Since: v.standings.Since(m.name), LastError: m.pass.Failed().Err,
		Enabled: !m.removed && v.resolveSwitch(m).On && m.verdict.State != status.ModuleOff, Unknown: m.findings[unknown],
		Problems: v.problems(m), Upgrading: state == status.ModuleReady && (!m.pass.Idle() || m.asking()),
	}
	if m.pass.Failed().Awaits == lane.AwaitsTree {
		out.LastError = ""
	}
	out.Config.Generation = v.config.Seen().Objects[m.name].Generation
	for _, p := range v.config.Problems()[m.name] {
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
	out.Released = m.released()
	failed := m.pass.Failed()
	out.NextTry, out.Stalled = future(failed.At, v.now), failed.Awaits == lane.AwaitsChange
	out.Drifted, out.Unseen = v.driftStatus(m), m.findings[unseen]
	if why := m.repairs.Unsure(); why != "" {
		out.Unseen = append(slices.Clip(out.Unseen), why)
	}
	return out
}

func (g *ground) hookStatus(h *hook) status.Hook {
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
	out.NextTry = future(notBefore, g.now)
	out.NextRun = future(h.schedules.Next(), g.now)
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

// Secrets returns the texts of the values of a module that are known to be secret, those of global values among them.
func (v *View) Secrets(module string) []string {
	if m := v.module(module); m != nil {
		return m.values.Secrets().Texts()
	}
	return nil
}

// Unknown returns the fields of the objects of a module's release that the API server has dropped, and the keys of
// lists that are there twice.
func (v *View) Unknown(module string) []string {
	if m := v.module(module); m != nil {
		return m.findings[unknown]
	}
	return nil
}

// Values returns the values of a module as its hooks see them, those of the global
// hooks for "global"; nil for a module that is not there. Only read.
func (v *View) Values(module string) map[string]any {
	if m := v.module(module); m != nil {
		return m.values.View()
	}
	return nil
}
