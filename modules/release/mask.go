package release

import (
	"regexp"

	"sigs.k8s.io/yaml"

	plain "github.com/starling-operator/starling/runtime/object"
)

// Helm, the template engine and the API server quote freely. So errors and log lines of a
// release are shown without the secrets of its target.

var secretKind = regexp.MustCompile(`(?m)^kind:\s*["']?Secret\b`)

// newMask collects the secrets of a target: those that are known, its values that sound
// like some, what it has looked up, and, when it was rendered, its manifests.
func newMask(t Target, r rendering) *plain.Mask {
	m := &plain.Mask{}
	if t.Secrets != nil {
		for _, text := range t.Secrets() {
			m.Secret(text)
		}
	}
	m.Sounding(t.Values)
	for _, obj := range r.lookedUp {
		m.Object(obj)
	}
	for _, text := range r.files {
		if !secretKind.MatchString(text) {
			continue
		}
		for _, doc := range plain.Documents(text) {
			var obj map[string]any
			if yaml.Unmarshal([]byte(doc), &obj) == nil {
				m.Object(obj)
			}
		}
	}
	return m
}

// clean returns err without the secrets.
func clean(m *plain.Mask, err error) error {
	cleaned := m.Text(err.Error())
	if cleaned == err.Error() {
		return err
	}
	return &worded{cleaned, err}
}
