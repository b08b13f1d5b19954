package engine

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/values"
)

// The config that was accepted last is kept with what is kept for the global hooks, so
// that a ConfigMap that is gone at a restart changes nothing: each section under a key
// for itself, for a key has room for one section, and not for all of them.
const (
	configGlobalKey  = "config.global"
	configEnabledKey = "config.enabled"
	configSection    = "config.section." // and the module's name
	// configKey held all of it in one.
	configKey = "config"

	// maxSection is how large one section may be, as JSON, in bytes: below what can be
	// kept under one key.
	maxSection = 800 << 10
)

// sectionSize is the size of a section as it is kept.
func sectionSize(section map[string]any) int {
	data, err := json.Marshal(section)
	if err != nil {
		return 0 // it came from YAML: it can be written
	}
	return len(data)
}

// isConfigKey says whether a part of the config is kept under a key.
func isConfigKey(key string) bool {
	return key == configKey || key == configGlobalKey || key == configEnabledKey || strings.HasPrefix(key, configSection)
}

// keepConfig keeps the accepted config.
func (e *Engine) keepConfig() {
	parts := map[string]any{}
	if e.config.accepted.Global != nil {
		parts[configGlobalKey] = e.config.accepted.Global
	}
	for name, section := range e.config.accepted.Sections {
		parts[configSection+name] = section
	}
	if switches := e.config.accepted.Enabled; len(switches) > 0 {
		parts[configEnabledKey] = switches
	}
	store := e.global.store
	for key := range store.All() {
		if isConfigKey(key) && parts[key] == nil {
			store.Put(key, nil)
		}
	}
	for key, part := range parts {
		data, _ := json.Marshal(part) // it came from YAML: it can be written
		store.Put(key, data)
	}
}

// keptConfig reads the config out of what was kept, and returns the keys that cannot be
// read.
func keptConfig(kept map[string][]byte) (config values.Config, broken []string) {
	read := func(key string, into any) {
		// Integers stay integers, as when the ConfigMap itself is read.
		if err := kjson.UnmarshalCaseSensitivePreserveInts(kept[key], into); err != nil {
			broken = append(broken, key)
		}
	}
	if len(kept[configKey]) > 0 {
		read(configKey, &config)
	}
	for _, key := range slices.Sorted(maps.Keys(kept)) {
		switch name, section := strings.CutPrefix(key, configSection); {
		case section:
			var values map[string]any
			if read(key, &values); values != nil {
				if config.Sections == nil {
					config.Sections = map[string]map[string]any{}
				}
				config.Sections[name] = values
			}
		case key == configGlobalKey:
			read(key, &config.Global)
		case key == configEnabledKey:
			read(key, &config.Enabled)
		}
	}
	return config, broken
}

// adoptConfig starts with the config that an earlier process accepted.
func (e *Engine) adoptConfig() {
	config, broken := keptConfig(e.global.store.Data())
	if len(broken) > 0 {
		e.note(builtins.LevelWarn, e.global, "", "of the config that was kept some cannot be read, and is not used: "+strings.Join(broken, ", "))
	}
	if len(config.Global)+len(config.Sections)+len(config.Enabled) > 0 {
		e.config.accepted = config
		e.keepConfig()
		e.applySections()
	}
}
