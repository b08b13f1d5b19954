package values

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	data "github.com/starling-operator/starling/runtime/object"
)

// hidden stands for a text that nobody is to see.
const hidden = "***"

// secrets are the texts of one explanation that were of the type secret. They are known
// by the operations that set them, and again wherever another value repeats them.
type secrets struct {
	whole  map[string]bool
	inside []string // longest first
}

func newSecrets(tracers []*tracer) *secrets {
	s := &secrets{whole: map[string]bool{}}
	for _, t := range tracers {
		for _, h := range t.s.Hooks {
			for _, op := range h.Ops {
				for _, at := range op.Secrets {
					if text, ok := inside(op.Value, at).(string); ok && len(text) >= data.MinSecret {
						s.whole[text] = true
					}
				}
			}
		}
	}
	for _, text := range slices.Sorted(maps.Keys(s.whole)) {
		if len(text) >= data.MinSecretInside {
			s.inside = append(s.inside, text)
		}
	}
	slices.SortStableFunc(s.inside, func(a, b string) int { return len(b) - len(a) })
	return s
}

// SecretTexts are the texts that hooks have set as secrets.
func (x Explanation) SecretTexts() []string {
	if x.secrets == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(x.secrets.whole))
}

// hide returns v with *** at the marked paths and for each text that is known as secret,
// and whether there was any. v is not changed.
func (s *secrets) hide(v any, marks [][]string) (any, bool) {
	if s == nil || len(s.whole) == 0 && len(marks) == 0 {
		return v, false
	}
	switch v := v.(type) {
	case string:
		if s.whole[v] || slices.ContainsFunc(marks, func(m []string) bool { return len(m) == 0 }) {
			return hidden, true
		}
		text := v
		for _, secret := range s.inside {
			text = strings.ReplaceAll(text, secret, hidden)
		}
		return text, text != v
	case map[string]any:
		out, found := make(map[string]any, len(v)), false
		for k, e := range v {
			h, is := s.hide(e, marksIn(marks, []string{k}))
			out[k], found = h, found || is
		}
		return out, found
	case []any:
		out, found := make([]any, len(v)), false
		for i, e := range v {
			h, is := s.hide(e, marksIn(marks, []string{strconv.Itoa(i)}))
			out[i], found = h, found || is
		}
		return out, found
	}
	return v, false
}

// marksIn returns the marks at or below a path, from there on.
func marksIn(marks [][]string, path []string) [][]string {
	var out [][]string
	for _, m := range marks {
		if hasPrefix(m, path) {
			out = append(out, m[len(path):])
		}
	}
	return out
}
