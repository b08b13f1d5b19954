// Package message makes texts fit into messages for people: one line, a bound, nothing
// that steers a terminal, and the name that was probably meant.
package message

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode"
	"unicode/utf8"
)

// more marks where a text is cut.
const more = "…"

// Line makes a text one line: its lines, without the spaces around each.
func Line(text string) string { return join(text, " ") }

// List makes a text one line that lists its lines, such as those of errors.Join.
func List(text string) string { return join(text, "; ") }

func join(text, between string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(Clean(line)); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, between)
}

// Cut shortens a text to its first bytes, at the edge of a character, and marks that.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + more
}

// Fit is [Cut] for a text that has no room for the mark beside the bound.
func Fit(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return Cut(text, most-len(more))
}

// Apart cuts two texts that differ so that it is seen where.
func Apart(a, b string, most int) (string, string) {
	same := 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}
	from := same - most/8
	if len(a) <= most && len(b) <= most || same < most/2 {
		return Cut(a, most), Cut(b, most)
	}
	for !utf8.RuneStart(a[from]) {
		from--
	}
	return more + Cut(a[from:], most), more + Cut(b[from:], most)
}

// JSON is a value in one line, with < and > as they are.
func JSON(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return "?"
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Lines is [Clean] for each line of a text; tabs stay, too.
func Lines(text string) string {
	var parts []string
	for line := range strings.SplitSeq(text, "\n") {
		cells := strings.Split(line, "\t")
		for i := range cells {
			cells[i] = Clean(cells[i])
		}
		parts = append(parts, strings.Join(cells, "\t"))
	}
	return strings.Join(parts, "\n")
}

// Clean keeps a text from the cluster from steering the terminal that it is shown on, from
// looking like more than one line, and from turning the order of what is read around: such
// characters become spaces.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, text)
}

// Count writes "1 file", "2 files".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// More says behind the first of several that there are n more: " (and 2 more)"; "" without any.
func More(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d more)", n)
}

// WithoutPath leaves out what an error of the file system says besides why.
func WithoutPath(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}
