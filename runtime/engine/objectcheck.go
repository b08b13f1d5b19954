package engine

import (
	"github.com/starling-operator/starling/runtime/engine/userconfig"
	"github.com/starling-operator/starling/runtime/object"
)

// ObjectCheck says what is wrong with spec.values of a Module object, given as JSON, as its condition
// ValuesValid would; mark is as in [Options], settings carries out a CheckSettings. It goes by schemas and values as they were when it was
// made, needs the engine no more, and may be called from any goroutine.
type ObjectCheck func(values string, mark Mark, settings func(CheckSettings) SettingsChecked) []string

// CheckObject returns the check of a module's object; nil: there is no such module.
func (v *View) CheckObject(module string) ObjectCheck {
	m := v.modules[module]
	if m == nil || m.removed {
		return nil
	}
	last, secrets, s, gen := v.config.Accepted().Section(module), m.values.Secrets(), m.configSection(), m.gen
	return func(values string, mark Mark, settings func(CheckSettings) SettingsChecked) []string {
		wrong := userconfig.CheckObject(s, values, last, mark.around, func(q userconfig.Question) string {
			return settings(CheckSettings{Module: gen, Old: q.Old, New: q.New}).against()
		})
		if texts := secrets.Texts(); len(wrong) > 0 && len(texts) > 0 {
			hide(wrong, texts) // a rule may quote what a hook has set
		}
		return wrong
	}
}

func hide(texts, secrets []string) {
	var parts object.Parts
	for _, secret := range secrets {
		parts.Secret(map[string]any{"data": secret})
	}
	for i, text := range texts {
		texts[i] = parts.Hide(text)
	}
}
