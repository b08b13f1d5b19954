package values

import (
	"fmt"
	"strings"
	"time"
)

// The layers that a [Source] names, lowest first.
const (
	// LayerModule is module(enabled=…), of switches only.
	LayerModule = "module.star"
	// LayerChart is the chart's values.yaml.
	LayerChart = "chart values.yaml"
	// LayerFolder is the values.yaml of a module whose chart comes from somewhere else.
	LayerFolder = "module values.yaml"
	// LayerTree is the values.yaml of the tree.
	LayerTree = "tree values.yaml"
	// LayerSchema are the defaults of the schemas.
	LayerSchema = "schema default"
	// LayerDefault is values.default of a hook.
	LayerDefault = "hook default"
	// LayerEnabled are the names of the modules that are on.
	LayerEnabled = "modules that are on"
	// LayerExports, a space and the name of a module are what that module exports.
	LayerExports = "exports of module"
	// LayerConfig is the user's ConfigMap, LayerObject the Module object, which counts in its place.
	LayerConfig = "config"
	LayerObject = "module object"
	// LayerHook is what a hook sets, merges or removes.
	LayerHook = "hook"
)

// Source is the place that gave a value.
type Source struct {
	// Layer is one of the Layer constants.
	Layer string `json:"layer"`
	// File is the path of the file in the tree, Line the line in it, from 1. For the
	// user's config Line is that in the text of Key. Empty and 0: not known.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// Config names the object that holds the user's config, Key the key in its data.
	Config string `json:"config,omitempty"`
	Key    string `json:"key,omitempty"`
	// Hook is the hook's id, with for_each followed by " of " and the object.
	Hook string `json:"hook,omitempty"`
	// Run is the engine's number of the hook's run, At when it began. Without them
	// the layer was kept from before a restart, and its hook has not run since.
	Run uint64     `json:"run,omitempty"`
	At  *time.Time `json:"at,omitempty"`
}

// From says for people who gave the value: "config", "hook web/hooks/a.star:f".
func (s Source) From() string {
	if s.Hook != "" {
		return s.Layer + " " + s.Hook
	}
	return s.Layer
}

// Place says for people where: "web/values.yaml:3", "ConfigMap ns/starling, web, line 2".
// Runs are not in it.
func (s Source) Place() string {
	var parts []string
	switch {
	case s.Config != "":
		parts = append(parts, s.Config)
		if s.Key != "" {
			parts = append(parts, s.Key)
		}
		if s.Line > 0 {
			parts = append(parts, fmt.Sprintf("line %d", s.Line))
		}
	case s.File != "" && s.Line > 0:
		parts = append(parts, fmt.Sprintf("%s:%d", s.File, s.Line))
	case s.File != "":
		parts = append(parts, s.File)
	}
	return strings.Join(parts, ", ")
}
