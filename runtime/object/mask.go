package object

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Hidden stands for what people are not shown.
const Hidden = "***"

const (
	// maxMasked is how many bytes of secrets one mask knows. Past it nothing can be told
	// from a secret, and no text is shown.
	maxMasked = 8 << 20
	// maxPart is the length from which a secret is known by its parts, of partLength: so a
	// piece of it is found too, and a look at one character of a text costs no more than
	// sixty-four look-ups, however many secrets there are and however long they are.
	partLength, maxPart = 64, partLength + MinSecretInside - 1
	// minLine is the length from which a line of a secret of many is taken for one.
	minLine = 16
	// maxEscaped is the length up to which a text is known as it is in JSON and URLs.
	maxEscaped = 256
	// cutMark stands where a text was cut, and maxLooks bounds at how many beginnings of
	// secrets one text is looked at for one that was.
	cutMark, maxLooks = "…", 64
)

// tooMuch is shown instead of texts when a mask knows too much.
const tooMuch = Hidden + " (not shown: what was read from Secrets is too much to be looked for in it)"

// Mask knows secrets and hides them in texts for people. The zero mask knows none, and
// hides private keys. It must not change while it is used.
type Mask struct {
	// known are the secrets, or their parts, and lengths how long those are that begin
	// like this: bit 0 is MinSecretInside.
	known   map[string]struct{}
	lengths map[[MinSecretInside]byte]uint64
	size    int
	names   map[string]struct{} // of Secrets
}

// Empty says that nothing is known to be secret.
func (m *Mask) Empty() bool { return m.size == 0 }

// Add takes in a text as it is.
func (m *Mask) Add(text string) {
	if len(text) < MinSecret || text == "true" || text == "false" {
		return
	}
	for len(text) > maxPart {
		m.part(text[:partLength])
		text = text[partLength:]
	}
	m.part(text)
}

func (m *Mask) part(text string) {
	if _, known := m.known[text]; known || m.size > maxMasked {
		return
	}
	if m.size += len(text); m.size > maxMasked {
		m.known, m.lengths = nil, nil
		return
	}
	if m.known == nil {
		m.known, m.lengths = map[string]struct{}{}, map[[MinSecretInside]byte]uint64{}
	}
	m.known[text] = struct{}{}
	if len(text) >= MinSecretInside {
		m.lengths[[MinSecretInside]byte([]byte(text[:MinSecretInside]))] |= 1 << (len(text) - MinSecretInside)
	}
}

// Secret takes in a text in the forms in which it turns up: as it is, without base64
// and without the space around it, in quotes, in JSON, in a URL, and line by line; and of a
// text that is JSON, the parts that sound like secrets.
func (m *Mask) Secret(text string) {
	if len(text) < MinSecret || m.size > maxMasked {
		return
	}
	m.forms(text)
	if decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text)); err == nil {
		m.forms(string(decoded))
	}
}

func (m *Mask) forms(text string) {
	m.Add(text)
	trimmed := strings.TrimSpace(text)
	m.Add(trimmed)
	if len(trimmed) < MinSecretInside { // too short to be found by what Text decodes
		m.Add(base64.StdEncoding.EncodeToString([]byte(text)))
		m.Add(base64.StdEncoding.EncodeToString([]byte(trimmed)))
	}
	if len(trimmed) <= maxEscaped {
		m.escaped(trimmed)
	}
	if strings.HasPrefix(trimmed, "{") {
		var parts map[string]any
		if json.Unmarshal([]byte(trimmed), &parts) == nil {
			m.Sounding(parts)
		}
	}
	for line := range strings.Lines(trimmed) {
		if line = strings.TrimSpace(line); len(line) >= minLine && line != trimmed && !strings.HasPrefix(line, "-----") {
			m.Add(line)
		}
	}
}

// escaped takes in a text as it is in quotes, in JSON, in JSON within JSON, and in URLs.
func (m *Mask) escaped(text string) {
	once, html := inJSON(text, false), inJSON(text, true)
	quoted := strconv.Quote(text)
	for _, form := range [...]string{
		quoted[1 : len(quoted)-1], once, html, inJSON(once, false), inJSON(html, true), url.QueryEscape(text), url.PathEscape(text),
	} {
		m.Add(form)
	}
}

// inJSON is a text as it is in JSON, with or without < and the like.
func inJSON(text string, escapeHTML bool) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(escapeHTML)
	_ = enc.Encode(text) // a string always can be
	quoted := strings.TrimSuffix(b.String(), "\n")
	return quoted[1 : len(quoted)-1]
}

// Object takes in what a Secret holds; of all else, nothing.
func (m *Mask) Object(v any) {
	if obj, ok := v.(map[string]any); ok && obj["kind"] == "Secret" {
		m.Data(obj)
	}
}

// Data takes in data and stringData of a Secret, or of a patch to one.
func (m *Mask) Data(obj map[string]any) {
	for _, field := range [...]string{"data", "stringData"} {
		data, _ := obj[field].(map[string]any)
		for _, v := range data {
			if text, ok := v.(string); ok {
				m.Secret(text)
			}
		}
	}
}

// open are the keys under which nothing secret is in what is left of a Secret.
var open = [...]string{"name", "namespace", "kind", "apiVersion", "type", "uid", "resourceVersion", "labels"}

// Leaves takes in all texts of what was made of a Secret, but those that name things.
func (m *Mask) Leaves(v any) {
	switch v := v.(type) {
	case string:
		m.Secret(v)
	case map[string]any:
		for k, e := range v {
			if !slices.Contains(open[:], k) {
				m.Leaves(e)
			}
		}
	case []any:
		for _, e := range v {
			m.Leaves(e)
		}
	}
}

