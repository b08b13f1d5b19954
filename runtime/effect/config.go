package effect

import (
	"slices"
	"strings"
)

// ModuleAPIVersion and ModuleKind are those of Module objects, ModuleDefinition is the name of
// their CustomResourceDefinition.
const (
	ModuleAPIVersion = "starling.dev/v1alpha1"
	ModuleKind       = "Module"
	ModuleDefinition = "modules.starling.dev"
)

// TakesModules reports whether a CustomResourceDefinition is that of Module objects, or takes one
// of its names: the API server serves the first one of these only.
func TakesModules(definition map[string]any) bool {
	spec, _ := definition["spec"].(map[string]any)
	names, _ := spec["names"].(map[string]any)
	short, _ := names["shortNames"].([]any)
	group, _, _ := strings.Cut(ModuleAPIVersion, "/")
	return RefOf(definition).Name == ModuleDefinition || spec["group"] == group &&
		(names["kind"] == ModuleKind || names["listKind"] == ModuleKind+"List" || names["plural"] == "modules" ||
			names["singular"] == "module" || slices.ContainsFunc(short, func(s any) bool { return s == "mod" || s == "module" || s == "modules" }))
}

// ConfigChange is a change of one value that the user has set, see [WriteConfig].
type ConfigChange struct {
	// Key is the section in the user's ConfigMap: that of a module, or "global".
	Key string `json:"key"`
	// Path is exact, below the section.
	Path []string `json:"path"`
	// Value is plain JSON data. Remove takes out what is there.
	Value  any  `json:"value,omitempty"`
	Remove bool `json:"remove,omitempty"`
	// Secrets are the paths inside Value, empty for Value itself, at which texts stand that were of the type secret.
	Secrets [][]string `json:"secrets,omitempty"`
	// Was is the value that the run has seen, nil for none. Where the user has set another one
	// since then, the write fails with a conflict.
	Was any `json:"was,omitempty"`
	// Create has the ConfigMap made when there is none. Object: the section is spec.values of the
	// Module object that is written. The engine decides both.
	Create bool `json:"create,omitempty"`
	Object bool `json:"object,omitempty"`
}

const (
	// ReconcileAnnotation of a Module object has the module looked at now, whatever its value; it is taken off as that
	// begins.
	ReconcileAnnotation = "starling.dev/reconcile"
	// WithoutHooks is its value that has an uninstall which has failed skip the hooks of the chart.
	WithoutHooks = "uninstall-without-hooks"
)
