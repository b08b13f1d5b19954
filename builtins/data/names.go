package data

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
)

// Names in other spellings.

// maxNamed bounds the text of a name.
const maxNamed = 64 << 10

func namesSpecs() []spec.Spec {
	s := spec.Required("s", spec.String)
	row := func(name string, join func([]string) string) spec.Spec {
		return spec.Pure("names."+name, func(c *spec.Call) (starlark.Value, error) {
			text, err := named(c)
			return starlark.String(join(wordsOf(text))), err
		}, s)
	}
	return []spec.Spec{
		row("camel", camel),
		row("kebab", func(w []string) string { return strings.Join(w, "-") }),
		row("snake", func(w []string) string { return strings.Join(w, "_") }),
		spec.Pure("names.dns_label", callDNSLabel, s,
			spec.Optional("max", spec.Int, "63").Between(hashed+2, 253)),
	}
}

// named is s=.
func named(c *spec.Call) (string, error) {
	if text := c.Str("s"); len(text) <= maxNamed {
		return text, nil
	}
	return "", fmt.Errorf("s: larger than %d KiB", maxNamed>>10)
}

// wordsOf returns the lower-case words of a text. It splits at what is neither letter nor digit, before a capital letter that follows a small one or a digit
// ("certManager"), and before the last of several capitals when a small one follows ("HTTPServer").
func wordsOf(text string) []string {
	var words []string
	var word strings.Builder
	end := func() {
		if word.Len() > 0 {
			words = append(words, strings.ToLower(word.String()))
			word.Reset()
		}
	}
	var before rune
	for i, r := range text {
		_, size := utf8.DecodeRuneInString(text[i:]) // 1 for what is no UTF-8
		after, _ := utf8.DecodeRuneInString(text[i+size:])
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end()
			before = 0
			continue
		case unicode.IsUpper(r) && (unicode.IsLower(before) || unicode.IsDigit(before) ||
			unicode.IsUpper(before) && unicode.IsLower(after)):
			end()
		}
		word.WriteRune(r)
		before = r
	}
	end()
	return words
}

func camel(words []string) string {
	var out strings.Builder
	for i, w := range words {
		if i > 0 {
			r, n := utf8.DecodeRuneInString(w)
			w = string(unicode.ToUpper(r)) + w[n:]
		}
		out.WriteString(w)
	}
	return out.String()
}

// hashed is how many hex digits stand for what was cut away.
const hashed = 8

func callDNSLabel(c *spec.Call) (starlark.Value, error) {
	most := c.IntOr("max", 63)
	text, err := named(c)
	if err != nil {
		return nil, err
	}
	label := strings.Trim(strings.Map(func(r rune) rune {
		if r = unicode.ToLower(r); r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, text), "-")
	if label != "" && len(label) <= most {
		return starlark.String(label), nil
	}
	sum := sha256.Sum256([]byte(text))
	digits := hex.EncodeToString(sum[:])[:hashed]
	if label == "" {
		return starlark.String(digits), nil
	}
	return starlark.String(strings.TrimRight(label[:most-hashed-1], "-") + "-" + digits), nil
}
