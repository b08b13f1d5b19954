package engine

import (
	"maps"
	"slices"
	"strings"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/engine/userconfig"
)

// configWhere names the user's ConfigMap.
func (o *Options) configWhere() string { return "ConfigMap " + o.Namespace + "/" + o.Name }

// handleConfig takes over what the user's ConfigMap and the Module objects say now.
func (e *Engine) handleConfig(in Config) {
	e.config.See(userconfig.Input(in))
	if e.gen != nil {
		e.applyConfig()
	}
}

// applyConfig asks the store to keep it, as far as it passes.
func (e *Engine) applyConfig() {
	e.touchMoving()
	keeps, questions := e.config.Apply(e.configSections())
	for _, q := range questions {
		e.ask(e.modules[q.Module], CheckSettings{Op: e.op(), Module: e.modules[q.Module].gen, Question: q.ID, Old: q.Old, New: q.New})
	}
	if keeps {
		e.keepConfig()
	}
	e.touchMoving()
	e.touch(e.global) // which keeps it
	e.countConfig()
}

// touchMoving marks the modules to look at: they wait until their config is kept, or wait no more.
func (e *Engine) touchMoving() {
	e.touchAll(func(m *module) bool { return e.config.Moves(m.name) })
}

// countConfig makes it count once it is kept: else a process that takes over would go by another config than what was
// made by this one. On a standby all counts as kept.
func (e *Engine) countConfig() {
	if !e.global.store.Kept(userconfig.IsKey) && !e.global.barred() {
		return
	}
	e.touchMoving()
	before := e.config.Accepted().Policies
	out := e.config.Count()
	switch held := "what it said last stays in force"; {
	case !out.Lost:
	case e.config.Seen().State == ConfigUnreadable:
		e.note(builtins.LevelWarn, e.global, "", e.opts.configWhere()+" cannot be read: "+e.config.Seen().Reason+"; "+held)
	case e.config.Held():
		e.note(builtins.LevelWarn, e.global, "", e.opts.configWhere()+" is gone: "+held+"; create it again, empty to go back to the defaults")
	}
	for _, p := range out.Problems {
		e.do(Note{Level: builtins.LevelWarn, Module: p.Module, Config: true, Message: p.Text + "; " + p.Outcome})
	}
	if len(out.Moved) > 0 {
		e.applySections()
	}
	for _, name := range out.Moved {
		if m := e.module(name); m != nil && (m.policy(before[name]) == builtins.DriftIgnore) != (e.drift(m) == builtins.DriftIgnore) {
			m.pass.Want(true, nil) // the objects of its release get their label, or are watched no more
		}
	}
	if slices.Contains(out.Moved, globalName) && e.standings.Begun() {
		e.queueStage(e.global, builtins.StageBeforeAll, true)
	}
	if out.All {
		e.switched++
	}
}

// configSection is that of a module. It goes by its schemas and values as they are now.
func (m *module) configSection() userconfig.Section {
	return userconfig.Section{
		Name: m.name, Key: m.gen.Key, Global: m.isGlobal(),
		Schemas: m.gen.SchemasDigest(), Check: m.values.Composer().CheckConfig, Asks: m.gen.SettingsDigest,
	}
}

// configSections are those of the config, that of the global values first.
func (v *View) configSections() []userconfig.Section {
	var out []userconfig.Section
	for _, m := range v.all() {
		out = append(out, m.configSection())
	}
	for _, m := range v.gone() {
		out = append(out, userconfig.Section{Name: m.name, Key: m.gen.Key, Gone: true})
	}
	for _, key := range v.gen.ElsewhereKeys() {
		out = append(out, userconfig.Section{Key: key, Elsewhere: true})
	}
	return out
}

// settingsChecked takes in what a module says about its section.
func (e *Engine) settingsChecked(m *module, a asked, in SettingsChecked) {
	if e.config.Answer(m.name, a.action.(CheckSettings).Question, in.against()) {
		e.applyConfig()
	}
}

// against is why the section must not be in force, or "".
func (in SettingsChecked) against() string {
	if in.Err != nil {
		return "settings_check(): " + in.Err.Error()
	}
	return in.Against
}

// keepConfig keeps the config that comes into force.
func (e *Engine) keepConfig() {
	parts, store := e.config.Keep(), e.global.store
	for key := range store.All() {
		if userconfig.IsKey(key) && parts[key] == nil {
			store.Put(key, nil)
		}
	}
	for key, data := range parts {
		store.Put(key, data)
	}
}

// adoptConfig starts with the config that an earlier process accepted.
func (e *Engine) adoptConfig() {
	if broken := e.config.Adopt(e.global.store.Data()); len(broken) > 0 {
		e.note(builtins.LevelWarn, e.global, "", "of the config that was kept some cannot be read, and is not used: "+strings.Join(broken, ", "))
	}
	if len(e.config.Keep()) > 0 {
		e.keepConfig()
		e.applySections()
	}
}

// reconcile tries again what of a module waits for its next try, and looks at its release.
func (e *Engine) reconcile(in Reconcile) {
	m := e.modules[in.Module]
	if m == nil {
		return
	}
	m.crds.Soon(e.now)
	m.eval.Soon(e.now)
	m.sets.Soon(e.now)
	m.finalizers.Soon(e.now)
	for _, h := range m.hooks {
		e.retryAll(h, 0)
	}
	if m.pass.RetrySoon(e.now); !m.removed {
		m.pass.Renew()
	}
	if e.config.Again(m.name) {
		e.applyConfig()
	}
}

// applySections puts the accepted config into the values.
func (e *Engine) applySections() { e.valuesMoved(nil, e.layers.Configure(e.config.Accepted()), nil) }

// userConfig is what config.get sees in the module: its section, and the global one below `global`.
func (g *ground) userConfig(m *module) map[string]any {
	config := g.config.Accepted()
	if config.Global == nil {
		return config.Sections[m.name]
	}
	out := map[string]any{globalName: config.Global}
	maps.Copy(out, config.Sections[m.name])
	return out
}
