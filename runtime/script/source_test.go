package script

import (
	"strings"
	"testing"
)

// A file that the compiler would need too much stack or memory for is refused, with its
// place, by what runs it and by what only reads it.
func TestSourcesThatAreTooMuch(t *testing.T) {
	tests := []struct{ name, src, want string }{
		{"a long sum", "a = 1\nx = a" + strings.Repeat("+a", 500_000), "a.star:2:"},
		{"calls of calls", "x = f" + strings.Repeat("()", 400_000), "more than 2000 deep"},
		{"elements of elements", "x = f" + strings.Repeat("[0]", 300_000), "more than 2000 deep"},
		{"fields of fields", "x = f" + strings.Repeat(".a", 400_000), "more than 2000 deep"},
		{"conditions", "def f(x):\n  if x: pass\n" + strings.Repeat("  elif x: pass\n", 60_000), "a.star:"},
		{"unary", "x = " + strings.Repeat("not ", 200_000) + "1", "excessive nesting"},
		{"many names", "x = [" + strings.Repeat("a,", 500_000) + "]", "the file has more than 400000 names"},
		{"many statements", strings.Repeat("x=1\n", 200_000), "the file has more than 400000 names"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, map[string]string{"a.star": tt.src}, nil)
			_, err := f.Load(t.Context(), "a.star")
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "a.star:") || len(err.Error()) > 500 {
				t.Errorf("load: got %.500v, want %q", err, tt.want)
			}
			_, parsed := Parse("a.star", []byte(tt.src))
			if parsed == nil || parsed.Error() != err.Error() {
				t.Errorf("parse says %.500v, load %.500v", parsed, err)
			}
		})
	}
	f := newFixture(t, map[string]string{"a.star": "a = 1\nx = a" + strings.Repeat("+a", 1000) + "\ny = [" + strings.Repeat("1, 2, 3,\n", 50_000) + "]\n"}, nil)
	if _, err := f.Load(t.Context(), "a.star"); err != nil {
		t.Errorf("a large file: %v", err)
	}
}
