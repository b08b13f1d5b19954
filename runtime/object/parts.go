package object

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxQuoting is how many bytes of a text [Parts.Hide] looks at, and returns.
const maxQuoting = 16 << 10

// Parts knows what a Secret holds, and hides each part of it in a text of somebody who has
// seen the Secret: an API server, a webhook. Where [Mask] finds secrets as a whole, Parts
// find every piece of [MinSecretInside] bytes, and shorter values where they stand alone;
// that takes a walk over all that is known per text. The zero value knows nothing.
type Parts struct{ known []string }

// Secret takes in what is in a Secret, in a patch to one or in a list of JSON patches,
// but for the identity and labels of the object.
func (p *Parts) Secret(v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			switch k {
			case "apiVersion", "kind", "type", "immutable":
			case "metadata":
				p.applied(e)
			default:
				p.leaves(e)
			}
		}
	case []any:
		for _, e := range v {
			if op, is := e.(map[string]any); is {
				p.leaves(op["value"])
			}
		}
	}
}

// applied takes in the copies that clients keep in annotations.
func (p *Parts) applied(metadata any) {
	m, _ := metadata.(map[string]any)
	annotations, _ := m["annotations"].(map[string]any)
	for _, v := range annotations {
		var obj map[string]any
		if text, _ := v.(string); strings.HasPrefix(text, "{") && json.Unmarshal([]byte(text), &obj) == nil {
			p.Secret(obj)
		}
	}
}

func (p *Parts) leaves(v any) {
	for e := range All(v) {
		switch e := e.(type) {
		case string:
			p.add(e)
		case int64:
			p.add(strconv.FormatInt(e, 10))
		case float64:
			p.add(strconv.FormatFloat(e, 'f', -1, 64))
		}
	}
}

// add takes in a value in the forms in which it is quoted.
func (p *Parts) add(text string) {
	forms := []string{text, base64.StdEncoding.EncodeToString([]byte(text))}
	if decoded, err := base64.StdEncoding.DecodeString(text); err == nil {
		forms = append(forms, string(decoded))
	}
	for _, form := range forms {
		once, quoted := inJSON(form, false), strconv.Quote(form)
		for _, f := range [...]string{form, once, inJSON(form, true), inJSON(once, false), quoted[1 : len(quoted)-1], url.QueryEscape(form), url.PathEscape(form)} {
			if strings.TrimSpace(f) != "" && !slices.Contains(p.known[max(0, len(p.known)-8):], f) {
				p.known = append(p.known, f)
			}
		}
	}
}

var (
	// oneCharacter is what a decoder says of the character at which it gave up.
	oneCharacter = regexp.MustCompile(`invalid character '(?:\\[^']*'|[^']+)'?`)
	// byteList are bytes as Go prints them.
	byteList = regexp.MustCompile(`(?:\b(?:0x)?[0-9a-fA-F]{1,3}\b[, ]+){5,}(?:\b(?:0x)?[0-9a-fA-F]{1,3}\b)?`)
)

// gram is a piece of a text, as long as the shortest part that is hidden.
type gram = [MinSecretInside]byte

// Hide hides what is known in a text, in base64 too, and which character or which bytes a
// decoder did not like.
func (p *Parts) Hide(text string) string {
	text = strings.ToValidUTF8(text[:min(len(text), maxQuoting)], "\uFFFD")
	text = byteList.ReplaceAllString(oneCharacter.ReplaceAllString(text, "invalid character"), Hidden)
	// The text, and what is in it in base64, are gone over at once.
	texts, tokens := []string{text}, encoded.FindAllStringIndex(text, -1)
	for _, at := range tokens {
		texts = append(texts, decodings(text[at[0]:at[1]])...)
	}
	found := p.in(texts)
	for i, at := range tokens {
		for _, f := range found[1+4*i : 5+4*i] {
			if slices.Contains(f, true) {
				fill(found[0][at[0]:at[1]])
			}
		}
	}
	var b strings.Builder
	for i, r := range text {
		switch hidden := slices.Contains(found[0][i:i+utf8.RuneLen(r)], true); {
		case !hidden:
			b.WriteRune(r)
		case !strings.HasSuffix(b.String(), Hidden):
			b.WriteString(Hidden)
		}
	}
	return b.String()
}

// decodings are the four ways to read a token as base64: something may stand before it.
func decodings(token string) []string {
	token = fromURL.Replace(strings.TrimRight(token, "="))
	out := make([]string, 4)
	for i := range out {
		raw := make([]byte, base64.RawStdEncoding.DecodedLen(len(token)))
		n, _ := base64.RawStdEncoding.Decode(raw, []byte(token))
		out[i], token = string(raw[:n]), token[min(1, len(token)):]
	}
	return out
}

// in says of each byte of each text whether it is part of what is known.
func (p *Parts) in(texts []string) [][]bool {
	type place struct{ text, at int }
	grams, found := map[gram][]place{}, make([][]bool, len(texts))
	var begins [1 << 16]bool // grams, by two bytes: few of what is known are worth a look
	for n, text := range texts {
		found[n] = make([]bool, len(text))
		for i := 0; i+len(gram{}) <= len(text); i++ {
			g := gram([]byte(text[i : i+len(gram{})]))
			grams[g] = append(grams[g], place{n, i})
			begins[int(g[0])<<8|int(g[1])] = true
		}
	}
	for _, known := range p.known {
		if len(known) < len(gram{}) {
			alone(known, texts[0], found[0])
		}
		for i := 0; i+len(gram{}) <= len(known); i++ {
			if !begins[int(known[i])<<8|int(known[i+1])] {
				continue
			}
			g := gram([]byte(known[i : i+len(gram{})]))
			for _, at := range grams[g] {
				fill(found[at.text][at.at : at.at+len(gram{})])
			}
			delete(grams, g) // it is marked everywhere
		}
	}
	return found
}

// alone marks a short value where it is no part of a word.
func alone(value, text string, found []bool) {
	word := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	for at := 0; ; {
		i := strings.Index(text[at:], value)
		if i < 0 {
			return
		}
		at += i
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		after, _ := utf8.DecodeRuneInString(text[at+len(value):])
		if !word(before) && !word(after) {
			fill(found[at : at+len(value)])
		}
		at += len(value)
	}
}

func fill(marks []bool) {
	for i := range marks {
		marks[i] = true
	}
}
