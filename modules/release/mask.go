package release

import (
	"cmp"
	"encoding/base64"
	"errors"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Mask takes secrets out of texts for people: what Secrets hold, and values under
// keys that sound like secrets. Helm, the template engine and the API server quote
// freely.
type Mask struct{ secrets []string }

// minSecret is the length below which a secret cannot be told from a word.
const minSecret = 4

var (
	soundsSecret = regexp.MustCompile(`(?i)(passw|token|credential|privatekey|apikey|accesskey|secretkey|clientsecret|^secret$|auth$)`)
	soundsPlain  = regexp.MustCompile(`(?i)(name|ref|enabled|namespace|path|file|url|type)$|^existing`)
	secretKind   = regexp.MustCompile(`(?m)^kind:\s*["']?Secret\b`)
)

// NewMask makes a mask that knows nothing yet.
func NewMask() *Mask { return &Mask{} }

// Values adds the values, plain data, under keys that sound like secrets.
func (m *Mask) Values(values map[string]any) {
	m.values(values, false)
	m.sort()
}

// Secret adds what a Secret holds, decoded as JSON.
func (m *Mask) Secret(obj map[string]any) {
	for _, field := range []string{"data", "stringData"} {
		data, _ := obj[field].(map[string]any)
		for _, v := range data {
			text, _ := v.(string)
			m.add(text)
			if raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text)); err == nil && field == "data" {
				m.add(string(raw))
			}
		}
	}
	m.sort()
}

// sort puts longer secrets first: one may hold another.
func (m *Mask) sort() {
	slices.SortFunc(m.secrets, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	m.secrets = slices.Compact(m.secrets)
}

// newMask collects the secrets of a target: its values and, when it was rendered,
// its manifests.
func newMask(values map[string]any, rendered map[string]string) *Mask {
	m := &Mask{}
	m.values(values, false)
	for _, text := range rendered {
		if secretKind.MatchString(text) {
			m.manifests(text)
		}
	}
	m.sort()
	return m
}

func (m *Mask) add(s string) {
	s = strings.TrimSpace(s)
	if len(s) < minSecret || s == "true" || s == "false" {
		return
	}
	m.secrets = append(m.secrets, s, base64.StdEncoding.EncodeToString([]byte(s)))
}

func (m *Mask) values(v any, secret bool) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			plain := strings.NewReplacer("_", "", "-", "").Replace(k)
			m.values(e, secret || soundsSecret.MatchString(plain) && !soundsPlain.MatchString(plain))
		}
	case []any:
		for _, e := range v {
			m.values(e, secret)
		}
	case string:
		if secret {
			m.add(v)
		}
	}
}

func (m *Mask) manifests(text string) {
	for _, doc := range strings.Split(text, "\n---") {
		var object struct {
			Kind       string            `json:"kind"`
			Data       map[string]string `json:"data"`
			StringData map[string]string `json:"stringData"`
		}
		if yaml.Unmarshal([]byte(doc), &object) != nil || object.Kind != "Secret" {
			continue
		}
		for _, s := range object.StringData {
			m.add(s)
		}
		for _, s := range object.Data {
			m.add(s)
			if raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(s)); err == nil {
				m.add(string(raw))
			}
		}
	}
}

// clean returns err without the secrets. What errors.Is finds in err it finds in
// the result.
func (m *Mask) clean(err error) error {
	cleaned := m.Text(err.Error())
	if cleaned == err.Error() {
		return err
	}
	var cause *stopped
	if errors.As(err, &cause) {
		return &masked{text: cleaned, cause: cause.cause}
	}
	return errors.New(cleaned)
}

// Text returns s without the secrets.
func (m *Mask) Text(s string) string {
	if m == nil {
		return s
	}
	for _, secret := range m.secrets {
		s = strings.ReplaceAll(s, secret, "***")
	}
	return s
}

// masked is an error whose text was cleaned.
type masked struct {
	text  string
	cause error
}

// Error is the cleaned text.
func (e *masked) Error() string { return e.text }

// Unwrap gives the cause, which holds no values.
func (e *masked) Unwrap() error { return e.cause }
