package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/values"
)

// configState is what is known of the user's config.
type configState struct {
	seen     *Config // the last input; nil: none yet
	accepted values.Config
	state    ConfigState
	reason   string
	problems map[string][]string // by module, "" for the rest

	globalPending, globalFailing string // see Engine.globalState
}

func (c *configState) known() bool { return c.seen != nil }

// held says whether something is in force that a user once set.
func (c *configState) held() bool {
	a := c.accepted
	return len(a.Global)+len(a.Sections)+len(a.Enabled) > 0
}

// handleConfig takes over what the user's ConfigMap says now. Each section stands
// on its own; one that does not pass leaves the last good one in force.
func (e *Engine) handleConfig(in Config) {
	e.config.seen = &in
	if e.gen != nil {
		e.applyConfig(in)
	}
}

func (e *Engine) applyConfig(in Config) {
	before := e.config.state
	e.config.state, e.config.reason = in.State, in.Reason
	switch {
	case in.State == ConfigPresent:
		e.acceptConfig(in.Data)
	case in.State == ConfigMissing && e.config.held() && before != in.State:
		e.note(builtins.LevelWarn, e.global, "", fmt.Sprintf(
			"ConfigMap %s/%s is gone: what it said last stays in force; create it again, empty to go back to the defaults", e.opts.Namespace, e.opts.Name))
	case in.State == ConfigUnreadable && before != in.State:
		e.note(builtins.LevelWarn, e.global, "", fmt.Sprintf(
			"ConfigMap %s/%s cannot be read: %s; what was accepted last stays in force", e.opts.Namespace, e.opts.Name, in.Reason))
	}
	e.touchAll()
}

func (e *Engine) acceptConfig(data map[string]string) {
	schemas := map[string]string{e.global.gen.Key: e.global.gen.SchemasDigest()}
	for _, m := range e.modules {
		schemas[m.gen.Key] = m.gen.SchemasDigest()
	}
	section := func(key string, evaluate func() error) error {
		text, there := data[key]
		if !there {
			return evaluate() // nothing that a user has written
		}
		return e.marked("section "+key+" of the ConfigMap", func() string { return digestOf(text, schemas[key]) }, evaluate)
	}
	parsed, problems := values.ParseConfigWith(data, known(e.gen), section)
	shown := map[string][]string{}
	bad := map[string]bool{} // keys
	report := func(module, text string) {
		text = fmt.Sprintf("ConfigMap %s/%s: %s", e.opts.Namespace, e.opts.Name, text)
		shown[module] = append(shown[module], text)
	}
	for _, p := range problems {
		report(p.Module, p.String())
		bad[p.Key] = true
	}
	next := values.Config{Sections: map[string]map[string]any{}, Enabled: maps.Clone(parsed.Enabled)}
	// A switch that cannot be read stays as it was.
	for name, on := range e.config.accepted.Enabled {
		if m := e.modules[name]; m != nil && bad[values.EnabledKey(m.gen.Key)] {
			next.Enabled[name] = on
		}
	}
	check := func(m *module, config, last map[string]any) map[string]any {
		if bad[m.gen.Key] {
			return last
		}
		if size := sectionSize(config); size > maxSection {
			report(m.name, fmt.Sprintf("%s: the section has %d KiB as JSON, more than the %d KiB that can be kept: make it smaller", m.gen.Key, size>>10, maxSection>>10))
			return last
		}
		var problems []values.Problem
		err := section(m.gen.Key, func() error {
			if problems = m.values.CheckConfig(config, last); len(problems) > 0 {
				return problems[0]
			}
			return nil
		})
		for _, p := range problems {
			report(m.name, p.String())
		}
		if err != nil && len(problems) == 0 {
			report(m.name, m.gen.Key+": "+err.Error())
		}
		if err != nil {
			return last
		}
		return config
	}
	next.Global = check(e.global, parsed.Global, e.config.accepted.Global)
	for _, name := range e.order {
		m := e.modules[name]
		if config := check(m, parsed.Sections[name], e.config.accepted.Sections[name]); config != nil {
			next.Sections[name] = config
		}
	}
	if !reflect.DeepEqual(shown, e.config.problems) {
		for _, name := range slices.Sorted(maps.Keys(shown)) {
			for _, text := range shown[name] {
				if !slices.Contains(e.config.problems[name], text) {
					e.do(Note{Level: builtins.LevelWarn, Module: name, Config: true, Message: text + "; " + values.Outcome(text)})
				}
			}
		}
	}
	e.config.problems = shown
	if sameConfig(next, e.config.accepted) {
		return
	}
	e.config.accepted = next
	e.keepConfig()
	e.applySections()
}

// sameConfig compares what is kept of two configs.
func sameConfig(a, b values.Config) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// applySections puts the accepted config into the values.
func (e *Engine) applySections() {
	e.global.values = e.global.values.WithConfig(e.config.accepted.Global)
	for name, m := range e.modules {
		m.values = m.values.WithConfig(e.config.accepted.Sections[name])
	}
	e.recompose()
}

// userConfig is what a hook of the module gets from config.get.
func (e *Engine) userConfig(m *module) map[string]any {
	if m == e.global {
		return map[string]any{globalName: e.config.accepted.Global}
	}
	return e.config.accepted.Sections[m.name]
}
