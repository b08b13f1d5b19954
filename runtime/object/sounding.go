package object

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	soundsSecret = regexp.MustCompile(`(?i)(passw|token|credential|privatekey|apikey|accesskey|secretkey|clientsecret|^secret$|auth$)`)
	soundsPlain  = regexp.MustCompile(`(?i)(name|ref|enabled|namespace|path|file|url|type)$|^existing`)
	soundsRef    = regexp.MustCompile(`(?i)(name|ref|enabled|namespace|type)$|^existing`)
)

// SoundsSecret says whether a value under this key is most likely a secret.
func SoundsSecret(key string) bool {
	plain := strings.NewReplacer("_", "", "-", "").Replace(key)
	return soundsSecret.MatchString(plain) && !soundsPlain.MatchString(plain)
}

// Named takes in the name of a Secret, which no secret is.
func (m *Mask) Named(secret string) {
	if m.names == nil {
		m.names = map[string]struct{}{}
	}
	m.names[secret] = struct{}{}
}

// Sounds is [SoundsSecret] for a value: under the key "secret" mostly stands the name of one, which is none where there
// is a Secret of this name.
func (m *Mask) Sounds(key string, v any) bool {
	if !SoundsSecret(key) || !strings.EqualFold(key, "secret") {
		return SoundsSecret(key)
	}
	text, is := v.(string)
	if is {
		_, is = m.names[text]
	}
	return !is
}

// Sounding takes in the texts and numbers of plain data under keys that sound like secrets.
func (m *Mask) Sounding(v any) { m.sounding(v, false) }

func (m *Mask) sounding(v any, secret bool) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			// The name of a secret, or its type, is no secret.
			m.sounding(e, secret && !soundsRef.MatchString(k) || m.Sounds(k, e))
		}
	case []any:
		for _, e := range v {
			m.sounding(e, secret)
		}
	case string:
		if secret {
			m.Secret(v)
		}
	case int64:
		if secret {
			m.Add(strconv.FormatInt(v, 10))
		}
	case float64:
		if secret {
			m.Add(strconv.FormatFloat(v, 'f', -1, 64))
		}
	}
}
