package data

import (
	"context"
	"io"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"
)

// Matching a large pattern with a long text takes minutes, and nothing can end it. So what
// is large is read rune by rune, and a text that ends has all that reads it end.

const (
	// quickMatch is up to which product of the size of a pattern and of a text nobody looks
	// at the limits of the run: some tenths of a second. Of all matches each may read to the end.
	quickMatch = 4_000_000
	// runesBetween is how many runes lie between two looks.
	runesBetween = 256
)

// pattern is a compiled pattern.
type pattern struct {
	*regexp.Regexp
	size int // instructions
	// next finds what begins behind the first rune: it knows what comes before a match.
	next *regexp.Regexp
}

func newPattern(src string) (*pattern, error) {
	re, err := regexp.Compile(src)
	if err != nil {
		return nil, err
	}
	p := &pattern{Regexp: re}
	if parsed, err := syntax.Parse(src, syntax.Perl); err == nil {
		if prog, err := syntax.Compile(parsed.Simplify()); err == nil {
			p.size = len(prog.Inst)
		}
	}
	return p, nil
}

// find is FindAllStringSubmatchIndex, which ends with the run.
func (p *pattern) find(ctx context.Context, text string, most int) (found [][]int, err error) {
	if steps := p.size * len(text); steps <= quickMatch && (most == 1 || steps*len(text) <= 25*quickMatch) {
		return p.FindAllStringSubmatchIndex(text, most), nil
	}
	before := -1 // where the match before ended
	for at := 0; at <= len(text) && (most < 0 || len(found) < most); {
		if ctx.Err() != nil { // matches may be shorter than what lies between two looks
			return nil, context.Cause(ctx)
		}
		m, err := p.from(ctx, text, at)
		if err != nil || m == nil {
			return found, err
		}
		empty := m[1] == at
		accepted := !empty || m[0] != before
		if before = m[1]; accepted {
			found = append(found, m)
		}
		if at = m[1]; empty {
			_, width := utf8.DecodeRuneInString(text[at:])
			at += max(width, 1)
		}
	}
	return found, nil
}

// from returns the first match that begins at a place or behind it, nil for none.
func (p *pattern) from(ctx context.Context, text string, at int) (m []int, err error) {
	re, begin := p.Regexp, 0
	if at > 0 {
		if p.next == nil {
			if p.next, err = regexp.Compile("(?s:.)(?:" + p.String() + ")"); err != nil {
				return nil, err
			}
		}
		_, width := utf8.DecodeLastRuneInString(text[:at])
		re, begin = p.next, at-width
	}
	r := &runes{text: text[begin:], ctx: ctx}
	m = re.FindReaderSubmatchIndex(r)
	if r.err != nil || m == nil {
		return nil, r.err
	}
	for i := range m {
		if m[i] >= 0 {
			m[i] += begin
		}
	}
	if at > 0 {
		_, width := utf8.DecodeRuneInString(text[m[0]:])
		m[0] += width
	}
	return m, nil
}

// runes reads a text until the run ends.
type runes struct {
	text string
	ctx  context.Context
	n    int
	err  error // why the text seemed to end
}

// ReadRune reads the next one.
func (r *runes) ReadRune() (rune, int, error) {
	if r.n++; r.n%runesBetween == 0 && r.ctx.Err() != nil {
		r.err = context.Cause(r.ctx)
	}
	if r.text == "" || r.err != nil {
		return 0, 0, io.EOF
	}
	c, width := utf8.DecodeRuneInString(r.text)
	r.text = r.text[width:]
	return c, width, nil
}
