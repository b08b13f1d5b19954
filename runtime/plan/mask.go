package plan

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/modules/release"
	"github.com/starling-operator/starling/runtime/sim"
	"github.com/starling-operator/starling/runtime/sim/store"
)

// hiddenText stands for a secret.
const hiddenText = "***"

var (
	// documents of a manifest begin after such a line. What looks like it inside of one,
	// the end of a PEM's first line say, is indented or has something before it.
	document = regexp.MustCompile(`(?m)^---[ \t]*(?:#.*)?\n`)
	// encoded is what may be base64, and long enough to hold a secret.
	encoded = regexp.MustCompile(`[A-Za-z0-9+/_-]{8,}={0,2}`)
)

// masker knows secrets, and takes them out of what people are shown.
type masker struct{ *release.Mask }

// newMasker knows the Secrets that the world has seen, what its hooks have set as
// secrets, and the values of releases and modules that sound like some.
func newMasker(w *sim.World, releases ...map[release.Ref]*sim.Release) *masker {
	m := &masker{release.NewMask()}
	for _, of := range releases {
		for _, r := range of {
			m.Values(r.Values)
		}
	}
	for _, name := range w.Modules() {
		m.Values(w.Values(name))
		if in, err := w.Explain(name); err == nil {
			m.Add(in.Explain().SecretTexts()...)
		}
	}
	for _, obj := range w.Store().Known(store.Kind{Version: "v1", Kind: "Secret", Plural: "secrets", Builtin: true}) {
		if !own(obj) {
			m.Secret(obj)
		}
	}
	return m
}

// Text returns s without the secrets, and without what holds some as base64.
func (m *masker) Text(s string) string {
	s = m.Mask.Text(s)
	return encoded.ReplaceAllStringFunc(s, func(token string) string {
		trimmed := strings.TrimRight(token, "=")
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			if raw, err := encoding.DecodeString(trimmed); err == nil && m.Mask.Key(string(raw)) != string(raw) {
				return hiddenText
			}
		}
		return token
	})
}

// plain masks the strings of plain data, the keys of maps, and numbers that are secrets.
func (m *masker) plain(v *any) (out *any, hid bool) {
	if v == nil {
		return nil, false
	}
	var walk func(any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case string:
			text := m.Text(v)
			hid = hid || text != v
			return text
		case int64:
			if m.Mask.Text(strconv.FormatInt(v, 10)) == hiddenText {
				hid = true
				return hiddenText
			}
		case float64:
			if m.Mask.Text(strconv.FormatFloat(v, 'f', -1, 64)) == hiddenText {
				hid = true
				return hiddenText
			}
		case []any:
			out := make([]any, len(v))
			for i, e := range v {
				out[i] = walk(e)
			}
			return out
		case map[string]any:
			out := make(map[string]any, len(v))
			for k, e := range v {
				key := m.Key(k)
				hid = hid || key != k
				out[key] = walk(e)
			}
			return out
		}
		return v
	}
	masked := walk(*v)
	return &masked, hid
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
	if items, ok := obj["items"].([]any); ok {
		for _, e := range items {
			if item, ok := e.(map[string]any); ok {
				found = hideData(item) || found
			}
		}
	}
	if obj["kind"] != "Secret" {
		return found
	}
	for _, field := range []string{"data", "stringData"} {
		data, _ := obj[field].(map[string]any)
		for key := range data {
			data[key] = hiddenText
		}
	}
	return true
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
