package userconfig

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"
)

// The config that was accepted last is kept, so that a ConfigMap that is gone at a restart changes nothing: each
// section under a key for itself, for a key has room for one section, and not for all of them.
const (
	globalKey  = "config.global"
	enabledKey = "config.enabled"
	policyKey  = "config.policies"
	sectionKey = "config.section." // and the module's name
	// objectsKey has an [origin] per module of which something is in force by its Module object.
	objectsKey = "config.objects"

	// MaxSection is how large one section may be, as JSON, in bytes: below what can be kept under one key.
	MaxSection = 800 << 10
)

// IsKey says whether a part of the config is kept under a key.
func IsKey(key string) bool {
	return key == globalKey || key == enabledKey || key == policyKey || key == objectsKey || strings.HasPrefix(key, sectionKey)
}

// sizeOf is the size of a section as it is kept.
func sizeOf(section map[string]any) int {
	data, err := json.Marshal(section)
	if err != nil {
		return 0 // it came from YAML: it can be written
	}
	return len(data)
}

// Keep is what has to be kept of the config, by key.
func (c *Config) Keep() map[string][]byte {
	out := map[string][]byte{}
	c = c.newest()
	put := func(key string, part any) {
		out[key], _ = json.Marshal(part) // it came from YAML: it can be written
	}
	if c.accepted.Global != nil {
		put(globalKey, c.accepted.Global)
	}
	for name, section := range c.accepted.Sections {
		put(sectionKey+name, section)
	}
	if len(c.accepted.Enabled) > 0 {
		put(enabledKey, c.accepted.Enabled)
	}
	if len(c.accepted.Policies) > 0 {
		put(policyKey, c.accepted.Policies)
	}
	if len(c.origins) > 0 {
		put(objectsKey, c.origins)
	}
	return out
}

// Adopt starts with what an earlier process has accepted and kept. It returns the keys that cannot be read.
func (c *Config) Adopt(kept map[string][]byte) (broken []string) {
	config := &c.accepted
	read := func(key string, into any) {
		// Integers stay integers, as when the ConfigMap itself is read.
		if err := kjson.UnmarshalCaseSensitivePreserveInts(kept[key], into); err != nil {
			broken = append(broken, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(kept)) {
		switch name, section := strings.CutPrefix(key, sectionKey); {
		case section:
			var values map[string]any
			if read(key, &values); values != nil {
				if config.Sections == nil {
					config.Sections = map[string]map[string]any{}
				}
				config.Sections[name] = values
			}
		case key == globalKey:
			read(key, &config.Global)
		case key == enabledKey:
			read(key, &config.Enabled)
		case key == policyKey:
			read(key, &config.Policies)
		case key == objectsKey:
			read(key, &c.origins)
		}
	}
	if c.next != nil {
		c.next.accepted, c.next.origins = c.accepted, c.origins
	}
	return broken
}
