package text

import (
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

func TestPositions(t *testing.T) {
	doc := New("a = \"😀é\"\r\nb\rc\n\nlast")
	for _, c := range []struct {
		at     Position
		offset int
	}{
		{Position{0, 0}, 0},
		{Position{0, 5}, 5},
		{Position{0, 6}, 5}, // inside of the character that has two units
		{Position{0, 7}, 9},
		{Position{0, 8}, 11},
		{Position{0, 9}, 12},
		{Position{0, 4_000_000_000}, 12}, // behind the end of the line
		{Position{1, 0}, 14},
		{Position{2, 1}, 17},
		{Position{3, 5}, 18},
		{Position{4, 4}, 23},
	} {
		got, err := doc.Offset(c.at)
		if err != nil || got != c.offset {
			t.Errorf("%v is at %d (%v), want %d", c.at, got, err, c.offset)
		}
	}
	for _, bad := range []Position{{5, 0}, {4_294_967_295, 4_294_967_295}} {
		if _, err := doc.Offset(bad); err == nil {
			t.Errorf("%v is no place of the document", bad)
		}
	}
	if got := doc.OfStarlark(1, 7); got != 9 {
		t.Errorf("line 1, column 7 is at %d, want 9", got)
	}
	if line, col := doc.Starlark(9); line != 1 || col != 7 {
		t.Errorf("9 is %d:%d, want 1:7", line, col)
	}
}

// A place in a long line is where it would be if all characters before it were counted.
func TestPositionsInALongLine(t *testing.T) {
	line := strings.Repeat("aé😀", 1000)
	doc := New("x\n" + line + "\ny")
	units, runes := 0, 0
	for i, r := range line {
		at, want := i+2, Position{1, uint32(units)}
		if got := doc.Position(at); got != want {
			t.Fatalf("%d is at %v, want %v", at, got, want)
		}
		if got, err := doc.Offset(want); err != nil || got != at {
			t.Fatalf("%v is %d (%v), want %d", want, got, err, at)
		}
		if row, col := doc.Starlark(at); row != 2 || col != runes+1 {
			t.Fatalf("%d is %d:%d, want 2:%d", at, row, col, runes+1)
		}
		if got := doc.OfStarlark(2, runes+1); got != at {
			t.Fatalf("2:%d is %d, want %d", runes+1, got, at)
		}
		units, runes = units+len(utf16.Encode([]rune{r})), runes+1
	}
}

func TestReplace(t *testing.T) {
	doc, err := New("x = 1\ny = 2\n").Replace(Range{Position{0, 4}, Position{1, 0}}, "3\n")
	if err != nil || doc.String() != "x = 3\ny = 2\n" {
		t.Errorf("got %q, %v", doc, err)
	}
	if _, err := doc.Replace(Range{Position{1, 0}, Position{0, 0}}, ""); err == nil || !strings.Contains(err.Error(), "before it begins") {
		t.Errorf("a range that ends before it begins is refused, got %v", err)
	}
}

func TestDifference(t *testing.T) {
	for _, c := range []struct{ from, to string }{
		{"", "a\n"}, {"a\n", ""}, {"a", "a\n"}, {"a\nb\nc\n", "a\nB\nc\n"}, {"a\na\n", "a\n"}, {"x\r\ny", "x\ny\n"}, {"é\n", "è\n"}, {"ab\nab\n", "ab\n"},
	} {
		apply(t, c.from, c.to)
	}
	edits := New("a\nb\nc\n").Difference("a\nB\nc\n")
	if len(edits) != 1 || edits[0].NewText != "B\n" || edits[0].Range != (Range{Position{1, 0}, Position{2, 0}}) {
		t.Errorf("only the line that differs is replaced, got %+v", edits)
	}
}

func apply(t *testing.T, from, to string) {
	t.Helper()
	doc := New(from)
	for _, e := range doc.Difference(to) {
		var err error
		if doc, err = doc.Replace(e.Range, e.NewText); err != nil {
			t.Fatal(err)
		}
	}
	if doc.String() != to {
		t.Errorf("%q to %q: the edits give %q", from, to, doc)
	}
}

// Whatever places a client names, an edit is refused or does what an editor would do.
func FuzzEdits(f *testing.F) {
	f.Add("a = \"😀é\"\r\nb\rc\n", uint32(0), uint32(6), uint32(1), uint32(9), "x\n", "other\n")
	f.Add(strings.Repeat("aé😀", 1000), uint32(0), uint32(2501), uint32(0), uint32(3000), "x", "y")
	f.Add("", uint32(0), uint32(0), uint32(7), uint32(0), "", "")
	f.Add("\xff\xfe\n\xf0\x9f", uint32(0), uint32(1), uint32(1), uint32(4_294_967_295), "é", "\r")
	f.Fuzz(func(t *testing.T, src string, line, col, endLine, endCol uint32, with, other string) {
		doc := New(src)
		start, end := Position{line, col}, Position{endLine, endCol}
		edited, err := doc.Replace(Range{start, end}, with)
		if err == nil {
			from, _ := doc.Offset(start)
			to, _ := doc.Offset(end)
			if edited.String() != src[:from]+with+src[to:] {
				t.Errorf("%q is edited to %q", src, edited)
			}
		}
		if offset, err := doc.Offset(start); err == nil {
			back := doc.Position(offset)
			if again, err := doc.Offset(back); err != nil || again != offset {
				t.Errorf("%v is %d, which is %v, which is %d (%v)", start, offset, back, again, err)
			}
			if utf8.ValidString(src) && (back.Line != line || back.Character > col) {
				t.Errorf("%v became %v", start, back)
			}
			if row, column := doc.Starlark(offset); doc.OfStarlark(row, column) != offset {
				t.Errorf("%d is %d:%d, which is %d", offset, row, column, doc.OfStarlark(row, column))
			}
		}
		for n := range doc.Lines() {
			text := doc.Line(n)
			want := uint32(len(utf16.Encode([]rune(text))))
			if end, err := doc.Offset(Position{uint32(n), want}); err != nil || doc.Position(end).Character != want {
				t.Errorf("line %d of %q ends at column %d, got %v", n, src, want, doc.Position(end))
			}
		}
		apply(t, src, other)
	})
}
