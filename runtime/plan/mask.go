package plan

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/modules/release"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/sim"
	"github.com/starling-operator/starling/runtime/sim/store"
)

// hiddenText stands for a secret.
const hiddenText = object.Hidden

// document: those of a manifest begin after such a line. A line that looks like it inside of one,
// the end of a PEM's first line say, is indented or has something before it.
var document = regexp.MustCompile(`(?m)^---[ \t]*(?:#.*)?\n`)

// masker knows secrets, and takes them out of what people are shown.
type masker struct{ object.Mask }

// newMasker knows what [Secrets] does, and the values of releases and modules that sound like some.
func newMasker(w *sim.World, releases ...map[release.Ref]*sim.Release) *masker {
	m := &masker{Secrets(w)}
	for _, of := range releases {
		for _, r := range of {
			m.Sounding(r.Values)
		}
	}
	for _, name := range w.Modules() {
		m.Sounding(w.Values(name))
	}
	return m
}

// Secrets knows the Secrets that the world has seen, and what its hooks have set as secrets.
func Secrets(w *sim.World) object.Mask {
	var m object.Mask
	for _, name := range w.Modules() {
		if in, err := w.Explain(name); err == nil {
			for _, text := range in.Explain().SecretTexts() {
				m.Secret(text)
			}
		}
	}
	for _, obj := range w.Store().Known(store.Kind{Version: "v1", Kind: "Secret", Plural: "secrets", Builtin: true}) {
		if own(obj) {
			continue
		}
		m.Object(obj)
		m.Named(effect.RefOf(obj).Name)
	}
	return m
}

// plain masks plain data, and says whether there was anything to hide.
func (m *masker) plain(v *any) (out *any, hid bool) {
	if v == nil {
		return nil, false
	}
	masked := m.Plain(*v)
	return &masked, !object.Same(*v, masked)
}

// sounds says whether a value before or after a change sounds like a secret under its key.
func (m *masker) sounds(key string, values ...*any) bool {
	return slices.ContainsFunc(values, func(v *any) bool { return v != nil && m.Sounds(key, *v) })
}

// scalar says that a value is one text or number.
func scalar(v *any) bool {
	if v == nil {
		return true
	}
	switch (*v).(type) {
	case string, int64, float64:
		return true
	}
	return false
}

func hidden(v *any) *any {
	if v == nil {
		return nil
	}
	var out any = hiddenText
	return &out
}

// hideData masks what a Secret holds, or the Secrets of a list, in place.
func hideData(obj map[string]any) (found bool) {
	objects, _ := object.Objects(obj)
	for _, one := range objects {
		for _, field := range []string{"data", "stringData"} {
			data, _ := one[field].(map[string]any)
			for key := range data {
				if one["kind"] == "Secret" {
					data[key], found = hiddenText, true
				}
			}
		}
	}
	return found
}

// MaskText is a text, such as that of an error, without the secrets that the world knows.
func MaskText(w *sim.World, text string) string { return newMasker(w).Text(text) }

// MaskManifest is the manifest of a release without what Secrets hold: of those that it
// makes, and of those that the world has seen.
func MaskManifest(w *sim.World, r *sim.Release) (string, error) {
	m := newMasker(w, map[release.Ref]*sim.Release{{}: r})
	docs := document.Split(strings.TrimLeft(r.Manifest, "\n"), -1)
	for i, doc := range docs {
		var obj map[string]any
		if err := yaml.Unmarshal([]byte(doc), &obj); err != nil {
			return "", fmt.Errorf("the manifest of release %s: %s", r.Name, m.Text(err.Error()))
		}
		if !hideData(obj) {
			docs[i] = m.Text(doc)
			continue
		}
		text, err := yaml.Marshal(obj)
		if err != nil {
			return "", err
		}
		source, _, _ := strings.Cut(doc, "\n")
		if !strings.HasPrefix(source, "#") {
			source = "" // the line that says where it comes from is missing
		}
		docs[i] = strings.TrimPrefix(source+"\n", "\n") + m.Text(string(text))
	}
	return strings.Join(docs, "---\n"), nil
}
