// Package text is a document as an editor shows it: its lines, places in it as the language server protocol
// counts them, and edits.
package text

import (
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"
)

// Position is a place as the protocol counts: lines from 0, columns from 0 in units of UTF-16.
type Position struct {
	Line      uint32 `json:"line"`
	Character uint32 `json:"character"`
}

// Range is what lies between two places, the second one left out.
type Range struct {
	Start Position `json:"start"`
	End   Position `json:"end"`
}

// Text is one state of a document. It is never changed.
type Text struct {
	src    string
	starts []int // of each line, in bytes
	marks  map[int][]mark
}

// mark is a place in a line from which characters are counted: all that a file has may be in one line.
type mark struct{ at, runes, units int }

// stride is how far the marks of a line are apart, in bytes. Lines that people write are shorter.
const stride = 1024

// New returns a text. Bytes that are no UTF-8 count as one character each, as an editor shows them.
func New(src string) *Text {
	t := &Text{src: src, starts: []int{0}, marks: map[int][]mark{}}
	for i := 0; i < len(src); i++ {
		switch {
		case src[i] == '\n', src[i] == '\r' && (i+1 == len(src) || src[i+1] != '\n'):
			t.starts = append(t.starts, i+1)
		}
	}
	for n, start := range t.starts {
		for m, end := (mark{at: start}), t.end(n); m.at+stride < end; {
			m = t.count(m, func(next mark) bool { return next.at <= m.at+stride })
			t.marks[n] = append(t.marks[n], m)
		}
	}
	return t
}

// count goes on from a place, character by character, as long as the next place is within bounds.
func (t *Text) count(m mark, within func(mark) bool) mark {
	for m.at < len(t.src) {
		r, size := utf8.DecodeRuneInString(t.src[m.at:])
		next := mark{m.at + size, m.runes + 1, m.units + units(r)}
		if !within(next) {
			break
		}
		m = next
	}
	return m
}

// last is the last place of a line that is within bounds; its beginning always is.
func (t *Text) last(line int, within func(mark) bool) mark {
	marks, from := t.marks[line], mark{at: t.starts[line]}
	if n := sort.Search(len(marks), func(i int) bool { return !within(marks[i]) }); n > 0 {
		from = marks[n-1]
	}
	return t.count(from, within)
}

func (t *Text) String() string { return t.src }

// Bytes returns a copy of the text.
func (t *Text) Bytes() []byte { return []byte(t.src) }

// Lines is how many lines there are, an empty last one among them.
func (t *Text) Lines() int { return len(t.starts) }

// Line returns a line, counted from 0, without its end; "" when there is none.
func (t *Text) Line(n int) string {
	if n < 0 || n >= len(t.starts) {
		return ""
	}
	return t.src[t.starts[n]:t.end(n)]
}

// end is where a line ends, in bytes, before the characters that end it.
func (t *Text) end(n int) int {
	end := len(t.src)
	if n+1 < len(t.starts) {
		end = t.starts[n+1]
	}
	return t.starts[n] + len(strings.TrimRight(t.src[t.starts[n]:end], "\r\n"))
}

// Offset returns where a place is, in bytes. As the protocol says, a column behind the end of the line is its
// end; a line behind the last one is an error. A place inside of a character is its beginning.
func (t *Text) Offset(p Position) (int, error) {
	if int64(p.Line) >= int64(len(t.starts)) {
		return 0, fmt.Errorf("line %d is not there: the document has %d", p.Line, len(t.starts))
	}
	end := t.end(int(p.Line))
	return t.last(int(p.Line), func(m mark) bool { return m.at <= end && int64(m.units) <= int64(p.Character) }).at, nil
}

// Position returns the place of an offset in bytes; one that is outside is moved to the nearest that is not.
func (t *Text) Position(offset int) Position {
	offset = max(0, min(offset, len(t.src)))
	line := sort.SearchInts(t.starts, offset+1) - 1
	return Position{uint32(line), uint32(t.last(line, func(m mark) bool { return m.at <= offset }).units)}
}

// OfStarlark returns the offset, in bytes, of a line and a column as Starlark counts: both from 1, the column in
// characters. A column of 0, or a place that is not there, is the nearest one that is.
func (t *Text) OfStarlark(line, col int) int {
	line = max(0, min(line-1, len(t.starts)-1))
	end := t.end(line)
	return t.last(line, func(m mark) bool { return m.at <= end && m.runes < col }).at
}

// Starlark is the opposite of [Text.OfStarlark].
func (t *Text) Starlark(offset int) (line, col int) {
	offset = max(0, min(offset, len(t.src)))
	n := sort.SearchInts(t.starts, offset+1) - 1
	return n + 1, t.last(n, func(m mark) bool { return m.at <= offset }).runes + 1
}

// RangeOf returns the range between two offsets.
func (t *Text) RangeOf(start, end int) Range { return Range{t.Position(start), t.Position(end)} }

// units is how many units of UTF-16 a character has.
func units(r rune) int {
	if r > 0xffff {
		return 2
	}
	return 1
}

// Replace returns the text with what lies in a range replaced.
func (t *Text) Replace(r Range, with string) (*Text, error) {
	start, err := t.Offset(r.Start)
	if err != nil {
		return nil, err
	}
	end, err := t.Offset(r.End)
	if err != nil {
		return nil, err
	}
	if end < start {
		return nil, fmt.Errorf("the range ends at %d:%d, before it begins at %d:%d", r.End.Line, r.End.Character, r.Start.Line, r.Start.Character)
	}
	return New(t.src[:start] + with + t.src[end:]), nil
}

// Edit is a replacement, as the protocol has it.
type Edit struct {
	Range   Range  `json:"range"`
	NewText string `json:"newText"`
}

// Difference returns the edit that makes other of t; nil when they are the same.
func (t *Text) Difference(other string) []Edit {
	if t.src == other {
		return nil
	}
	// One block from the first to the last line that differ: an editor keeps the cursor and the marks elsewhere.
	start := commonPrefix(t.src, other)
	start = strings.LastIndexByte(t.src[:start], '\n') + 1
	a, b := t.src[start:], other[start:]
	tail := commonSuffix(a, b)
	if cut := strings.IndexByte(a[len(a)-tail:], '\n'); cut < 0 {
		tail = 0
	} else {
		tail -= cut + 1
	}
	return []Edit{{t.RangeOf(start, start+len(a)-tail), b[:len(b)-tail]}}
}

func commonPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

func commonSuffix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[len(a)-1-i] != b[len(b)-1-i] {
			return i
		}
	}
	return n
}
