package message

import (
	"strings"
	"testing"
)

func TestRowsGoOnBelow(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("word ", 30))
	got := Rows([][2]string{{"a", "short"}, {"name", long}, {"b", ""}})
	lines := strings.Split(got, "\n")
	if len(lines) != 4 || lines[0] != "  a     short" || !strings.HasPrefix(lines[1], "  name  word word") || !strings.HasPrefix(lines[2], "        word") || lines[3] != "  b" {
		t.Errorf("got\n%s", got)
	}
	for _, line := range append(lines, strings.Split(Paragraph(long+" "+long), "\n")...) {
		if len(line) > rowWidth {
			t.Errorf("%d characters: %s", len(line), line)
		}
	}
	if got := strings.Join(strings.Fields(Paragraph(long)), " "); got != long {
		t.Errorf("the words are %q", got)
	}
}

// A line of a page ends before column 120, but for a word that is longer.
func TestPageParagraph(t *testing.T) {
	long := strings.Repeat("x", 130)
	for text, want := range map[string]string{
		"":                              "",
		" one\n two ":                   "one two",
		strings.Repeat("é ", 60):        strings.TrimSpace(strings.Repeat("é ", 59)) + "\né",
		"a " + long + " b":              "a\n" + long + "\nb",
		strings.Repeat("y", 116) + " z": strings.Repeat("y", 116) + " z",
	} {
		if got := PageParagraph(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
