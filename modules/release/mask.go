package release

import (
	"encoding/base64"
	"errors"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// mask takes secrets out of error texts: what rendered Secrets hold, and values
// under keys that sound like secrets. Helm, the template engine and the API
// server quote freely.
type mask struct{ secrets []string }

// minSecret is the length below which a secret cannot be told from a word.
const minSecret = 4

var (
	soundsSecret = regexp.MustCompile(`(?i)(passw|token|credential|privatekey|apikey|accesskey|secretkey|clientsecret|^secret$|auth$)`)
	soundsPlain  = regexp.MustCompile(`(?i)(name|ref|enabled|namespace|path|file|url|type)$|^existing`)
	secretKind   = regexp.MustCompile(`(?m)^kind:\s*["']?Secret\b`)
)

// newMask collects the secrets of a target: its values and, when it was rendered,
// its manifests.
func newMask(values map[string]any, rendered map[string]string) *mask {
	m := &mask{}
	m.values(values, false)
	for _, text := range rendered {
		if secretKind.MatchString(text) {
			m.manifests(text)
		}
	}
	slices.SortFunc(m.secrets, func(a, b string) int { return len(b) - len(a) })
	return m
}

func (m *mask) add(s string) {
	s = strings.TrimSpace(s)
	if len(s) < minSecret || s == "true" || s == "false" {
		return
	}
	m.secrets = append(m.secrets, s, base64.StdEncoding.EncodeToString([]byte(s)))
}

func (m *mask) values(v any, secret bool) {
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

func (m *mask) manifests(text string) {
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
func (m *mask) clean(err error) error {
	cleaned := m.text(err.Error())
	if cleaned == err.Error() {
		return err
	}
	var cause *stopped
	if errors.As(err, &cause) {
		return &masked{text: cleaned, cause: cause.cause}
	}
	return errors.New(cleaned)
}

// text returns s without the secrets.
func (m *mask) text(s string) string {
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
