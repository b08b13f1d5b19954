package effect

// ModuleAPIVersion and ModuleKind are those of Module objects.
const (
	ModuleAPIVersion = "starling.dev/v1alpha1"
	ModuleKind       = "Module"
)

// ConfigChange is a change of one value that the user has set, see [WriteConfig].
type ConfigChange struct {
	// Key is the section in the user's ConfigMap: that of a module, or "global".
	Key string `json:"key"`
	// Path is exact, below the section.
	Path []string `json:"path"`
	// Value is plain JSON data. Remove takes out what is there.
	Value  any  `json:"value,omitempty"`
	Remove bool `json:"remove,omitempty"`
	// Secrets are the paths inside Value, empty for Value itself, at which texts stand that were
	// of the type secret.
	Secrets [][]string `json:"secrets,omitempty"`
	// Was is the value that the run has seen, nil for none. Where the user has set another one
	// since then, the write fails with a conflict.
	Was any `json:"was,omitempty"`
	// Create has the ConfigMap made when there is none. Object: the section is spec.values of the
	// Module object that is written. The engine decides both.
	Create bool `json:"create,omitempty"`
	Object bool `json:"object,omitempty"`
}
