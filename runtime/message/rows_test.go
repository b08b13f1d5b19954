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