var (
	privateKey = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(?s:.*?)-----END [A-Z0-9 ]*PRIVATE KEY-----`)
	// fromURL makes base64 as in URLs the usual one.
	fromURL = strings.NewReplacer("-", "+", "_", "/")
	// encoded is what may be base64, and long enough to hold a secret.
	encoded = regexp.MustCompile(`[A-Za-z0-9+/_-]{8,}={0,2}`)
)

// Text hides what is secret in a text, also in base64 of a longer one, and private keys
// that are not known; a text with a part of such a key it hides as a whole.
func (m *Mask) Text(text string) string {
	text = m.replace(text)
	if strings.Contains(text, "PRIVATE KEY-----") {
		if text = privateKey.ReplaceAllString(text, Hidden); strings.Contains(text, "PRIVATE KEY-----") {
			return Hidden
		}
	}
	if len(m.known) == 0 {
		return text
	}
	return encoded.ReplaceAllStringFunc(text, func(token string) string {
		if m.holdsEncoded(strings.TrimRight(token, "=")) {
			return Hidden
		}
		return token
	})
}

// holdsEncoded says whether a text is, or ends in, base64 of what holds a secret.
func (m *Mask) holdsEncoded(token string) bool {
	token = fromURL.Replace(token)
	for range 4 {
		// Its last byte may be half of one: the rest is decoded all the same.
		raw := make([]byte, base64.RawStdEncoding.DecodedLen(len(token)))
		n, _ := base64.RawStdEncoding.Decode(raw, []byte(token))
		if text := string(raw[:n]); m.replace(text) != text {
			return true
		}
		token = token[1:] // something may stand before it
	}
	return false
}

// Key hides what is secret in a key or a path, but for words that are too short to be told
// from those of keys.
func (m *Mask) Key(key string) string {
	if len(key) < MinSecretInside {
		return key
	}
	return m.Text(key)
}

// replace hides what is known.
func (m *Mask) replace(text string) string {
	if text == "" {
		return text
	}
	if m.size > maxMasked {
		return tooMuch
	}
	if _, secret := m.known[text]; secret {
		return Hidden
	}
	var b strings.Builder
	end := 0 // of what is hidden, or copied
	looks := maxLooks
	if !strings.Contains(text, cutMark) {
		looks = 0
	}
	for i := 0; len(m.lengths) > 0 && i+MinSecretInside <= len(text); i++ {
		n := m.longest(text[i:])
		if n == 0 && looks > 0 {
			n = m.cut(text[i:], &looks)
		}
		if n == 0 || i+n <= end {
			continue
		}
		if i > end || end == 0 { // the first one, or another one
			b.WriteString(text[end:i])
			b.WriteString(Hidden)
		}
		end = i + n
	}
	if end == 0 {
		return text
	}
	return b.String() + text[end:]
}

// cut returns the length of the part of a secret that a text begins with and that was cut off
// behind it; 0 for none.
func (m *Mask) cut(text string, looks *int) int {
	if m.lengths[[MinSecretInside]byte([]byte(text[:MinSecretInside]))] == 0 {
		return 0
	}
	n := strings.Index(text[:min(len(text), maxPart+len(cutMark))], cutMark)
	if n < MinSecretInside {
		return 0
	}
	if *looks--; *looks == 0 {
		return n // so many are no accident
	}
	for secret := range m.known {
		if strings.HasPrefix(secret, text[:n]) {
			return n
		}
	}
	return 0
}

// longest returns the length of the longest secret that a text begins with, 0 for none.
func (m *Mask) longest(text string) int {
	lengths := m.lengths[[MinSecretInside]byte([]byte(text[:MinSecretInside]))]
	for at := maxPart - MinSecretInside; lengths != 0 && at >= 0; at-- {
		n := at + MinSecretInside
		if lengths&(1<<at) == 0 || n > len(text) {
			continue
		}
		if _, secret := m.known[text[:n]]; secret {
			return n
		}
	}
	return 0
}

// Plain returns plain data with its secrets hidden; v is not changed.
func (m *Mask) Plain(v any) any {
	switch v := v.(type) {
	case string:
		return m.Text(v)
	case int64:
		if text := strconv.FormatInt(v, 10); m.Text(text) == Hidden {
			return Hidden
		}
	case float64:
		if text := strconv.FormatFloat(v, 'f', -1, 64); m.Text(text) == Hidden {
			return Hidden
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[m.Key(k)] = m.Plain(e)
		}
		if out["kind"] == "Secret" {
			for _, field := range [...]string{"data", "stringData"} {
				if data, ok := out[field].(map[string]any); ok {
					for k := range data {
						data[k] = Hidden
					}
				}
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = m.Plain(e)
		}
		return out
	}
	return v
}

// Inside returns what stands at a path in plain data, nil when nothing does.
func Inside(v any, path []string) any {
	for _, key := range path {
		switch holder := v.(type) {
		case map[string]any:
			v = holder[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(holder) {
				return nil
			}
			v = holder[i]
		default:
			return nil
		}
	}
	return v
}

// Marks returns the paths in plain data at which texts stand that are secret or hold some.
func (m *Mask) Marks(v any) [][]string {
	var out [][]string
	var walk func(path []string, v any)
	walk = func(path []string, v any) {
		switch v := v.(type) {
		case string:
			if m.Text(v) != v {
				out = append(out, slices.Clone(path))
			}
		case map[string]any:
			for k, e := range v {
				walk(append(slices.Clip(path), k), e)
			}
		case []any:
			for i, e := range v {
				walk(append(slices.Clip(path), strconv.Itoa(i)), e)
			}
		}
	}
	walk([]string{}, v)
	slices.SortFunc(out, slices.Compare)
	return out
}
