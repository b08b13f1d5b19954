package values

import (
	"slices"
	"strconv"

	"github.com/starling-operator/starling/runtime/effect"
	data "github.com/starling-operator/starling/runtime/object"
)

// hidden stands for a text that nobody is to see.
const hidden = data.Hidden

// secrets are the texts of one explanation that were of the type secret, or were read from
// Secrets. They are known by the operations that set them, and again wherever another
// value repeats them.
type secrets struct {
	mask  data.Mask
	texts []string
}

func newSecrets(tracers []*tracer) *secrets {
	s := &secrets{}
	for _, t := range tracers {
		for _, h := range t.s.Hooks {
			s.texts = appendSecrets(s.texts, h.Ops)
		}
	}
	slices.Sort(s.texts)
	s.texts = slices.Compact(s.texts)
	for _, text := range s.texts {
		s.mask.Secret(text)
	}
	return s
}

// appendSecrets appends the texts that operations set as secrets.
func appendSecrets(texts []string, ops []effect.ValueOp) []string {
	for _, op := range ops {
		for _, at := range op.Secrets {
			if text, ok := data.Inside(op.Value, at).(string); ok && len(text) >= data.MinSecret {
				texts = append(texts, text)
			}
		}
	}
	return texts
}

// SecretTexts are the texts that hooks have set as secrets.
func (c *Composer) SecretTexts() []string {
	if c.secret == 0 { // next to always, and each run asks
		return nil
	}
	var texts []string
	for _, l := range c.layers {
		texts = appendSecrets(texts, l.Ops)
	}
	return texts
}

// SecretTexts are the texts that hooks have set as secrets.
func (x Explanation) SecretTexts() []string {
	if x.secrets == nil {
		return nil
	}
	return x.secrets.texts
}

// hide returns v with *** at the marked paths and for each text that is known as secret,
// and whether there was any. v is not changed.
func (s *secrets) hide(v any, marks [][]string) (any, bool) {
	if s == nil {
		return v, false
	}
	switch v := v.(type) {
	case string:
		if slices.ContainsFunc(marks, func(m []string) bool { return len(m) == 0 }) {
			return hidden, true
		}
		text := s.mask.Text(v)
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
