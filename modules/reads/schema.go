package reads

import (
	"encoding/json"
	"slices"
)

// saysNothing are the keywords of a schema that do not depend on the values of a map.
var saysNothing = []string{"$schema", "$id", "id", "$comment", "title", "description", "examples", "default", "definitions", "$defs", "deprecated"}

// schema reads a values.schema.json. Each chart's is held to its values, where the global
// ones stand below `global`. False: it may read all.
func (c *chart) schema(data []byte) bool {
	root, ok := keywords(data)
	if !ok {
		return false
	}
	for word, text := range root {
		switch {
		case slices.Contains(saysNothing, word), word == "type", word == "required":
			// Both keys, and that it is a map, are always there.
		case word == "additionalProperties" && isBool(text):
		case word == "properties":
			properties, ok := keywords(text)
			if !ok {
				return false
			}
			for name, schema := range properties {
				if c.subcharts[name] || name == globalKey && !c.globalSchema(schema) {
					return false
				}
			}
		default:
			return false
		}
	}
	return true
}

// globalSchema reads the schema of `global`.
func (c *chart) globalSchema(data []byte) bool {
	if isBool(data) {
		return string(data) == "true"
	}
	words, ok := keywords(data)
	if !ok {
		return false
	}
	for word, text := range words {
		switch {
		case slices.Contains(saysNothing, word), word == "type":
		case word == "additionalProperties" && string(text) == "true":
		case word == "properties":
			properties, ok := keywords(text)
			if !ok {
				return false
			}
			for name := range properties {
				c.paths = append(c.paths, place{keys: []string{name}})
			}
		case word == "required":
			var names []string
			if json.Unmarshal(text, &names) != nil {
				return false
			}
			for _, name := range names {
				c.paths = append(c.paths, place{keys: []string{name}})
			}
		default:
			return false
		}
	}
	return true
}

func keywords(data []byte) (map[string]json.RawMessage, bool) {
	var m map[string]json.RawMessage
	err := json.Unmarshal(data, &m)
	return m, err == nil && m != nil
}

func isBool(text []byte) bool { return string(text) == "true" || string(text) == "false" }
