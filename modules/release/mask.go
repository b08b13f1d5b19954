package release

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	plain "github.com/starling-operator/starling/runtime/object"
)

// Mask takes secrets out of texts for people: what Secrets hold, and values under
// keys that sound like secrets. Helm, the template engine and the API server quote
// freely.
type Mask struct{ secrets []string }

// minSecret is the length below which a secret cannot be told from a word.
const minSecret = plain.MinSecret

const (
	// minLine is the length from which a line of a secret of many is taken for one, and
	// minKey that from which a secret is looked for in keys and paths.
	minLine = 16
	minKey  = 8
)

var (
	soundsSecret = regexp.MustCompile(`(?i)(passw|token|credential|privatekey|apikey|accesskey|secretkey|clientsecret|^secret$|auth$)`)
	soundsPlain  = regexp.MustCompile(`(?i)(name|ref|enabled|namespace|path|file|url|type)$|^existing`)
	soundsRef    = regexp.MustCompile(`(?i)(name|ref|enabled|namespace|type)$|^existing`)
	secretKind   = regexp.MustCompile(`(?m)^kind:\s*["']?Secret\b`)
)

// NewMask makes a mask that knows nothing yet.
func NewMask() *Mask { return &Mask{} }

// Values adds the values, plain data, under keys that sound like secrets.
func (m *Mask) Values(values map[string]any) {
	m.values(values, false)
	m.sort()
}

// Add adds texts that are secret.
func (m *Mask) Add(texts ...string) {
	for _, text := range texts {
		m.add(text)
	}
	m.sort()
}

// Secret adds what a Secret holds, decoded as JSON, and of that what is JSON itself the
// parts that sound like secrets.
func (m *Mask) Secret(obj map[string]any) {
	for _, field := range []string{"data", "stringData"} {
		data, _ := obj[field].(map[string]any)
		for _, v := range data {
			text, _ := v.(string)
			m.add(text)
			if raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text)); err == nil && field == "data" {
				text = string(raw)
				m.add(text)
			}
			var parts map[string]any
			if strings.HasPrefix(strings.TrimSpace(text), "{") && json.Unmarshal([]byte(text), &parts) == nil {
				m.values(parts, false)
			}
		}
	}
	m.sort()
}

// SoundsSecret says whether a value under this key is most likely a secret.
func SoundsSecret(key string) bool {
	plain := strings.NewReplacer("_", "", "-", "").Replace(key)
	return soundsSecret.MatchString(plain) && !soundsPlain.MatchString(plain)
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

// add adds a secret in the forms in which it turns up elsewhere: as base64, in JSON, in a
// URL, and line by line, as it is indented or shown.
func (m *Mask) add(s string) {
	s = strings.TrimSpace(s)
	if len(s) < minSecret || s == "true" || s == "false" {
		return
	}
	m.secrets = append(m.secrets, s, base64.StdEncoding.EncodeToString([]byte(s)))
	once, html := quoted(s, false), quoted(s, true)
	for _, form := range []string{once, quoted(once, false), html, quoted(html, true), url.QueryEscape(s), url.PathEscape(s)} {
		if form != s {
			m.secrets = append(m.secrets, form)
		}
	}
	if !strings.Contains(s, "\n") {
		return
	}
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); len(line) >= minLine && !strings.HasPrefix(line, "-----") {
			m.secrets = append(m.secrets, line)
		}
	}
}

// quoted is a text as it stands in JSON, with or without < and the like.
func quoted(s string, escapeHTML bool) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(escapeHTML)
	_ = enc.Encode(s) // a string always can be
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(b.String()), `"`), `"`)
}

func (m *Mask) values(v any, secret bool) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			// What names a secret, or says of which type it is, is none.
			m.values(e, secret && !soundsRef.MatchString(k) || SoundsSecret(k))
		}
	case []any:
		for _, e := range v {
			m.values(e, secret)
		}
	case string:
		if secret {
			m.add(v)
		}
	case int64:
		if secret {
			m.add(strconv.FormatInt(v, 10))
		}
	case float64:
		if secret {
			m.add(strconv.FormatFloat(v, 'f', -1, 64))
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

// Key returns s, a key or a path, without the secrets that cannot be words of it.
func (m *Mask) Key(s string) string {
	for _, secret := range m.secrets {
		if len(secret) >= minKey {
			s = strings.ReplaceAll(s, secret, "***")
		}
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
